"""Operators of lists of tensors on an NPU: one launch for all of a list, where CANN has a function of lists (`aclnnForeach...`).

Note [Lists]
An operator of lists is its base, tensor by tensor (`_composite/derived.py`); where the tensors are NPUs', that asks here first. A function takes lists of one floating dtype, of tensors with elements
that lie one behind the other, whose shapes are the same in all lists; numbers are host scalars. All else (histories to record, other dtypes, tensors of another device, numbers in tensors) is done tensor by tensor. The
kernels take some fifty tensors at a time, so longer lists are several launches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..._dtype import DTYPES
from ..._generated.npu import functions as aclnn_functions
from ..._pending import exposed, settled
from ..._state import TLS, runs_plainly
from ..._tensor import Tensor, bump_version, wrap
from .aclnn import launch, running
from .creation import empty
from .payload import NpuPayload

MOST = 48
"""Tensors of a launch."""

_FLOATS = frozenset(DTYPES[name] for name in ("float32", "float16", "bfloat16"))

FUNCTIONS: dict[str, str] = {
    "_foreach_add.List": "aclnnForeachAddListV2",
    "_foreach_add.Scalar": "aclnnForeachAddScalarV2",
    "_foreach_sub.List": "aclnnForeachSubListV2",
    "_foreach_sub.Scalar": "aclnnForeachSubScalarV2",
    "_foreach_mul.List": "aclnnForeachMulList",
    "_foreach_mul.Scalar": "aclnnForeachMulScalarV2",
    "_foreach_mul.Tensor": "aclnnForeachMulScalar",
    "_foreach_div.List": "aclnnForeachDivList",
    "_foreach_div.Scalar": "aclnnForeachDivScalarV2",
    "_foreach_addcmul.Scalar": "aclnnForeachAddcmulScalarV2",
    "_foreach_addcdiv.Scalar": "aclnnForeachAddcdivScalarV2",
    "_foreach_lerp.Scalar": "aclnnForeachLerpScalar",
    "_foreach_maximum.List": "aclnnForeachMaximumList",
    "_foreach_clamp_min.List": "aclnnForeachMaximumList",
    "_foreach_norm.Scalar": "aclnnForeachNorm",
    "_foreach_neg": "aclnnForeachNeg",
    "_foreach_abs": "aclnnForeachAbs",
    "_foreach_exp": "aclnnForeachExp",
    "_foreach_sqrt": "aclnnForeachSqrt",
    "_foreach_reciprocal": "aclnnForeachReciprocal",
}
"""The function of each operator that has one: of its lists and its number, in the operator's order."""


def launched(name: str, args: tuple, in_place: bool) -> list[Tensor] | None:
    """The results of an operator of lists (the first list itself in place), or None where it is nothing for a function of lists.

    name: the operator's without the underscore of its in-place form.
    """
    function = FUNCTIONS.get(name)
    if function is None or TLS.pipeline is not None or TLS.autocast is not None or TLS.observer is not None:
        return None
    lists = [arg for arg in args if isinstance(arg, list | tuple)]
    numbers = [arg for arg in args if not isinstance(arg, list | tuple)]
    norm = name == "_foreach_norm.Scalar"
    if norm:
        order = float(numbers[0]) if isinstance(numbers[0], int | float) else math.nan
        if in_place or order not in (1.0, 2.0, math.inf) or any(n is not None for n in numbers[1:]):
            return None
        numbers = [order]
    on_device = name.endswith(".Tensor")
    if not on_device and any(number.__class__ not in (int, float) for number in numbers):
        return None
    payloads = _payloads(lists, in_place)
    if payloads is None:
        return None
    if on_device:
        numbers = [settled(numbers[0])]
        if not _goes_with(numbers[0], payloads[0][0]):
            return None
    else:
        numbers = [float(number) for number in numbers]
    first = payloads[0]
    shapes: list[tuple] = [()] * len(first) if norm else [tuple(p.shape) for p in first]
    made = first if in_place else [empty(s, None, p.dtype, p.device) for s, p in zip(shapes, first, strict=True)]
    with running(name, first[0].dtype):
        for at in range(0, len(first), MOST):
            parts = [payload[at : at + MOST] for payload in payloads]
            launch(getattr(aclnn_functions, function), *parts, *numbers, made[at : at + MOST])
    if not in_place:
        return [wrap(payload, payload.dtype) for payload in made]
    for tensor in lists[0]:
        bump_version(tensor)
    return lists[0]


def _goes_with(number: Any, first: NpuPayload) -> bool:
    """Whether a number on the device is one that functions of lists of the dtype take."""
    if number.__class__ is not NpuPayload or number.device != first.device or tuple(number.shape):
        return False
    return number.dtype is first.dtype and first.dtype is not DTYPES["bfloat16"]


def _payloads(lists: Sequence[Sequence[Any]], in_place: bool) -> list[list[NpuPayload]] | None:
    """The payloads of lists of tensors that a function of lists takes."""
    found: list[list[NpuPayload]] = []
    seen: set[int] = set()
    for number, given in enumerate(lists):
        if len(given) != len(lists[0]) or not given:
            return None
        row = []
        for tensor in given:
            if not isinstance(tensor, Tensor) or not runs_plainly(tensor.__class__):
                return None
            if TLS.grad_enabled and tensor.requires_grad:
                return None
            payload = exposed(tensor) if in_place and number == 0 else settled(tensor)
            if payload.__class__ is not NpuPayload or not payload.size or not payload.is_contiguous:
                return None
            if in_place and number == 0:
                if id(payload.storage) in seen:  # which would be changed twice, one after the other
                    return None
                seen.add(id(payload.storage))
            row.append(payload)
        found.append(row)
    first = found[0][0]
    for row in found:
        for payload, like in zip(row, found[0], strict=True):
            if payload.dtype is not first.dtype or payload.device != first.device or payload.shape != like.shape:
                return None
    if in_place and any(id(p.storage) in seen and p is not f for row in found[1:] for p, f in zip(row, found[0])):
        return None
    return found if first.dtype in _FLOATS else None
