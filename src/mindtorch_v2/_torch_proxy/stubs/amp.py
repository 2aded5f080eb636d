"""The former names of automatic mixed precision in `torch.cuda.amp`."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import mindtorch_v2
from mindtorch_v2 import amp


class autocast(amp.autocast):
    """`torch.amp.autocast('cuda', ...)` under its former name."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        warnings.warn(
            "`torch.cuda.amp.autocast(args...)` is deprecated. "
            "Please use `torch.amp.autocast('cuda', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cuda", enabled=enabled, dtype=dtype or mindtorch_v2.float16, cache_enabled=cache_enabled)


class FormerScaler(amp.GradScaler):
    """`torch.amp.GradScaler(device, ...)` under its former name."""

    _device_type: str

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        kind = self._device_type
        warnings.warn(
            f"`torch.{kind}.amp.GradScaler(args...)` is deprecated. Please use `torch.amp.GradScaler('{kind}', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(
            kind,
            init_scale=init_scale,
            growth_factor=growth_factor,
            backoff_factor=backoff_factor,
            growth_interval=growth_interval,
            enabled=enabled,
        )


class GradScaler(FormerScaler):
    """`torch.amp.GradScaler('cuda', ...)` under its former name."""

    _device_type = "cuda"


custom_fwd = functools.partial(amp.custom_fwd, device_type="cuda")
custom_bwd = functools.partial(amp.custom_bwd, device_type="cuda")
