"""The context manager of automatic mixed precision, and decorators for custom functions."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy

from .._device import placed
from .._dispatch.refusals import check_by_text
from .._dtype import bfloat16, dtype, dtype as _dtype_class, float16, float64
from .._tensor import Tensor
from . import _state as state
from ._state import is_autocast_available

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]

_SUPPORTED = (bfloat16, float16)


def autocast_decorator(autocast_instance: autocast, func: Callable[..., Any]) -> Callable[..., Any]:
    """`func`, run inside `autocast_instance`."""

    @functools.wraps(func)
    def decorate_autocast(*args: Any, **kwargs: Any) -> Any:
        with autocast_instance:
            return func(*args, **kwargs)

    return decorate_autocast


class autocast:
    """Lets operators that gain by it compute in a lower precision, inside a `with` block or a decorated function.

    Args:
        device_type: the kind of device whose operators are meant.
        dtype: bfloat16 or float16; bfloat16 on a CPU and float16 elsewhere unless it is given.
        enabled: False switches autocast off inside.
        cache_enabled: whether casts of weights are kept until the outermost block ends.

    Raises:
        ValueError: if `device_type` is no string.
        RuntimeError: if there is no such kind of device, and for "meta" unless autocast is switched off.
    """

    def __init__(
        self, device_type: str, dtype: dtype | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device_type
        # On the meta device nothing computes: only blocks that switch autocast off may name it, and they change nothing.
        if dtype is not None and dtype.__class__ is not _dtype_class:
            check_by_text("set_autocast_dtype", ("str device_type, ScalarType dtype",), (device_type, dtype), {})
        self._idle = not enabled and device_type.partition(":")[0] == "meta"
        if self._idle:
            return
        self.fast_dtype = state.get_autocast_dtype(device_type) if dtype is None else dtype
        if not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self._kind = placed(device_type).type
        self._cache_enabled = state.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        if enabled and self._kind == "cuda":
            warnings.warn("CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=2)
            enabled = False
        elif enabled and self.fast_dtype not in _SUPPORTED:
            name = device_type.upper()
            warnings.warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{name} Autocast only supports dtypes of {', '.join(map(str, _SUPPORTED))} currently.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        self._before: list[tuple[bool, bool, dtype | None]] = []  # one instance may be entered again while it is active

    def __enter__(self) -> autocast:
        if self._idle:
            return self
        settings, kind = state.settings, self._kind
        self._before.append((settings.cache_enabled, settings.enabled.get(kind, False), settings.dtypes.get(kind)))
        settings.dtypes[kind] = self.fast_dtype
        state.switch(kind, self._enabled)
        settings.nesting += 1
        settings.cache_enabled = self._cache_enabled
        return self

    def __exit__(self, *exc: object) -> bool:
        if self._idle:
            return False
        settings = state.settings
        settings.cache_enabled, enabled, settings.dtypes[self._kind] = self._before.pop()
        if state.autocast_decrement_nesting() == 0:
            state.clear_autocast_cache()
        state.switch(self._kind, enabled)
        return False

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. "
                "Did you mean to use autocast as a context manager? For example:\n"
                "    with torch.autocast(device_type=...):\n"
                "        output = model(input)"
            )
        return autocast_decorator(self, func)


def _enter_autocast(*vals: Any) -> autocast:
    """Enter autocast without a `with` block; `_exit_autocast` leaves it."""
    mode = autocast(*vals)
    mode.__enter__()
    return mode


def _exit_autocast(mode: autocast) -> None:
    """Leave what `_enter_autocast` has entered."""
    mode.__exit__(None, None, None)


def _cast(value: Any, device_type: str, dtype: dtype) -> Any:
    """`value` with the floating tensors of a kind of device (float64 ones excepted) cast."""
    if isinstance(value, Tensor):
        eligible = value.is_floating_point() and value.device.type == device_type and value.dtype is not float64
        return value.to(dtype) if eligible else value
    if isinstance(value, str | bytes | numpy.ndarray):
        return value
    if isinstance(value, Mapping):
        return {_cast(key, device_type, dtype): _cast(item, device_type, dtype) for key, item in value.items()}
    if isinstance(value, Iterable):
        items = (_cast(item, device_type, dtype) for item in value)
        return type(value)(items) if isinstance(value, list | tuple) else items
    return value


def _need_text(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


def custom_fwd(fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: dtype | None = None) -> Any:
    """Decorates the `forward` of a custom autograd function.

    Args:
        fwd: the function; without it a decorator is returned.
        device_type: the kind of device whose autocast state is meant.
        cast_inputs: with it, and autocast on, the floating inputs are cast and autocast is off inside.
    """
    _need_text(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorate_fwd(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        enabled = state.is_autocast_enabled(device_type)
        ctx._dtype = state.get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = enabled and cast_inputs is None
        if cast_inputs is None or not enabled:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(ctx, *_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return decorate_fwd


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """Decorates the `backward` of a custom autograd function: it runs in the autocast state of its `forward`."""
    _need_text(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorate_bwd(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(ctx, *args, **kwargs)

    return decorate_bwd
