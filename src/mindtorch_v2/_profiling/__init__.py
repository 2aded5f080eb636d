"""What profilers record: `recording` (the ranges of one thread, as the dispatcher, the engine and modules open them), `details` (shapes, sources), `trace` (Chrome's format).

`torch.autograd.profiler` and `torch.profiler` are the public sides.
"""
