"""Scaling of losses, so that small gradients in float16 do not vanish."""

from __future__ import annotations

import inspect
import warnings
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any

import mindtorch_v2 as mt

from .._device import placed

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """How far a step of an optimizer has come."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _fresh_optimizer_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Multiplies losses by a factor, divides the gradients by it again, and leaves out steps whose gradients overflowed.

    After `growth_interval` steps without an overflow the factor grows, after an overflow it shrinks.

    Args:
        device: the kind of device; `cuda`, which is not there, disables the scaler with a warning.
        init_scale: the first factor.
        growth_factor, backoff_factor: what the factor is multiplied by, above and below 1.
        growth_interval: steps without an overflow until the factor grows.
        enabled: False makes every method do nothing (and `step` a plain step).
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device = placed(device).type
        self._enabled = enabled
        if enabled and device == "cuda":
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._scale: Any = None  # a tensor, made on the device of the first loss
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker: Any = None
        self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(_fresh_optimizer_state)

    def _check_scale_growth_tracker(self, funcname: str) -> tuple[Any, Any]:
        fix = "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."
        if self._scale is None:
            raise AssertionError(f"Attempted {funcname} but _scale is None.  {fix}")
        if self._growth_tracker is None:
            raise AssertionError(f"Attempted {funcname} but _growth_tracker is None.  {fix}")
        return self._scale, self._growth_tracker

    def _lazy_init_scale_growth_tracker(self, dev: Any) -> None:
        if self._growth_tracker is not None:
            raise AssertionError("_growth_tracker initialized before _scale")
        self._scale = mt.full((), self._init_scale, dtype=mt.float32, device=dev)
        self._growth_tracker = mt.full((), self._init_growth_tracker, dtype=mt.int32, device=dev)

    def scale(self, outputs: Any) -> Any:
        """A tensor, or nested iterables of tensors, times the factor.

        Raises:
            ValueError: if something else is in there.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, mt.Tensor):
            if self._scale is None:
                self._lazy_init_scale_growth_tracker(outputs.device)
            scale: Any = self._scale
            return outputs * scale.to(device=outputs.device)
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, list | tuple) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _unscale_grads_(self, optimizer: Any, inv_scale: Any, found_inf: Any, allow_fp16: bool) -> dict[Any, Any]:
        """Multiply the gradients by `inv_scale`; by device, 1.0 where one of them is infinite or nan."""
        found: dict[Any, Any] = {}
        with mt.no_grad():
            for group in optimizer.param_groups:
                for param in group["params"]:
                    if param.grad is None:
                        continue
                    grad = param.grad
                    if not allow_fp16 and grad.dtype is mt.float16:
                        raise ValueError("Attempting to unscale FP16 gradients.")
                    if grad.is_sparse:
                        if grad.dtype is mt.float16:  # sums of what stands twice may overflow
                            grad = param.grad = grad.coalesce()
                        grad = grad._values()
                    where = grad.device
                    overflow = mt.logical_not(mt.isfinite(grad).all()).to(mt.float32)
                    before = found.get(where)
                    found[where] = overflow if before is None else mt.maximum(before, overflow)
                    grad.mul_(inv_scale.to(device=where))
        return found or {found_inf.device: found_inf}

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the factor, so that they can be clipped, say.

        Raises:
            RuntimeError: if it was called for this optimizer before since the last `update()`, or after `step()`.
            ValueError: for gradients in float16.
        """
        if not self._enabled:
            return
        self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = self._scale.double().reciprocal().float()
        found = mt.zeros((), dtype=mt.float32, device=self._scale.device)
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, found, False)
        state["stage"] = OptState.UNSCALED

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Divide the gradients (unless `unscale_` has), and take the step if all of them are finite.

        Returns:
            What `optimizer.step(*args, **kwargs)` gives; None if the step was left out.

        Raises:
            RuntimeError: if it was called for this optimizer before since the last `update()`, or with a closure.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._leave_to(optimizer, state, args, kwargs)
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not state["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        overflow = sum(found.item() for found in state["found_inf_per_device"].values())
        result = None if overflow else optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _leave_to(self, optimizer: Any, state: dict[str, Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        """The step of an optimizer that unscales gradients itself: it finds the factor and whether gradients overflowed in its attributes."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the near future GradScaler "
                "registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer and let the optimizer use them directly.",
                FutureWarning,
                stacklevel=3,
            )
            result = optimizer.step(*args, **kwargs, grad_scaler=self)
            state["stage"] = OptState.STEPPED
            return result
        scale: Any = self._scale
        if state["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
        found = [one.to(scale.device) for one in state["found_inf_per_device"].values()]
        optimizer.grad_scale = scale if state["stage"] is OptState.READY else None
        optimizer.found_inf = found[0] if len(found) == 1 else sum(found)
        result = optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        del optimizer.grad_scale, optimizer.found_inf
        return result

    def update(self, new_scale: Any = None) -> None:
        """Let the factor grow or shrink, or set it; call it once after the steps of all optimizers.

        Raises:
            AssertionError: if no optimizer has checked its gradients.
        """
        if not self._enabled:
            return
        scale, tracker = self._check_scale_growth_tracker("update")
        if new_scale is not None:
            scale.fill_(float(new_scale))
        else:
            found = [
                inf.to(scale.device)
                for state in self._per_optimizer_states.values()
                for inf in state["found_inf_per_device"].values()
            ]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            mt._amp_update_scale_(
                scale,
                tracker,
                sum(found[1:], found[0]),
                self._growth_factor,
                self._backoff_factor,
                self._growth_interval,
            )
        self._per_optimizer_states = defaultdict(_fresh_optimizer_state)

    def _get_scale_async(self) -> Any:
        return self._scale

    def get_scale(self) -> float:
        """The factor; 1.0 if the scaler is disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """By what the factor grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set by what the factor grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """By what the factor shrinks."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set by what the factor shrinks."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many steps without an overflow the factor grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set after how many steps without an overflow the factor grows."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker.item()

    def is_enabled(self) -> bool:
        """Whether the scaler does anything."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The settings and counters; empty if the scaler is disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` has given.

        Raises:
            RuntimeError: if the dict is empty, from a disabled scaler.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, "
                    "or at the end after scaler.update()."
                )
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = None
            state["_growth_tracker"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _check_inf_per_device(self, optimizer: Any) -> dict[Any, Any]:
        scale, _ = self._check_scale_growth_tracker("_check_inf_per_device")
        one = mt.full((), 1.0, dtype=mt.float32, device=scale.device)
        found = mt.zeros((), dtype=mt.float32, device=scale.device)
        state = self._per_optimizer_states[id(optimizer)]
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, one, found, True)
        return state["found_inf_per_device"]

    def _found_inf_per_device(self, optimizer: Any) -> dict[Any, Any]:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
