"""Payloads of tensors whose operators are recorded and have not run: what pipeline mode puts in a tensor's `_payload`.

Note [Pending payloads]
A pending payload knows shape, stride, dtype, offset and device, as every payload does, so rules, views, history and printing of shapes work
on it. Its storage stands for memory that does not exist yet: it points to the value (`_dispatch/pipeline/values.py`) that the memory will
hold. Views share the storage. `settle` runs what is needed and gives the real payload; `settled` does so for a tensor and puts the real payload in the
pending one's place. Whatever reads elements or hands out memory calls it first; code that was not written with this in mind gets the
real payload too, because a pending one looks up what it lacks in it.
"""

from __future__ import annotations

from typing import Any

from numpy import ndarray

from . import _memory
from ._device import device
from ._payload import DevicePayload
from ._sparse_payload import SparsePayload
from ._state import TLS

# Set by the module of tensors, which imports this one.
given_away: Any = None


class PendingStorage:
    """Memory to come. value: what it will hold, as of the last recorded operator that writes to it."""

    __slots__ = ("__weakref__", "device", "value", "writes")

    def __init__(self, value: Any, where: device) -> None:
        self.value = value
        self.device = where
        self.writes = 0  # recorded operators that write to parts of the value and have not run

    @property
    def is_pending(self) -> bool:
        """Whether an operator that writes to it has still to run."""
        return self.writes > 0 or (self.value.payload is None and self.value.error is None)

    def nbytes(self) -> int:
        """Size in bytes."""
        return self.value.nbytes()


class PendingPayload(DevicePayload):
    """A geometry over a PendingStorage; see Note [Pending payloads]."""

    __slots__ = ("_settled",)

    storage: PendingStorage

    def __init__(self, shape: tuple, stride: tuple, dtype: Any, offset: int, storage: PendingStorage) -> None:
        self.shape = shape
        self.stride = stride
        self.dtype = dtype
        self.offset = offset
        self.storage = storage
        self._settled = None

    @property
    def device(self) -> device:  # type: ignore[override]
        return self.storage.device

    @property
    def is_pending(self) -> bool:
        """Whether its elements have still to be computed."""
        return self.storage.is_pending

    def settle(self) -> Any:
        """The real payload, once what is needed for it has run. Raises what that raised, now or earlier."""
        storage = self.storage
        if storage.is_pending:
            storage.value.recorder.flush_for(storage)
        if self._settled is None:
            if storage.value.error is not None:
                raise storage.value.failure()
            self._settled = window(storage.value.payload, self.shape, self.stride, self.dtype, self.offset)
        return self._settled

    # What code that expects an array may ask; see Note [Pending payloads].

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_settled":
            raise AttributeError(name)
        return getattr(self.settle(), name)

    def __array__(self, *args: Any, **kwargs: Any) -> ndarray:
        return self.settle().__array__(*args, **kwargs)

    def __getitem__(self, index: Any) -> Any:
        return self.settle()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.settle()[index] = value


def window(root: Any, shape: tuple, stride: tuple, dtype: Any, offset: int) -> Any:
    """A view of a fresh payload's memory: geometry in elements of `dtype`, `offset` from the payload's first element."""
    if root.__class__ is ndarray:
        if dtype.np != root.dtype:
            whole = _memory.root_bytes(root)
            start = (_memory.address(root) - _memory.address(whole)) // dtype.itemsize
            return _memory.view_of_root(whole, shape, stride, start + offset, dtype.np)
        if root.shape == shape and offset == 0:
            item = root.itemsize
            if root.strides == tuple([s * item for s in stride]) or not root.size:
                return root
        return _memory.strided_view(root, shape, stride, offset)
    if root.dtype is dtype and root.shape == shape and root.stride == stride and not offset:
        return root
    start = root.offset * root.dtype.itemsize // dtype.itemsize
    return root.__class__(shape, stride, dtype, start + offset, root.storage)


def exposed(tensor: Any) -> Any:
    """The real payload of a tensor whose memory is handed out or written to: what is recorded and reads that memory has run too."""
    data = settled(tensor)
    given_away(tensor)
    if TLS.pipeline is not None:
        if isinstance(data, SparsePayload):
            for member in data.members():
                exposed(member)
        else:
            TLS.pipeline.before_write(data)
    return data


def current(tensor: Any) -> Any:
    """The payload of a tensor; a pending one is replaced when its elements are there."""
    data = tensor._payload
    if data.__class__ is PendingPayload and not data.is_pending:
        data = tensor._payload = data.settle()
    return data


def settled(tensor: Any) -> Any:
    """The real payload of a tensor; a pending one is made real first, and replaced."""
    data = tensor._payload
    if data.__class__ is PendingPayload:
        data = tensor._payload = data.settle()
    return data
