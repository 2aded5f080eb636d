"""The former names of automatic mixed precision in `torch.cpu.amp`."""

from __future__ import annotations

import warnings
from typing import Any

import mindtorch_v2
from mindtorch_v2 import amp

from .amp import FormerScaler


class autocast(amp.autocast):
    """`torch.amp.autocast('cpu', ...)` under its former name."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        warnings.warn(
            "`torch.cpu.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cpu', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cpu", enabled=enabled, dtype=dtype or mindtorch_v2.bfloat16, cache_enabled=cache_enabled)


class GradScaler(FormerScaler):
    """`torch.amp.GradScaler('cpu', ...)` under its former name."""

    _device_type = "cpu"
