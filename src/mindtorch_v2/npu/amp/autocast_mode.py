"""`torch.npu.amp.autocast`."""

from __future__ import annotations

import functools
from typing import Any

from ... import amp
from ..._dtype import float16

__all__ = ["autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):
    """`torch.amp.autocast('npu', ...)`; in float16 unless a dtype is given."""

    def __init__(self, enabled: bool = True, dtype: Any = float16, cache_enabled: bool = True) -> None:
        super().__init__("npu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


custom_fwd = functools.partial(amp.custom_fwd, device_type="npu")
custom_bwd = functools.partial(amp.custom_bwd, device_type="npu")
