"""Whole models against PyTorch: the time of their steps, on one thread and on two, and the memory that training takes.

    python benchmarks/models.py [--rounds 3] [--only resnet18] [--threads]

Each measurement is a process of its own that warms up and gives the median of its repetitions and the most memory that it held beyond what was held after
`import torch`; the two libraries take turns, and the medians of the rounds are compared. On one thread times are CPU time of the thread. With
`--threads` the speed-up of two threads over one is compared in its place, in wall time, of single operators.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from measure import RUNNERS, environment, table

Step = Callable[[], object]


def bert() -> Step:
    """BERT-base, 8 x 128 tokens: forward, backward and a step of AdamW."""
    import torch
    import transformers

    torch.manual_seed(0)
    model = transformers.BertForMaskedLM(transformers.BertConfig(attn_implementation="sdpa")).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(0, 30522, (8, 128))

    def step() -> None:
        optimizer.zero_grad()
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()

    return step


def _gpt2() -> Any:
    import torch
    import transformers

    torch.manual_seed(0)
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(pad_token_id=50256, eos_token_id=None)).eval()


def prefill() -> Step:
    """GPT2-small: 512 tokens at once."""
    import torch

    model, tokens = _gpt2(), torch.randint(0, 50257, (1, 512))

    def step() -> None:
        with torch.no_grad():
            model(tokens)

    return step


def _decode(model: Any) -> Step:
    import torch

    tokens = torch.randint(0, 50257, (1, 16))
    return lambda: model.generate(tokens, max_new_tokens=64, do_sample=False)


def decode() -> Step:
    """GPT2-small: 64 tokens one by one, with a cache."""
    return _decode(_gpt2())


def decode_bfloat16() -> Step:
    """The same with weights of bfloat16, beside float32 in PyTorch."""
    import torch

    return _decode(_gpt2().to(torch.bfloat16) if _is_ours(torch) else _gpt2())


def decode_int8() -> Step:
    """The same with weights of int8, beside float32 in PyTorch."""
    import torch

    model: Any = _gpt2()
    if _is_ours(torch):
        torch.quantize_weights(model)  # pyright: ignore[reportAttributeAccessIssue]
    return _decode(model)


def _is_ours(torch: Any) -> bool:
    return hasattr(torch, "quantize_weights")


def _resnet18() -> Any:
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, inner: int, outer: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
            self.bn1, self.bn2 = nn.BatchNorm2d(outer), nn.BatchNorm2d(outer)
            self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
            self.relu = nn.ReLU(inplace=True)
            self.down = None
            if stride != 1 or inner != outer:
                self.down = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

        def forward(self, x):
            y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            return self.relu(y + (x if self.down is None else self.down(x)))

    torch.manual_seed(0)
    first = (nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
    widths = ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2))
    blocks = [block for i, o, s in widths for block in (Block(i, o, s), Block(o, o, 1))]
    return nn.Sequential(*first, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


def resnet18() -> Step:
    """ResNet-18: four images of 224 x 224 forward."""
    import torch

    model, images = _resnet18().eval(), torch.randn(4, 3, 224, 224)

    def step() -> None:
        with torch.no_grad():
            model(images)

    return step


def resnet18_step() -> Step:
    """ResNet-18: a step of SGD on four images of 224 x 224."""
    import torch

    model, images, wanted = _resnet18().train(), torch.randn(4, 3, 224, 224), torch.randint(0, 1000, (4,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), wanted).backward()
        optimizer.step()

    return step


def _decoder(layers: int, width: int, heads: int, rows: int, length: int, words: int) -> Step:
    import torch
    from torch import nn
    from torch.nn import functional

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            q, k, v = (
                y.view(rows, length, heads, -1).transpose(1, 2) for y in self.qkv(self.before(x)).split(width, 2)
            )
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(rows, length, width))
            return x + self.down(functional.gelu(self.up(self.between(x))))

    torch.manual_seed(0)
    words_in, places = nn.Embedding(words, width), nn.Embedding(length, width)
    body, last = nn.Sequential(*(Layer() for _ in range(layers)), nn.LayerNorm(width)), nn.Linear(width, words, False)
    parts = nn.ModuleList([words_in, places, body, last])
    optimizer = torch.optim.AdamW(parts.parameters(), lr=1e-4)
    tokens, wanted = torch.randint(0, words, (rows, length)), torch.randint(0, words, (rows, length))

    def step() -> None:
        optimizer.zero_grad()
        scores = last(body(words_in(tokens) + places(torch.arange(length))))
        functional.cross_entropy(scores.view(-1, words), wanted.view(-1)).backward()
        optimizer.step()

    return step


def nanogpt() -> Step:
    """A decoder of 6 layers of 384, 4 x 256 tokens: a step of AdamW."""
    return _decoder(6, 384, 6, 4, 256, 65)


def decoder() -> Step:
    """A decoder of 8 layers of 512, 8 x 128 tokens: a step of AdamW."""
    return _decoder(8, 512, 8, 8, 128, 8000)


def lstm() -> Step:
    """A language model of two LSTM layers of 256, 16 x 64 tokens: a step of Adam."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    words, rows, last = nn.Embedding(2000, 256), nn.LSTM(256, 256, 2, batch_first=True), nn.Linear(256, 2000)
    optimizer = torch.optim.Adam(nn.ModuleList([words, rows, last]).parameters(), lr=1e-3)
    tokens, wanted = torch.randint(0, 2000, (16, 64)), torch.randint(0, 2000, (16 * 64,))

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(last(rows(words(tokens))[0]).view(-1, 2000), wanted).backward()
        optimizer.step()

    return step


class Model(NamedTuple):
    """What is measured: how often, and the ratios that are wanted, of the time and of the memory."""

    make: Callable[[], Step]
    repeats: int
    time: float | None
    memory: float | None = None


MODELS = {
    "bert": Model(bert, 3, 0.84),
    "prefill": Model(prefill, 5, 0.85),
    "decode": Model(decode, 2, 0.92),
    "decode_bfloat16": Model(decode_bfloat16, 2, 0.60),
    "decode_int8": Model(decode_int8, 2, 0.40),
    "resnet18": Model(resnet18, 5, 1.0),
    "resnet18_step": Model(resnet18_step, 3, 1.0, 0.60),
    "nanogpt": Model(nanogpt, 3, 0.75),
    "decoder": Model(decoder, 2, None, 0.70),
    "lstm": Model(lstm, 4, 0.8),
}


def _operators() -> dict[str, Step]:
    import torch
    from torch.nn import functional

    torch.manual_seed(0)
    big, rows, images = torch.randn(10_000_000), torch.randn(4096, 768), torch.randn(8, 64, 56, 56)
    weight, kernel, query = torch.randn(768), torch.randn(64, 64, 3, 3), torch.randn(4, 12, 256, 64)
    parameter = torch.nn.Parameter(torch.randn(4_000_000))
    parameter.grad = torch.randn(4_000_000)
    optimizer = torch.optim.AdamW([parameter])
    return {
        "pointwise 1e7": lambda: torch.tanh(big),
        "softmax": lambda: torch.softmax(rows, -1),
        "layer norm": lambda: functional.layer_norm(rows, (768,), weight, weight),
        "attention": lambda: functional.scaled_dot_product_attention(query, query, query),
        "convolution": lambda: functional.conv2d(images, kernel, padding=1),
        "sum": lambda: big.sum(),
        "maximum of rows": lambda: rows.amax(0),
        "AdamW": optimizer.step,
    }


def _resident(key: str) -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(key))


def measure(name: str) -> dict[str, float]:
    """Median seconds of a step and the bytes at its peak, in this process."""
    import torch

    torch.set_num_threads(1)
    before = _resident("VmRSS:")
    step = MODELS[name].make()
    for _ in range(2):
        step()
    times = []
    for _ in range(MODELS[name].repeats):
        start = time.thread_time_ns()
        step()
        times.append((time.thread_time_ns() - start) / 1e9)
    return {"time": statistics.median(times), "memory": _resident("VmHWM:") - before}


def measure_threads() -> dict[str, float]:
    """Wall time on one thread by that on two, of each operator; by turns."""
    import torch

    found = {}
    for name, run in _operators().items():
        times: dict[int, list[float]] = {1: [], 2: []}
        for turn in range(24):
            threads = turn % 2 + 1
            torch.set_num_threads(threads)
            run()
            start = time.perf_counter()
            for _ in range(3):
                run()
            times[threads].append(time.perf_counter() - start)
        found[name] = statistics.median(times[1]) / statistics.median(times[2])
    return found


def fresh(library: str, name: str) -> dict[str, float]:
    """The same in a process of its own."""
    command = (sys.executable, *RUNNERS[library], __file__, "--measure", name)
    out = subprocess.run(command, env=environment(2 if name == "threads" else 1), check=True, stdout=subprocess.PIPE)
    return json.loads(out.stdout.splitlines()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=MODELS)
    parser.add_argument("--threads", action="store_true", help="speed-ups of two threads")
    parser.add_argument("--measure", choices=[*MODELS, "threads"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure_threads() if options.measure == "threads" else measure(options.measure)))
        return 0
    missed = 0
    for name in ["threads"] if options.threads else [options.only] if options.only else MODELS:
        pairs = [(fresh("mindtorch_v2", name), fresh("torch", name)) for _ in range(options.rounds)]
        rows = [
            (key, *(statistics.median(side[key] for side in column) for column in zip(*pairs))) for key in pairs[0][0]
        ]
        if options.threads:
            print("Speed-up of two threads over one:")
            for case, ours, theirs in rows:
                print(f"{case:20} {ours:5.2f} {theirs:5.2f}{'' if ours >= theirs else '  less'}")
                missed += ours < theirs
            continue
        (_, *times), (_, *peaks) = rows
        model = MODELS[name]
        print(model.make.__doc__)
        print(table([("time", *times)], 1e3, "ms", model.time))
        print(
            table([("memory at its peak", *peaks)], 1 / 2**20, "MB", model.memory).split("\n", 1)[1] + "\n", flush=True
        )
        missed += model.time is not None and times[0] / times[1] > model.time
        missed += model.memory is not None and peaks[0] / peaks[1] > model.memory
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
