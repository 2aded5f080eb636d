"""Fresh tensors."""

from __future__ import annotations

from typing import Any

from ...._generated.npu.functions import aclnnInplaceFillScalar, aclnnInplaceOne, aclnnInplaceZero
from ..aclnn import launch


def empty(out: Any, *args: Any) -> None:
    """Nothing is written."""
    out[0]


def zeros(out: Any, *args: Any) -> None:
    if out[0].size:
        launch(aclnnInplaceZero, out[0])


def ones(out: Any, *args: Any) -> None:
    if out[0].size:
        launch(aclnnInplaceOne, out[0])


def full(out: Any, size: Any, fill_value: Any, *args: Any) -> None:
    if out[0].size:
        launch(aclnnInplaceFillScalar, out[0], fill_value)


def full_like(out: Any, self: Any, fill_value: Any, *args: Any) -> None:
    full(out, None, fill_value)


def new_full(out: Any, self: Any, size: Any, fill_value: Any, *args: Any) -> None:
    full(out, None, fill_value)


def scalar_tensor(out: Any, s: Any, *args: Any) -> None:
    full(out, None, s)
