"""Names of `torch._C` that have a true answer here."""

from __future__ import annotations

import os
import warnings
from typing import Any

from numpy._core._multiarray_umath import __cpu_features__ as _features  # what numpy chooses its own loops by

import mindtorch_v2
from mindtorch_v2._backends.common.errors import LinAlgError as _LinAlgError
from mindtorch_v2._rules._common import broadcast
from mindtorch_v2._tensor import _TensorType as _TensorMeta
from mindtorch_v2.func.batched import BatchedTensor, Fallback, batched
from mindtorch_v2.func.vmap import LEVELS

__all__ = [
    "DispatchKeySet",
    "_LinAlgError",
    "_TensorMeta",
    "_add_batch_dim",
    "_are_functorch_transforms_active",
    "_data_address",
    "_get_accelerator",
    "_get_cpu_capability",
    "_get_default_device",
    "_infer_size",
    "_is_alias_of",
    "_is_vmap_fallback_enabled",
    "_maybe_remove_batch_dim",
    "_remove_batch_dim",
    "_set_vmap_fallback_enabled",
    "_storage_address",
    "_vmap_decrement_nesting",
    "_vmap_increment_nesting",
    "_warn",
    "_warn_deprecation",
    "is_batchedtensor",
    "reshape_dim_into",
    "reshape_dim_outof",
]


class DispatchKeySet:
    """A set of dispatch keys: of one, or united from several by `|`."""

    def __init__(self, key: Any) -> None:
        self._keys = key if isinstance(key, frozenset) else frozenset((key,))

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys | other._keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys & other._keys)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys - other._keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(sorted(key.name for key in self._keys))})"

    def has(self, key: Any) -> bool:
        """Whether a key is among them."""
        return key in self._keys

    def add(self, key: Any) -> DispatchKeySet:
        """The set with one more key."""
        return DispatchKeySet(self._keys | {key})

    def remove(self, key: Any) -> DispatchKeySet:
        """The set without a key."""
        return DispatchKeySet(self._keys - {key})


DispatchKeySet.__module__ = "torch._C"


def _are_functorch_transforms_active() -> bool:
    """Whether a `vmap` is running."""
    return bool(LEVELS)


def _get_accelerator(check: bool = False) -> Any:
    """The kind of the accelerators. Without one the CPU, or RuntimeError if that is to be checked."""
    if mindtorch_v2.npu.is_available():
        return mindtorch_v2.device("npu")
    if check:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return mindtorch_v2.device("cpu")


def _get_cpu_capability() -> str:
    """The vectors of this processor by PyTorch's name, or what ATEN_CPU_CAPABILITY says. torchvision chooses by it how images of bytes are resized."""
    wished = os.environ.get("ATEN_CPU_CAPABILITY", "").upper()
    if wished in ("DEFAULT", "AVX2", "AVX512"):
        return wished
    has = {name for name, there in _features.items() if there}
    if has >= {"FMA3", "AVX512F", "AVX512BW", "AVX512DQ", "AVX512VL"} or "X86_V4" in has:
        return "AVX512"
    return "AVX2" if has >= {"FMA3", "AVX2"} or "X86_V3" in has else "DEFAULT"


def _get_default_device() -> str:
    """The type of the device on which tensors are made."""
    return mindtorch_v2.get_default_device().type


def _is_alias_of(tensor: Any, other: Any) -> bool:
    """Whether two tensors share memory."""
    return tensor.untyped_storage() == other.untyped_storage()


def _storage_address(tensor: Any) -> int:
    """What tells the storage of a tensor from others."""
    return tensor.untyped_storage()._cdata


def _data_address(tensor: Any) -> int:
    """Where the first element lies."""
    return tensor.data_ptr()


def _infer_size(first: Any, second: Any) -> Any:
    """The shape that two shapes broadcast to. RuntimeError where they do not, and for what is no `torch.Size`."""
    for at, size in enumerate((first, second), 1):
        if not isinstance(size, mindtorch_v2.Size):
            raise RuntimeError(f"expected a torch.Size as argument {at}")
    return mindtorch_v2.Size(broadcast(first, second))


def _warn() -> None:
    """Give a UserWarning."""
    warnings.warn("Test message for TORCH_WARN", UserWarning, stacklevel=2)


def _warn_deprecation() -> None:
    """Give a DeprecationWarning."""
    warnings.warn("Test message for TORCH_WARN_DEPRECATION", DeprecationWarning, stacklevel=2)


def is_batchedtensor(tensor: Any) -> bool:
    """Whether a tensor stands for the examples of a running `vmap`."""
    return isinstance(tensor, BatchedTensor)


def _vmap_increment_nesting(batch_size: int, randomness: str = "error") -> int:
    """Begin a level of `vmap`; returns its number. Random operators are not watched over on such a level."""
    level = len(LEVELS) + 1
    LEVELS.append((level, batch_size))
    return level


def _vmap_decrement_nesting() -> int:
    """End the innermost level of `vmap`; returns its number."""
    level, _ = LEVELS.pop()
    return level


def _is_vmap_fallback_enabled() -> bool:
    """Whether operators without a rule for whole batches may run example by example."""
    return Fallback.enabled


def _set_vmap_fallback_enabled(enabled: bool) -> None:
    """Let operators without a rule for whole batches run example by example, or refuse them."""
    Fallback.enabled = enabled


def reshape_dim_into(source: int, destination: int, tensor: Any) -> Any:
    """The tensor with one dimension in front of another one and joined with it."""
    source %= tensor.dim()
    destination %= tensor.dim() - 1
    moved = tensor.movedim(source, destination)
    shape = list(moved.shape)
    shape[destination : destination + 2] = [shape[destination] * shape[destination + 1]]
    return moved.reshape(shape)


def reshape_dim_outof(source: int, size: int, tensor: Any) -> Any:
    """The tensor with a dimension split in two, the first of which has `size` elements."""
    source %= tensor.dim()
    shape = list(tensor.shape)
    shape[source : source + 1] = [size, shape[source] // size if size else 0]
    return tensor.reshape(shape)


def _add_batch_dim(tensor: Any, in_dim: int, level: int) -> Any:
    """A tensor whose dimension `in_dim` are the examples of a level of `vmap`."""
    return batched(tensor.movedim(in_dim, 0), level)


def _remove_batch_dim(tensor: Any, level: int, batch_size: int, out_dim: int) -> Any:
    """The tensor of all examples, along `out_dim`; a tensor that has none of this level is repeated."""
    if isinstance(tensor, BatchedTensor) and tensor._level == level:
        return tensor._value.movedim(0, out_dim)
    expanded = tensor.expand(batch_size, *tensor.shape)
    return expanded.movedim(0, out_dim)


def _maybe_remove_batch_dim(name: str, batched_output: Any, vmap_level: int, batch_size: int, out_dim: Any) -> Any:
    """`_remove_batch_dim`, and None where `out_dim` is None.

    Raises:
        ValueError: for an example's result that is no tensor.
    """
    if out_dim is None:
        if is_batchedtensor(batched_output) and batched_output._level == vmap_level:
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return batched_output
    if not isinstance(batched_output, mindtorch_v2.Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(batched_output)}. "
            "Did you mean to set out_dims= to None for output?"
        )
    return _remove_batch_dim(batched_output, vmap_level, batch_size, out_dim)
