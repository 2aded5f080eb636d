"""Products that take more than one aclnn call."""

from __future__ import annotations

from typing import Any

from ...._dispatch import ops
from ...._generated.npu.functions import aclnnAdd, aclnnAddmm, aclnnLinalgCross, aclnnMatmul
from ..aclnn import launch
from ..arguments import product_mode
from ..payload import NpuPayload


def linear(out: Any, input: Any, weight: Any, bias: Any) -> Any:
    if not out[0].size:
        return None
    if not weight.shape[-1]:
        made = ops.zeros(tuple(out[0].shape), dtype=input.dtype, device=input.device)
        return made if bias is None else ops.add(made, bias)
    turned = ops.t(weight) if weight.dim() == 2 else weight
    if bias is not None and weight.dim() == 2 and out[0].is_contiguous and bias.dim() <= 1:
        rows, columns = out[0].size // weight.shape[0], weight.shape[0]
        flat = ops.reshape(input, (rows, input.shape[-1]))
        target = NpuPayload((rows, columns), (columns, 1), out[0].dtype, out[0].offset, out[0].storage)
        launch(aclnnAddmm, bias._payload, flat._payload, turned._payload, 1, 1, target, product_mode())
        return None
    launch(aclnnMatmul, input._payload, turned._payload, out[0], product_mode())
    if bias is not None:
        launch(aclnnAdd, out[0], bias._payload, 1, out[0])
    return None


def outer(out: Any, self: Any, vec2: Any) -> Any:
    return ops.mul(ops.unsqueeze(self, 1), vec2)


def cross(out: Any, self: Any, other: Any, dim: int) -> None:
    first, second = ops.broadcast_tensors([self, other])
    if out[0].size:
        launch(aclnnLinalgCross, first._payload, second._payload, dim, out[0])
