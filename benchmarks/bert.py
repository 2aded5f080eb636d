"""A BERT-base encoder, forward and forward with backward, against PyTorch in the same process.

    python benchmarks/bert.py [--batch 8] [--sequence 128] [--layers 12] [--rounds 3] [--attention eager|sdpa]

The model is written once and built on each library, with the same weights.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import math
from types import ModuleType

import measure
import torch

import mindtorch_v2

HIDDEN, HEADS, INNER, VOCABULARY = 768, 12, 3072, 30522


def build(lib: ModuleType, layers: int, attention: str):
    """A BERT encoder of PyTorch-like modules of a library."""
    nn, functional = lib.nn, lib.nn.functional

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.key, self.value, self.out = (nn.Linear(HIDDEN, HIDDEN) for _ in range(4))
            self.inner, self.outer = nn.Linear(HIDDEN, INNER), nn.Linear(INNER, HIDDEN)
            self.norm1, self.norm2 = nn.LayerNorm(HIDDEN, eps=1e-12), nn.LayerNorm(HIDDEN, eps=1e-12)

        def split(self, x):
            return x.view(x.shape[0], x.shape[1], HEADS, HIDDEN // HEADS).transpose(1, 2)

        def forward(self, x):
            q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
            if attention == "sdpa":
                mixed = functional.scaled_dot_product_attention(q, k, v)
            else:
                scores = q @ k.transpose(-1, -2) / math.sqrt(HIDDEN // HEADS)
                mixed = functional.softmax(scores, dim=-1) @ v
            mixed = mixed.transpose(1, 2).reshape(x.shape)
            x = self.norm1(x + self.out(mixed))
            return self.norm2(x + self.outer(functional.gelu(self.inner(x))))

    class Bert(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.positions = nn.Embedding(VOCABULARY, HIDDEN), nn.Embedding(512, HIDDEN)
            self.norm = nn.LayerNorm(HIDDEN, eps=1e-12)
            self.layers = nn.ModuleList(Layer() for _ in range(layers))

        def forward(self, ids):
            x = self.norm(self.words(ids) + self.positions(lib.arange(ids.shape[1])))
            for layer in self.layers:
                x = layer(x)
            return x

    return Bert()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--sequence", type=int, default=128)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--attention", choices=("eager", "sdpa"), default="eager")
    arguments = parser.parse_args()
    torch.set_num_threads(1)

    models = {lib: build(lib, arguments.layers, arguments.attention) for lib in (mindtorch_v2, torch)}
    state = {
        name: mindtorch_v2.from_numpy(value.detach().numpy()) for name, value in models[torch].state_dict().items()
    }
    models[mindtorch_v2].load_state_dict(state)
    ids = torch.randint(0, VOCABULARY, (arguments.batch, arguments.sequence))
    inputs = {torch: ids, mindtorch_v2: mindtorch_v2.from_numpy(ids.numpy())}

    def forward(lib: ModuleType):
        with lib.no_grad():
            return models[lib](inputs[lib])

    def step(lib: ModuleType) -> None:
        models[lib].zero_grad()
        models[lib](inputs[lib]).sum().backward()

    ours, theirs = (forward(lib).numpy() for lib in (mindtorch_v2, torch))
    print(f"greatest difference of the outputs: {abs(ours - theirs).max():.2e}")
    cases = [
        (name, lambda run=run: run(mindtorch_v2), lambda run=run: run(torch))
        for name, run in (("forward", forward), ("forward and backward", step))
    ]
    size = f"batch {arguments.batch}, sequence {arguments.sequence}, {arguments.layers} layers, {arguments.attention} attention, one thread"
    print(f"BERT-base, {size}")
    print(measure.table(measure.compare(cases, arguments.rounds, 1), 1e3, "ms", 1.5))


if __name__ == "__main__":
    main()
