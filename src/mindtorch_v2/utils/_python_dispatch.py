"""Tensor subclasses that wrap other tensors: there is no dispatch for them below `__torch_function__`."""

from __future__ import annotations

from typing import Any

__all__ = ["is_traceable_wrapper_subclass", "is_traceable_wrapper_subclass_type"]


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Whether `t` is a tensor subclass that can be flattened into plain tensors.

    Such a class defines `__tensor_flatten__` and `__tensor_unflatten__`.
    """
    from mindtorch_v2 import Tensor

    return isinstance(t, Tensor) and type(t) is not Tensor and is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether a class defines the two methods of a wrapper."""
    return hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


class TorchDispatchMode:
    """Can be subclassed; entering it raises, as calls are not dispatched below `__torch_function__`."""

    def __enter__(self) -> Any:
        raise NotImplementedError(
            "TorchDispatchMode is not implemented; use torch.overrides.TorchFunctionMode to see every call"
        )

    def __exit__(self, *exc: object) -> None:
        raise NotImplementedError("TorchDispatchMode is not implemented")
