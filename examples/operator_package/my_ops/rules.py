"""Rules of the package: shape and dtype of results, and the errors of arguments."""

from __future__ import annotations

from typing import Any

from mindtorch_v2 import float32
from mindtorch_v2._rules.spec import Spec, rule


@rule(flops="4 * numel(self)")
def rms_pair(self: Any, eps: float) -> tuple[Spec, Spec]:
    """Rows divided by the root of the mean of their squares, and that root, of a tensor of floats with at least one dimension."""
    if self.dim() == 0:
        raise RuntimeError("rms_pair: expected at least one dimension")
    if not self.dtype.is_floating_point:
        raise RuntimeError(f"rms_pair: expected floats, but got {self.dtype}")
    if not eps >= 0:
        raise RuntimeError(f"rms_pair: eps must not be negative, but got {eps}")
    shape = tuple(self.shape)
    compute = self.dtype if self.dtype.itemsize > 2 else float32
    return Spec(shape, self.dtype, compute=compute), Spec((*shape[:-1], 1), self.dtype, compute=compute)
