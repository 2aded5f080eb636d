"""Small whole programs against PyTorch: what the library costs where tensors are tiny.

    python benchmarks/programs.py [--rounds 5] [--only mlp]

Each measurement is a process of its own that warms up and gives the median of its repetitions; the two libraries take turns, and the medians of
the rounds are compared. Times are CPU time of the thread; one thread each.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from measure import RUNNERS, environment, table

Program = Callable[[], object]


def mlp() -> Program:
    """Forward, backward and a step of AdamW of three small layers on four rows."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    rows, wanted = torch.randn(4, 8), torch.randn(4, 1)

    def step() -> None:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(rows), wanted)
        loss.backward()
        optimizer.step()

    return step


def decoder() -> Program:
    """Sixteen tokens, one by one, through a decoder of four layers of width 128 with a cache of keys and values."""
    import torch
    from torch import nn
    from torch.nn import functional

    class Layer(nn.Module):
        def __init__(self, width: int, heads: int) -> None:
            super().__init__()
            self.heads = heads
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x, cache):
            batch, length, width = x.shape
            q, k, v = self.qkv(self.before(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            if cache:
                k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
            mixed = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, width)
            x = x + self.out(mixed)
            return x + self.down(functional.gelu(self.up(self.between(x)))), (k, v)

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.positions = nn.Embedding(64, 128), nn.Embedding(32, 128)
            self.layers = nn.ModuleList(Layer(128, 4) for _ in range(4))
            self.last, self.head = nn.LayerNorm(128), nn.Linear(128, 64, bias=False)

        def forward(self, token, position, caches):
            x = self.tokens(token) + self.positions(position)
            kept = []
            for layer, cache in zip(self.layers, caches):
                x, cache = layer(x, cache)
                kept.append(cache)
            return self.head(self.last(x)), kept

    torch.manual_seed(0)
    model = Decoder().eval()

    @torch.no_grad()
    def generate() -> list:
        token, caches, said = torch.tensor([[1]]), [None] * 4, []
        for at in range(16):
            scores, caches = model(token, torch.tensor([[at]]), caches)
            token = scores[:, -1].argmax(-1, keepdim=True)
            said.append(token.item())
        return said

    return generate


def build() -> Program:
    """Fifty layers of 64 by 64."""
    from torch import nn

    return lambda: [nn.Linear(64, 64) for _ in range(50)]


def _generate(kind: str, **sizes: int) -> Program:
    import torch
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=128, bos_token_id=1, eos_token_id=None, pad_token_id=0, **sizes
    )
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    prompt = torch.tensor([[1, 5, 9]])
    return lambda: model.generate(prompt, max_new_tokens=32, do_sample=False)


def llama() -> Program:
    """Thirty-two tokens of a random Llama of two layers of width 32, by transformers' generate."""
    return _generate(
        "Llama", hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2
    )


def gpt2() -> Program:
    """Thirty-two tokens of a random GPT2 of two layers of width 32, by transformers' generate."""
    return _generate("GPT2", n_embd=32, n_layer=2, n_head=4, n_positions=64)


PROGRAMS: dict[str, tuple[Callable[[], Program], int, float]] = {  # with repetitions, and the ratio that is wanted
    "mlp": (mlp, 200, 0.35),
    "decoder": (decoder, 10, 0.5),
    "build": (build, 20, 1.0),
    "llama": (llama, 3, 0.8),
    "gpt2": (gpt2, 3, 0.8),
}


def measure(name: str) -> float:
    """Median seconds of one run of a program, in this process."""
    make, repeats, _ = PROGRAMS[name]
    import torch

    torch.set_num_threads(1)
    program = make()
    for _ in range(3):
        program()
    times = []
    for _ in range(repeats):
        start = time.thread_time_ns()
        program()
        times.append((time.thread_time_ns() - start) / 1e9)
    return statistics.median(times)


def fresh(library: str, name: str) -> float:
    """The same in a process of its own."""
    command = (sys.executable, *RUNNERS[library], __file__, "--measure", name)
    return float(
        subprocess.run(command, env=environment(1), check=True, capture_output=True, text=True).stdout.split()[-1]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=PROGRAMS)
    parser.add_argument("--measure", choices=PROGRAMS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(measure(options.measure))
        return 0
    missed = 0
    for name, (make, _, limit) in PROGRAMS.items():
        if options.only in (None, name):
            pairs = [(fresh("mindtorch_v2", name), fresh("torch", name)) for _ in range(options.rounds)]
            ours, theirs = (statistics.median(column) for column in zip(*pairs))
            print(f"{make.__doc__}\n{table([(name, ours, theirs)], 1e3, 'ms', limit)}\n", flush=True)
            missed += ours / theirs > limit
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
