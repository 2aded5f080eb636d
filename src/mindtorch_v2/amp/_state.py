"""What automatic mixed precision has switched on in a thread, and how it casts the arguments of operators.

The schema says what autocast does with an operator, by a tag: `autocast_lower` (computed in the lower precision),
`autocast_float32` (computed in float32) or `autocast_promote` (all arguments in the widest of their types). An operator
without a tag gets its arguments as they are. The dispatcher finds the caster in `_state.TLS.autocast`, which is None while
nothing is switched on.
"""

from __future__ import annotations

import threading
from typing import Any

from .. import _state
from .._device import placed as _device
from .._dispatch.native import count_modes, unbound
from .._dispatch.refusals import check_by_text
from .._dtype import bfloat16, dtype, dtype as _dtype_class, float16, float32, float64
from .._tensor import Tensor

_DEFAULT_DTYPES = {"cpu": bfloat16, "hpu": bfloat16, "xla": bfloat16}
_ELIGIBLE = (float32, float16, bfloat16)


class _Settings(threading.local):
    """The settings of one thread."""

    def __init__(self) -> None:
        self.enabled: dict[str, bool] = {}
        self.dtypes: dict[str, dtype | None] = {}
        self.cache_enabled = True
        self.nesting = 0
        self.cache: dict[int, tuple[Tensor, Tensor]] = {}


settings = _Settings()


def _cast_list(values: Any, cast: Any) -> Any:
    return type(values)(cast(value) if isinstance(value, Tensor) else value for value in values)


class Caster:
    """Casts the arguments of operators by the settings of the thread in which it is asked."""

    def cast(self, op: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments in the precision in which autocast lets `op` compute."""
        for tag in op.tags:
            if tag.startswith("autocast_"):
                break
        else:
            return args
        kind = self._device_type(args)
        if kind is None or not settings.enabled.get(kind):
            return args
        if tag == "autocast_promote":
            target = self._widest(args, kind)
        else:
            target = get_autocast_dtype(kind) if tag == "autocast_lower" else float32

        def cast(tensor: Tensor) -> Tensor:
            if tensor.dtype is target or tensor.dtype not in _ELIGIBLE or tensor.device.type != kind:
                return tensor
            return self._cached(tensor, target) if tag == "autocast_lower" else tensor.to(target)

        return tuple(
            cast(arg)
            if isinstance(arg, Tensor)
            else _cast_list(arg, cast)
            if isinstance(arg, list | tuple) and any(isinstance(item, Tensor) for item in arg)
            else arg
            for arg in args
        )

    @staticmethod
    def _tensors(args: tuple[Any, ...]) -> list[Tensor]:
        found = []
        for arg in args:
            if isinstance(arg, Tensor):
                found.append(arg)
            elif isinstance(arg, list | tuple):
                found += [item for item in arg if isinstance(item, Tensor)]
        return found

    def _device_type(self, args: tuple[Any, ...]) -> str | None:
        for tensor in self._tensors(args):
            if tensor.dtype.is_floating_point:
                return tensor.device.type
        return None

    def _widest(self, args: tuple[Any, ...], kind: str) -> dtype:
        """The lower precision if all arguments have it, float32 otherwise; float64 stays what it is."""
        lower = get_autocast_dtype(kind)
        dtypes = {tensor.dtype for tensor in self._tensors(args) if tensor.dtype.is_floating_point}
        if float64 in dtypes:
            return float64
        return lower if dtypes <= {lower} else float32

    @staticmethod
    def _cached(tensor: Tensor, target: dtype) -> Tensor:
        """A cast that is kept until autocast ends, if `tensor` is a float32 leaf that wants a gradient, such as a weight."""
        wanted = (
            settings.cache_enabled
            and tensor.dtype is float32
            and tensor.requires_grad
            and tensor.is_leaf
            and tensor._base is None
            and _state.TLS.grad_enabled
        )
        if not wanted:
            return tensor.to(target)
        kept = settings.cache.get(id(tensor))
        if kept is not None and kept[0] is tensor and kept[1].dtype is target:
            return kept[1]
        made = tensor.to(target)
        settings.cache[id(tensor)] = (tensor, made)
        return made


_CASTER = Caster()


def _checked(device_type: str) -> str:
    """`device_type`, if it names a kind of device that can compute.

    Raises:
        RuntimeError: if it does not.
    """
    kind = _device(device_type).type
    if kind == "meta":
        raise RuntimeError("unsupported scalarType")
    return kind


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast knows a kind of device.

    Raises:
        RuntimeError: if there is no such kind.
    """
    return _device(device_type).type != "meta"


@unbound
def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether autocast is on for a kind of device, `cuda` unless it is given."""
    if device_type is not None and not isinstance(device_type, str):
        check_by_text("is_autocast_enabled", ("str device_type",), (device_type,), {})
    return settings.enabled.get(_checked("cuda" if device_type is None else device_type), False)


@unbound
def set_autocast_enabled(device_type: Any, enabled: bool | None = None) -> None:
    """Switch autocast on or off for a kind of device; with one argument, for `cuda`."""
    if enabled is None:
        device_type, enabled = "cuda", device_type
    if enabled.__class__ is not bool:
        check_by_text("set_autocast_enabled", ("str device_type, bool enabled",), (device_type, enabled), {})
    switch(_checked(device_type), bool(enabled))


def switch(kind: str, enabled: bool) -> None:
    """Switch autocast on or off for a kind of device that can compute."""
    settings.enabled[kind] = enabled
    active = any(settings.enabled.values())
    if active and _state.TLS.autocast is None:
        _state.TLS.autocast = _CASTER
        count_modes(autocast=1)
    elif not active and _state.TLS.autocast is not None:
        _state.TLS.autocast = None
        count_modes(autocast=-1)


@unbound
def get_autocast_dtype(device_type: str) -> dtype:
    """The lower precision of a kind of device."""
    if not isinstance(device_type, str):
        check_by_text("get_autocast_dtype", ("str device_type",), (device_type,), {})
    kind = _checked(device_type)
    return settings.dtypes.get(kind) or _DEFAULT_DTYPES.get(kind, float16)


@unbound
def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """Set the lower precision of a kind of device."""
    if dtype.__class__ is not _dtype_class:
        check_by_text("set_autocast_dtype", ("str device_type, ScalarType dtype",), (device_type, dtype), {})
    settings.dtypes[_checked(device_type)] = dtype


@unbound
def is_autocast_cache_enabled() -> bool:
    """Whether casts of weights are kept."""
    return settings.cache_enabled


@unbound
def set_autocast_cache_enabled(enabled: bool) -> None:
    """Let casts of weights be kept, or not."""
    settings.cache_enabled = bool(enabled)


@unbound
def clear_autocast_cache() -> None:
    """Forget the casts of weights."""
    settings.cache.clear()


@unbound
def autocast_increment_nesting() -> int:
    """Count one more block of autocast; returns how many there are."""
    settings.nesting += 1
    return settings.nesting


@unbound
def autocast_decrement_nesting() -> int:
    """Count one block less; returns how many there are."""
    settings.nesting -= 1
    return settings.nesting


@unbound
def is_autocast_cpu_enabled() -> bool:
    """Whether autocast is on for the CPU."""
    return is_autocast_enabled("cpu")


@unbound
def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Switch autocast on or off for the CPU."""
    set_autocast_enabled("cpu", enabled)


@unbound
def get_autocast_cpu_dtype() -> dtype:
    """The lower precision of the CPU."""
    return get_autocast_dtype("cpu")


@unbound
def set_autocast_cpu_dtype(dtype: dtype) -> None:
    """Set the lower precision of the CPU."""
    set_autocast_dtype("cpu", dtype)


@unbound
def get_autocast_gpu_dtype() -> dtype:
    """The lower precision of CUDA devices."""
    return get_autocast_dtype("cuda")


@unbound
def set_autocast_gpu_dtype(dtype: dtype) -> None:
    """Set the lower precision of CUDA devices."""
    set_autocast_dtype("cuda", dtype)
