"""What a scaler of gradients does: gradients are divided by the factor, and the factor grows or shrinks."""

from __future__ import annotations

from collections.abc import Sequence

from mindtorch_v2._dtype import float32, int32
from mindtorch_v2._generated import functions as F
from mindtorch_v2._tensor import Tensor


def _check(names: str, tensor: Tensor, kind: object = float32, word: str = "a float") -> None:
    if tensor.numel() != 1:
        raise RuntimeError(f"{names} must be a 1-element tensor.")
    if tensor.dtype is not kind:
        raise RuntimeError(f"{names} must be {word} tensor.")


def non_finite_check_and_unscale_(self: Sequence[Tensor], found_inf: Tensor, inv_scale: Tensor) -> None:
    """Multiply tensors of floats by `inv_scale` in place; 1.0 in `found_inf` when one of them is infinite or nan."""
    _check("inv_scale", inv_scale)
    _check("found_inf", found_inf)
    for tensor in self:
        if not tensor.dtype.is_floating_point:
            raise NotImplementedError(
                f"\"_amp_foreach_non_finite_check_and_unscale_cpu\" not implemented for '{tensor.dtype.cpp}'"
            )
        finite = F.all(F.isfinite(tensor))
        found_inf.copy_(F.where(finite, found_inf, F.ones_like(found_inf)))
        tensor.mul_(inv_scale.reshape(()).to(tensor.dtype) if tensor.dtype.itemsize > 4 else inv_scale.reshape(()))


def update_scale_(
    self: Tensor,
    growth_tracker: Tensor,
    found_inf: Tensor,
    scale_growth_factor: float,
    scale_backoff_factor: float,
    growth_interval: int,
) -> Tensor:
    """The factor (float32) after a step: less where an infinity was found, more after `growth_interval` steps without one, which the tracker
    (int32) counts. A factor that would be infinite stays."""
    _check("growth_tracker", growth_tracker, int32, "an int")
    _check("current_scale", self)
    _check("found_inf", found_inf)
    if found_inf.item():
        self.mul_(scale_backoff_factor)
        growth_tracker.fill_(0)
    elif growth_tracker.item() + 1 == growth_interval:
        grown = F.mul(self, scale_growth_factor)
        self.copy_(F.where(F.isfinite(grown), grown, self))
        growth_tracker.fill_(0)
    else:
        growth_tracker.add_(1)
    return self
