"""`torch.npu.amp.GradScaler`."""

from __future__ import annotations

from ... import amp

__all__ = ["GradScaler"]


class GradScaler(amp.GradScaler):
    """`torch.amp.GradScaler('npu', ...)`. dynamic: False keeps the factor as it begins."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        dynamic: bool = True,
        enabled: bool = True,
    ) -> None:
        super().__init__("npu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
        self._dynamic = dynamic

    def update(self, new_scale: object = None) -> None:
        """The factor for the next step: by what happened in this one, or the given one; a static one stays."""
        if self._enabled and not self._dynamic and new_scale is None:
            self._per_optimizer_states.clear()
            return
        super().update(new_scale)  # type: ignore[arg-type]
