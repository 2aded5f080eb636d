"""What the proxy serves as `torch_npu`, where there is an NPU: PyTorch's extension for Ascend, whose devices `torch.npu` has here anyway.

`torch_npu.npu` is `torch.npu`, `torch_npu.profiler` has `torch.profiler`'s names and torch_npu's settings; `torch_npu.contrib.transfer_to_npu` lets programs for CUDA run; fused operators are those of `torch.ops.npu`.
"""

from __future__ import annotations

import importlib
from typing import Any, NoReturn

from .. import npu
from ..ops import ops as _ops
from ..torch_version import __version__

__all__ = ["__version__", "npu"]

# What programs import by name wherever there is an NPU, to call it later or not at all.
_IMPORTED = frozenset(("npu_fusion_attention", "npu_rms_norm", "npu_rotary_mul", "npu_swiglu"))
_MODULES = {"contrib": ".contrib", "optim": ".optim", "profiler": ".profiler"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(_MODULES[name], __spec__.name)
    if name.startswith(("npu_", "_npu_")):
        found = getattr(_ops.npu, name, None)
        if found is not None:
            globals()[name] = found
            return found
        if name in _IMPORTED:
            return _import_only(name)
    raise AttributeError(f"module 'torch_npu' has no attribute {name!r}")


def _import_only(name: str) -> Any:
    why = "there is no such operator in torch.ops.npu"

    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"torch_npu.{name} can be imported but not called: {why}")

    function.__name__ = function.__qualname__ = name
    function.__dict__["import_only"] = why
    return function
