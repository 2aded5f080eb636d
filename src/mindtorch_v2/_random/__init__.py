"""Random numbers, equal to those of PyTorch's CPU generator for equal seeds.

`engine` makes the raw draws, `generator` is `torch.Generator`, `streams` has a function per distribution, from a
generator to an ndarray. No tensors here: the floors above wrap them.

Note [Which machine]
The numbers are those of PyTorch on an x86 machine with AVX2 that is not Intel's; they were recorded on one of AMD. On
Intel's processors PyTorch's builds with MKL take `bernoulli_(p)` with a number, and so dropout, and `exponential_`, and
so sampling, from that library: other numbers, which are not reproduced.
"""

from __future__ import annotations

from .generator import Generator, Hooks, default_generator

__all__ = ["Generator", "Hooks", "default_generator"]
