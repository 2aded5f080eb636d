"""What a recorder keeps of the program: entries (operator calls), the values that they give, and what their arguments become.

Arguments never keep a PendingStorage alive, only values, so a storage lives exactly as long as somebody outside holds a tensor (or saved a
payload) of it: that is how the planner knows which results nobody will look at.
"""

from __future__ import annotations

import sys
import weakref
from traceback import clear_frames
from typing import Any

from numpy import ndarray

from ..._memory import owner
from ..._payload import contiguous_strides, extent
from ..._pending import PendingPayload, PendingStorage, window
from ..._tensor import Tensor, wrap
from ..._warnings import homes

HOMES = homes()
_inner: dict[str, bool] = {}  # by file: whether it is this package's


class Value:
    """A result: its geometry, and its payload once it is there. `holder` refers weakly to the storage that users see. `reader` is the entry of a plan
    that reads it last."""

    __slots__ = ("dtype", "error", "holder", "kept", "payload", "reader", "recorder", "shape", "step", "stride")

    shape: tuple
    stride: tuple
    dtype: Any
    payload: Any
    error: Failure | None
    holder: Any
    recorder: Any
    kept: bool
    reader: Any
    step: Any

    def nbytes(self) -> int:
        """Bytes of memory that it takes."""
        return extent(self.shape, self.stride) * self.dtype.itemsize

    def is_held(self) -> bool:
        """Whether somebody outside of the recorder may look at it."""
        holder = self.holder
        return holder is not None and holder() is not None

    def failure(self) -> Exception:
        """The error for who asks for a value that could not be computed."""
        assert self.error is not None
        return self.error.exception()


def describe(value: Value, shape: tuple, stride: tuple | None, dtype: Any, recorder: Any) -> None:
    """Fill in the geometry of a value that has still to be computed."""
    value.shape = shape
    value.stride = contiguous_strides(shape) if stride is None else stride
    value.dtype = dtype
    value.recorder = recorder
    value.payload = value.error = value.holder = value.step = None
    value.kept = False


def pending(value: Value, where: Any) -> PendingPayload:
    """The payload of a value that has still to be computed, over a storage of its own."""
    storage = PendingStorage(value, where)
    value.holder = weakref.ref(storage)
    return PendingPayload(value.shape, value.stride, value.dtype, 0, storage)


class Entry(Value):
    """One call. It is itself the value when the operator has one result.

    form: `run` gives fresh results; `into` (for `out=`) and `inplace` write to `target`; `copy` is a reshape that no view can be. args: with
    Value and Window in place of pending tensors, and tensors of their own in place of others. code and place: the line of the program
    that made the call. pipe: the pipeline that was the innermost then. fast: a kernel that may decline, to try first. block: the loop of a pointwise
    operator.
    """

    __slots__ = ("args", "block", "code", "fast", "form", "op", "parts", "pipe", "place", "spec", "target", "where")

    op: Any
    args: tuple
    spec: Any
    where: Any
    form: str
    parts: tuple[Part | None, ...] | None
    target: Value | Window | None
    code: Any
    place: int
    pipe: Any
    block: Any
    fast: Any

    @property
    def is_random(self) -> bool:
        """Whether it draws random numbers."""
        return "nondeterministic_seeded" in self.op.tags

    @property
    def is_pure(self) -> bool:
        """Whether it may be left out when nobody looks at its results: it cannot fail and draws nothing."""
        tags = self.op.tags
        return ("pointwise" in tags or "creation" in tags) and "nondeterministic_seeded" not in tags

    def origin(self) -> tuple[str, int, str]:
        """(file, line, function) of the program that made the call."""
        return origin(self.code, self.place)

    def results(self) -> tuple:
        """The values that it computes."""
        if self.target is not None:
            return ()
        return (self,) if self.parts is None else tuple(p for p in self.parts if p is not None)

    def operands(self) -> list[Value]:
        """The values that it reads, and the one that it writes to."""
        found = []
        for index in self.op.tensors:
            arg = self.args[index]
            for item in arg if arg.__class__ is list else (arg,):
                if isinstance(item, Value):
                    found.append(item)
                elif item.__class__ is Window:
                    found.append(item.value)
        if self.target is not None:
            found.append(root_of(self.target))
        return found

    def touches(self, memory: Any) -> bool:
        """Whether an argument lies in the memory of an owner (an ndarray, or the storage of another device)."""
        for index in self.op.tensors:
            arg = self.args[index]
            for item in arg if arg.__class__ is list else (arg,):
                if isinstance(item, Tensor):
                    payload = item._payload
                elif isinstance(item, (Value, Window)):
                    payload = root_of(item).payload
                else:
                    continue
                if payload is not None and memory_of(payload) is memory:
                    return True
        return False

    def describe(self) -> str:
        """The operator with the shapes and dtypes of its arguments."""
        shown = []
        for param, arg in zip(self.op.params, self.args):
            if param.type != "Tensor" or arg is None:
                continue
            items = arg if arg.__class__ is list else (arg,)
            text = ", ".join(_shown(item) for item in items)
            shown.append(f"{param.name} " + (f"({text})" if arg.__class__ is list else text))
        return f"aten::{self.op.full_name}({', '.join(shown)})"


class Part(Value):
    """One result of an operator that has several."""

    __slots__ = ()


class Given(Value):
    """Memory that was there before and that a recorded operator writes to."""

    __slots__ = ()


class Window:
    """A view of a value."""

    __slots__ = ("dtype", "offset", "shape", "stride", "value")

    def __init__(self, value: Value, shape: tuple, stride: tuple, dtype: Any, offset: int) -> None:
        self.value = value
        self.shape = shape
        self.stride = stride
        self.dtype = dtype
        self.offset = offset


class Failure:
    """Why a value could not be computed: the error, and where the program recorded the call."""

    __slots__ = ("error", "text")

    def __init__(self, error: Exception, entry: Entry) -> None:
        file, line, function = entry.origin()
        clear_frames(error.__traceback__)  # which hold the operands
        self.error = error
        self.text = f"{error}\n  (pipeline: {entry.describe()}, recorded at {file}:{line} in {function})"

    def exception(self) -> Exception:
        """An exception of the error's class whose message ends in the origin."""
        kind = type(self.error)
        try:
            made = kind(self.text)
            made.__dict__.update(self.error.__dict__)
        except TypeError:  # a class that wants other arguments
            made = RuntimeError(f"{kind.__name__}: {self.text}")
        made.__cause__ = self.error
        return made


def _shown(item: Any) -> str:
    return f"{list(item.shape)} {item.dtype}" if isinstance(item, (Tensor, Value, Window)) else repr(item)


def root_of(item: Value | Window) -> Value:
    """The value itself, or the one that a window looks into."""
    return item.value if item.__class__ is Window else item  # type: ignore[union-attr, return-value]


def covers(data: PendingPayload, value: Value) -> bool:
    """Whether a payload is all of a value, in its own layout."""
    return data.offset == 0 and data.shape == value.shape and data.stride == value.stride and data.dtype is value.dtype


def memory_of(payload: Any) -> Any:
    """What owns the memory of a real payload."""
    return owner(payload) if payload.__class__ is ndarray else payload.storage


def as_tensor(item: Any) -> Any:
    """An argument as kernels take it: a tensor with a real payload."""
    if item.__class__ is Window:
        return wrap(window(item.value.payload, item.shape, item.stride, item.dtype, item.offset), item.dtype)
    if isinstance(item, Value):
        return wrap(item.payload, item.dtype)
    return item


def origin(code: Any, place: int) -> tuple[str, int, str]:
    """(file, line, function) of an instruction of a code object."""
    if code is None:
        return ("<unknown>", 0, "?")
    line = code.co_firstlineno
    for start, stop, number in code.co_lines():
        if start <= place < stop and number is not None:
            line = number
    return (code.co_filename, line, code.co_name)


def caller() -> tuple[Any, int]:
    """(code object, instruction) of the line outside of this package that is being run."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        file = code.co_filename
        inside = _inner.get(file)
        if inside is None:
            inside = _inner[file] = file.startswith(HOMES)
        if not inside:
            return code, frame.f_lasti
        frame = frame.f_back
    return None, 0
