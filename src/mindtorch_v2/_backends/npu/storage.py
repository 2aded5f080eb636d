"""Device memory behind tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._device import device
from ..._memory import check_bounds, root_bytes
from ..._storage import DeviceStorage, UntypedStorage, storage_from_root
from . import allocator, transfers
from .payload import NpuPayload
from .streams import Stream, current_stream


class NpuStorage(DeviceStorage):
    """The bytes behind tensors of one NPU; they go back to the allocator with the last of them."""

    __slots__ = ("_where", "_index", "_nbytes", "_lease")

    _where: device
    _index: int
    _nbytes: int
    _lease: Any  # None where there are no bytes

    def __new__(cls, nbytes: int = 0, where: device | None = None) -> NpuStorage:
        made = object.__new__(cls)
        made._index = index = current_device() if where is None or where.index is None else where.index
        made._where = device("npu", index)
        made._nbytes = nbytes
        made._lease = allocator.get(index).lease(nbytes, current_stream(index).handle) if nbytes else None
        return made

    @property
    def device(self) -> device:
        return self._where

    @property
    def _root(self) -> Any:
        raise NotImplementedError(f"the bytes of a storage on {self._where} are not on the host; use .cpu() first")

    def data_ptr(self) -> int:
        """The device address of the first byte; 0 when there is none."""
        return 0 if self._lease is None else self._lease.address

    def get_device(self) -> int:
        """The index of the device."""
        return self._index

    def record_stream(self, stream: Any) -> None:
        """Keep the memory until the work that is on `stream` now has passed, even if the last tensor goes before. TypeError unless it is a Stream."""
        if not isinstance(stream, Stream):
            raise TypeError(f"record_stream(): argument 's' (position 1) must be Stream, not {type(stream).__name__}")
        if self._lease is not None:
            allocator.get(self._index).record_stream(self._lease.block, stream.handle)

    def resize_(self, nbytes: int) -> NpuStorage:
        """Another size; the bytes that fit are kept."""
        other = NpuStorage(nbytes, self._where)
        transfers.copy_bytes(other, self, min(nbytes, self._nbytes))
        self._lease, self._nbytes = other._lease, nbytes
        return self

    def clone(self) -> NpuStorage:
        """A copy on the same device."""
        made = NpuStorage(self._nbytes, self._where)
        transfers.copy_bytes(made, self, self._nbytes)
        return made

    def __deepcopy__(self, memo: dict) -> UntypedStorage:
        # As on the CPU: tensors of one storage go on to share one. The memo keeps this storage, and with it its identity.
        known = memo.setdefault("torch", {})
        if self._cdata not in known:
            known[self._cdata] = self.clone()
            memo[id(self)] = self
        return known[self._cdata]

    def __reduce__(self) -> tuple:
        return _on_device, (self.cpu(), str(self._where))

    def cpu(self) -> UntypedStorage:
        """The bytes on the CPU."""
        return storage_from_root(transfers.bytes_of(self))

    def copy_(self, source: Any, non_blocking: bool = False) -> NpuStorage:
        """The bytes of another storage of this size, of the CPU or an NPU."""
        if source.nbytes() != self._nbytes:
            raise RuntimeError(
                f"size does not match, self was {self._nbytes} bytes but src was {source.nbytes()} bytes"
            )
        if source.device.type == "npu":
            transfers.copy_bytes(self, source, self._nbytes)
        else:
            transfers.upload(self, 0, root_bytes(source._root))
        return self

    def fill_(self, value: int) -> NpuStorage:
        """Every byte the same."""
        transfers.upload(self, 0, np.full(self._nbytes, value, np.uint8))
        return self

    def view_payload(self, dtype: Any, shape: tuple, stride: tuple, offset: int) -> NpuPayload:
        """A payload that looks into this storage. RuntimeError when it would leave it."""
        check_bounds(self._nbytes, dtype.itemsize, shape, stride, offset * dtype.itemsize)
        return NpuPayload(shape, stride, dtype, offset, self)

    def tolist(self) -> list[int]:
        """The bytes as a list of ints."""
        return self.cpu().tolist()

    def __repr__(self) -> str:
        return f"...\n[{self.type()}(device={self._where}) of size {len(self)}]"


def _on_device(storage: UntypedStorage, where: str) -> UntypedStorage:
    """A storage that a pickle brought, on its device."""
    return storage.to(device=where)


def current_device() -> int:
    """The index of this thread's device."""
    from .runtime import get_runtime

    return get_runtime().current_device()
