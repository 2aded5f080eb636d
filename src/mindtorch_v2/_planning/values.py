"""Known values: what a plan computes for real because programs decide by it.

Masks, positions and lengths are small and mostly made from constants, and a program may ask `if mask.all()`. So small integral and boolean tensors (and
quite small floating ones) keep their elements beside their meta storage, as long as all that they are computed from is known too.

Note [Elements of a meta storage]
The elements belong to the storage (`MetaStorage.elements`, bytes), so views and in-place operations on them need no bookkeeping: the known value of any
tensor is a strided view of those bytes.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy import ndarray

from .._api.functions.randomness import Generator, default_generator
from .._device import CPU
from .._dispatch import dispatcher
from .._dispatch.operator import Operator
from .._payload import extent
from .._state import TLS
from .._tensor import Tensor, wrap

LARGEST = 1 << 20  # elements of an integral or boolean tensor: a mask of 1024 by 1024
LARGEST_FLOATING = 1 << 12


def small(shape: tuple, kind: Any) -> bool:
    """Whether the elements of such a tensor are worth keeping."""
    count = 1
    for n in shape:
        count *= n
    return count <= (LARGEST if kind.category < 2 else LARGEST_FLOATING)


def values(tensor: Tensor) -> ndarray | None:
    """The elements of a meta tensor, where they are known: a view, see Note [Elements of a meta storage]."""
    payload = tensor._payload
    kind = tensor._dtype.np
    root = payload.storage.elements
    if root is None or kind is None:
        return None
    if not payload.size:
        return np.empty(payload.shape, kind)
    item = tensor._dtype.itemsize
    return np.ndarray(payload.shape, kind, root, payload.offset * item, tuple(s * item for s in payload.stride))


def keep(tensor: Tensor, array: ndarray) -> None:
    """Let a meta tensor that owns its storage have the elements of an array of its shape and dtype."""
    payload = tensor._payload
    payload.storage.elements = np.zeros(extent(payload.shape, payload.stride) * tensor._dtype.itemsize, np.uint8)
    target = values(tensor)
    if target is not None:
        target[...] = array


def forget(tensor: Tensor) -> None:
    """Its elements, and those of all that shares its storage, are not known any more."""
    tensor._payload.storage.elements = None


def on_cpu(op: Operator, args: tuple) -> tuple | None:
    """The arguments as CPU tensors over the known elements, or None when some are not known."""
    found: list = []
    for param, value in zip(op.params, args):
        if param.type == "Device":
            value = None if value is None else CPU
        elif value.__class__ is list and any(isinstance(item, Tensor) for item in value):
            value = [_host(item) for item in value]
            if any(item is _UNKNOWN for item in value):
                return None
        elif isinstance(value, Tensor):
            value = _host(value)
            if value is _UNKNOWN:
                return None
        found.append(value)
    return tuple(found)


_UNKNOWN = object()


def _host(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    array = values(value) if value._payload.__class__ is not ndarray else value._payload
    return _UNKNOWN if array is None else wrap(array, value._dtype)


def is_random(op: Operator) -> bool:
    """Whether a call draws random numbers."""
    return "nondeterministic_seeded" in op.tags or any(param.type == "Generator" for param in op.params)


class RandomNumbers:
    """The random numbers of a plan, the same ones each time. The program's generator does not move."""

    def __init__(self) -> None:
        self._state = Generator().manual_seed(0).get_state()

    def __enter__(self) -> None:
        self._before = default_generator.get_state()
        default_generator.set_state(self._state)

    def __exit__(self, *exc: object) -> None:
        self._state = default_generator.get_state()
        default_generator.set_state(self._before)


@contextmanager
def unobserved():
    """Inside, operators run for real: no observer, no history, no autocast, the CPU as the default device."""
    before = TLS.observer, TLS.grad_enabled, TLS.autocast
    TLS.observer, TLS.grad_enabled, TLS.autocast = None, False, None
    try:
        with CPU:
            yield
    finally:
        TLS.observer, TLS.grad_enabled, TLS.autocast = before


def compute(op: Operator, args: tuple) -> Any:
    """The result of a call with CPU arguments."""
    with unobserved():
        return dispatcher.call_converted(op, args)


def compute_into(op: Operator, args: tuple, target: ndarray) -> None:
    """An in-place call (or one with `out=`) with CPU arguments, of which the first is `target` when the operator itself is an in-place one."""
    with unobserved():
        if op.is_inplace:
            dispatcher.call_inplace(op, args, converted=True)
        else:
            result = dispatcher.call_converted(op, args)
            np.copyto(target, (result[0] if isinstance(result, tuple) else result)._payload, casting="unsafe")
