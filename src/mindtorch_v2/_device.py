"""`torch.device`: where a tensor lives, and the context that new tensors are made in."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, Union

from . import _state
from ._above import above
from ._state import TLS

TYPES = (
    "cpu cuda ipu xpu mkldnn opengl opencl ideep hip ve fpga maia xla lazy vulkan mps meta hpu mtia npu privateuseone"
).split()
_NAMED_BY_PYTORCH = ", ".join(kind for kind in TYPES if kind != "npu")
_TEXT = re.compile(r"([a-z_]+)(?::(0|[1-9][0-9]*))?")

DeviceLike = Union["device", str, int]

STANDS_FOR: dict[str, str] = {}
"""Types of devices for which others stand: what is asked for on the first is on the second. Empty but for programs that asked for it (`torch_npu.contrib.transfer_to_npu`)."""

_NAMED: dict[str, device] = {}  # by the text that makes them
_MOST_NAMED = 256


class device:
    """A device type with an optional index: `device("npu:1")`, `device("npu", 1)`.

    As a context manager or decorator it is where factory functions of this thread put new tensors.
    Raises RuntimeError for an unknown type or a malformed text.
    """

    __slots__ = ("type", "index")

    type: str
    index: int | None

    def __new__(cls, type: DeviceLike | None = None, index: int | None = None, *, device: DeviceLike | None = None):
        if index is None and isinstance(type, str) and type in _NAMED:
            return _NAMED[type]
        if type is None:
            type = device
        if isinstance(type, cls):
            if index is not None:
                raise RuntimeError("device(): a device was given together with an index")
            return type
        if isinstance(type, bool) or not isinstance(type, (str, int)):
            if index is not None:
                raise TypeError(f"device(): argument 'type' (position 1) must be str, not {_class_name(type)}")
            kind = "" if type is None else _class_name(type)
            slips = f"      didn't match because some of the arguments have invalid types: (!{kind}!)\n" if kind else ""
            raise TypeError(
                f"device() received an invalid combination of arguments - got ({kind}), but expected one of:\n"
                f" * (torch.device device)\n{slips} * (str type, int index = -1)\n"
            )
        if index is not None and not hasattr(index, "__index__"):
            raise TypeError(f"device(): argument 'index' (position 2) must be int, not {_class_name(index)}")
        if isinstance(type, int):
            return _accelerator(type, index)
        match = _TEXT.fullmatch(type)
        if match is None:
            raise RuntimeError(f"Invalid device string: '{type}'")
        kind, text_index = match.groups()
        if kind not in TYPES:
            raise RuntimeError(
                f"Expected one of {_NAMED_BY_PYTORCH} device type at start of device string: {kind}",
            )
        if text_index is not None:
            if index is not None:
                raise RuntimeError(
                    f"type (string) must not include an index because index was passed explicitly: {type}"
                )
            index = int(text_index)
        if index is not None and index < 0:
            raise RuntimeError("Device index must not be negative")
        made = _intern(kind, index)
        if len(_NAMED) < _MOST_NAMED:
            _NAMED[str(made)] = made
        return made

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"attribute '{name}' of 'torch.device' objects is not writable")

    def __repr__(self) -> str:
        if self.index is None:
            return f"device(type='{self.type}')"
        return f"device(type='{self.type}', index={self.index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, device):
            return NotImplemented
        return self.type == other.type and self.index == other.index

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self):
        if _state.serves_torch:
            return device, ((self.type,) if self.index is None else (self.type, self.index))
        return (_named, (str(self),))

    def __copy__(self):
        return self

    def __deepcopy__(self, memo: dict):
        return self

    def __enter__(self) -> device:
        TLS.device_stack = (*TLS.device_stack, (placed(self), TLS.default_device))
        TLS.default_device = None
        if self != CPU:  # where new tensors are anyway
            _state.enter_special()
        return self

    def __exit__(self, *exc: object) -> None:
        if TLS.default_device is not None:  # of a set_default_device inside of the block
            _state.leave_special()
        TLS.default_device = TLS.device_stack[-1][1]
        TLS.device_stack = TLS.device_stack[:-1]
        if self != CPU:
            _state.leave_special()

    def __call__(self, function: Callable) -> Callable:
        if isinstance(function, type):
            raise RuntimeError(
                "Cannot decorate classes; it is ambiguous whether or not only the constructor or all methods should have the "
                "context manager applied; additionally, decorating a class in this way would make it lose its identity. "
                "Decorate the methods instead."
            )
        return decorate(function, lambda: self)


def decorate(function: Callable, context: Callable[[], Any]) -> Callable:
    """The function with each call inside of a context; a generator enters it for every step and leaves it while it waits."""
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def generator(*args: Any, **kwargs: Any) -> Any:
            running = function(*args, **kwargs)
            step: Callable = running.send
            sent: Any = None
            try:
                while True:
                    with context():
                        item = step(sent)
                    try:
                        step, sent = running.send, (yield item)
                    except GeneratorExit:
                        raise
                    except BaseException as error:  # noqa: BLE001 - thrown in by the caller: the function may handle it
                        step, sent = running.throw, error
            except StopIteration as stop:
                return stop.value
            finally:
                with context():
                    running.close()

        return generator

    @functools.wraps(function)
    def in_context(*args: Any, **kwargs: Any) -> Any:
        with context():
            return function(*args, **kwargs)

    return in_context


@functools.cache
def _intern(kind: str, index: int | None) -> device:
    self = object.__new__(device)
    object.__setattr__(self, "type", kind)
    object.__setattr__(self, "index", index)
    return self


NO_ACCELERATOR = "Cannot access accelerator device when none is available."


def _accelerator(number: int, index: int | None) -> device:
    """The accelerator of a number. RuntimeError where there is none."""
    if not above("npu_available")():
        raise RuntimeError(NO_ACCELERATOR)
    if index is not None:
        raise RuntimeError(f"device(): the number {number} was given together with an index")
    if number < 0:
        raise RuntimeError("Device index must not be negative")
    return _intern("npu", number)


def _class_name(value: object) -> str:
    return value.__class__.__name__


device.__module__ = "torch"


def placed(given: DeviceLike | None, index: int | None = None) -> device:
    """Where tensors go that are asked for on a device: there, or on the device that stands for its type."""
    made = device(given, index)
    return _intern(STANDS_FOR[made.type], made.index) if made.type in STANDS_FOR else made


def _named(name: str) -> device:
    """The device of a name: what pickles call, since a class of the module `torch` cannot be found without the proxy."""
    return device(name)


CPU = device("cpu")
META = device("meta")


def chosen_device() -> device | None:
    """Where this thread wants new tensors: what `set_default_device` said last, else the innermost context; None for nowhere special.

    A `set_default_device` inside of a block counts until the block ends, which restores what was before it.
    """
    if TLS.default_device is not None:
        return TLS.default_device
    return TLS.device_stack[-1][0] if TLS.device_stack else None


def default_device() -> device:
    """The device of new tensors in this thread: the chosen one, else the CPU."""
    return chosen_device() or CPU


def get_default_device() -> device:
    """Where factory functions put a tensor when no `device=` is given."""
    return default_device()


def set_default_device(device_: DeviceLike | None) -> None:
    """Make `device_` the default of this thread's factory functions; None takes that back.

    Inside of a `with torch.device(...)` block it counts until the end of the block.
    """
    new = None if device_ is None else placed(device_)
    if TLS.default_device is None and new is not None:
        _state.enter_special()
    elif TLS.default_device is not None and new is None:
        _state.leave_special()
    TLS.default_device = new
