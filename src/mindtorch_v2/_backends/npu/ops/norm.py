"""Normalisations that take more than one aclnn call."""

from __future__ import annotations

from typing import Any

from ...._dispatch import ops
from ...._dtype import DTYPES, finfo
from ...._generated.npu.functions import aclnnRmsNorm
from ..aclnn import launch
from ..creation import empty


def rms_norm(out: Any, input: Any, normalized_shape: Any, weight: Any, eps: float | None) -> None:
    count = len(normalized_shape)
    if weight is None:
        weight = ops.ones(tuple(normalized_shape), dtype=input.dtype, device=input.device)
    kind = DTYPES["float32"] if input.dtype.itemsize < 4 else input.dtype
    shape = (*input.shape[: input.dim() - count], *(1,) * count)
    scale = empty(tuple(shape), None, kind, input.device)
    if out[0].size:
        launch(aclnnRmsNorm, input._payload, weight._payload, finfo(kind).eps if eps is None else eps, out[0], scale)


def weight_norm(out: Any, v: Any, g: Any, dim: int) -> tuple:
    """(the weight, the norms over all dimensions but `dim`)."""
    rest = [d for d in range(v.dim()) if d != dim % v.dim()]
    norms = ops.linalg_vector_norm(v, 2, rest, True) if rest else ops.abs(v)  # no dimensions would mean all
    return ops.mul(v, ops.div(g, norms)), norms
