"""Steps of optimizers by one launch for each parameter."""

from __future__ import annotations

import threading
from typing import Any

from ..._dtype import DTYPES
from ..._pending import exposed
from ..._tensor import Tensor
from .aclnn import launch, scalar_tensor
from .payload import NpuPayload
from .streams import current_stream

_FLOATS = frozenset(DTYPES[name] for name in ("float32", "float16", "bfloat16"))
_steps = threading.local()


def _step_of(count: float, where: Any) -> NpuPayload:
    """The number of the step on the device: one for all parameters, as long as it stays the same on one stream."""
    key = count, where, current_stream(where.index).handle
    if getattr(_steps, "key", None) != key:
        _steps.payload = scalar_tensor(float(count), DTYPES["float32"], where)
        _steps.key = key
    return _steps.payload


def adamw_step(
    param: Tensor,
    grad: Tensor,
    mean: Tensor,
    square: Tensor,
    largest: Tensor | None,
    count: float,
    lr: float,
    betas: tuple[float, float],
    decay: float,
    eps: float,
) -> bool:
    """AdamW's step `count` in place, by aclnnApplyAdamWV2: whether it could be."""
    from ..._generated.npu.functions import aclnnApplyAdamWV2

    tensors = [t for t in (param, grad, mean, square, largest) if t is not None]
    payloads = [exposed(t) for t in tensors]
    if not all(p.__class__ is NpuPayload for p in payloads):
        return False
    first = payloads[0]
    if first.dtype not in _FLOATS or any(p.dtype is not first.dtype or p.shape != first.shape for p in payloads):
        return False
    if first.size:
        top = None if largest is None else payloads[-1]
        step = _step_of(count, first.device)
        numbers = (lr, *betas, decay, eps, largest is not None, False)
        launch(aclnnApplyAdamWV2, payloads[0], payloads[2], payloads[3], top, payloads[1], step, *numbers)
    return True
