"""Tensors in groups of one device and dtype, as operators on lists of tensors want them; optimizers outside of this library use it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import mindtorch_v2 as torch

from .. import _device, _dtype
from .._tensor import Tensor
from ..autograd import no_grad

TensorListList: TypeAlias = list[list[Tensor | None]]
Indices: TypeAlias = list[int]
_foreach_supported_types = [Tensor]

_PLEASE = "(Could this error message be improved?  If so, please report an enhancement request to PyTorch.)"
_LENGTHS = (
    "std::all_of( nested_tensorlist.cbegin(), nested_tensorlist.cend(), [&](const auto& tensorlist) -> bool { "
    "return tensorlist.size() == num_tensors || tensorlist.size() == 0; })"
)


def _get_foreach_kernels_supported_devices() -> list[str]:
    """The device types beside the CPU on which lists of tensors are worth an operator of their own."""
    return ["cuda", "xpu", "mtia", "npu"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """The device types on which an optimizer's step may be one operator."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "npu"]


def _expect(true: bool, words: str) -> None:
    if not true:
        raise RuntimeError(f"Expected {words} to be true, but got false.  {_PLEASE}")


def _fits(first: Tensor, other: Tensor) -> bool:
    """Whether a tensor may stand beside the first of its index: of its device and dtype, a counter of steps on the CPU, or a state in bfloat16."""
    if other.device == first.device and other.dtype in (first.dtype, _dtype.bfloat16):
        return True
    return other.device.type == "cpu" and other.dtype in (_dtype.float32, _dtype.float64)


@no_grad()
def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Tensor | None]], with_indices: bool = False
) -> dict[tuple[_device.device, _dtype.dtype], tuple[TensorListList, Indices]]:
    """The lists in parts, by device and dtype of the tensors of the first of them, with the places these had if `with_indices`.

    The first list has no None; the others are as long as it, or empty. RuntimeError for lists that are not so, and for tensors of
    different devices or dtypes at one place, but for counters of steps.
    """
    _expect(len(tensorlistlist) > 0, "!nested_tensorlist.empty()")
    _expect(len(tensorlistlist[0]) > 0, "!nested_tensorlist[0].empty()")
    for tensors in tensorlistlist:
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    "_group_tensors_by_device_and_dtype(): incompatible function arguments. Tensors or None were expected, "
                    f"not {torch.typename(tensor)}"
                )
    _expect(all(len(tensors) in (0, len(tensorlistlist[0])) for tensors in tensorlistlist), _LENGTHS)
    groups: dict[tuple[_device.device, _dtype.dtype], tuple[TensorListList, Indices]] = {}
    for index, first in enumerate(tensorlistlist[0]):
        if first is None:
            raise RuntimeError(
                f"Tensors of the first list of nested Tensor lists are supposed to be defined but the {index}-th Tensor is not."
            )
        parts, indices = groups.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for part, tensors in zip(parts, tensorlistlist, strict=True):
            if not tensors:
                continue
            other = tensors[index]
            if other is not None and not _fits(first, other):
                raise RuntimeError(
                    "Tensors of the same index must be on the same device and the same dtype except `step` tensors that can be CPU "
                    "and float32/64, and optimizer states that can be bfloat16 for mixed-precision training"
                )
            part.append(other)
        if with_indices:
            indices.append(index)
    return groups


def _device_has_foreach_support(device: _device.device) -> bool:
    """Whether operators on lists run on a device."""
    return device.type in (*_get_foreach_kernels_supported_devices(), "cpu")


def _has_foreach_support(tensors: list[Tensor], device: _device.device) -> bool:
    """Whether these tensors, which are on `device`, may be given to operators on lists: none of a class of its own."""
    return _device_has_foreach_support(device) and all(
        t is None or type(t) in _foreach_supported_types for t in tensors
    )
