# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._subclasses, import-only stub."""

from __future__ import annotations

from torch._subclasses.fake_tensor import (
    FakeTensor, FakeTensorMode,
)
from mindtorch_v2._torch_proxy.placeholders import lazy_children

_MODULE = "torch._subclasses"
_BECAUSE = "there are no fake tensors; the meta device computes shapes"
__getattr__ = lazy_children(_MODULE)


class DynamicOutputShapeException(RuntimeError):
    """An error of torch._subclasses, which mindtorch_v2 never raises."""


class UnsupportedFakeTensorException(RuntimeError):
    """An error of torch._subclasses, which mindtorch_v2 never raises."""
