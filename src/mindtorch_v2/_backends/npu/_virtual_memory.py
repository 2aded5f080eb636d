"""Calls of ACL for addresses and memory apart from each other: see Note [Expandable segments] in _expandable.py."""

from __future__ import annotations

import struct
from typing import Any

from .errors import NpuError

_NEEDED = "aclrtReserveMemAddress aclrtReleaseMemAddress aclrtMallocPhysical aclrtFreePhysical aclrtMapMem aclrtUnmapMem".split()


class VirtualMemory:
    """The part of the runtime that reserves addresses and puts memory behind them."""

    ffi: Any
    libraries: Any
    has: Any
    on: Any
    call: Any
    _int: Any
    _pointer: Any
    _releasable: Any

    def __init__(self) -> None:
        self._ranges: dict[int, int] = {}
        """The devices of what is reserved, by the first address."""
        self._mapped: dict[int, tuple[int, int]] = {}
        """Device and memory, by the address where it is."""

    def has_virtual_memory(self, device: int) -> bool:
        """Whether addresses can be reserved, for memory that comes later."""
        if not all(map(self.has, _NEEDED)):
            return False
        try:
            self.release_addresses(device, self.reserve_addresses(device, 512))
        except NpuError:
            return False
        return True

    def reserve_addresses(self, device: int, nbytes: int) -> int:
        """The first of so many addresses that nothing else is given."""
        cell = self.ffi.new("void **")
        with self.on(device):
            self.call("aclrtReserveMemAddress", cell, nbytes, 0, self.ffi.NULL, 1)  # for huge pages
        address = self._int(cell[0])
        self._ranges[address] = device
        return address

    def release_addresses(self, device: int, address: int) -> None:
        """Give addresses back, behind which no memory is any more."""
        if self._releasable():
            with self.on(device):
                self.call("aclrtReleaseMemAddress", self._pointer(address))
            self._ranges.pop(address, None)

    def malloc_physical(self, device: int, nbytes: int) -> int:
        """A handle of memory without an address. NpuOutOfMemory when there is not enough."""
        cell = self.ffi.new("aclrtDrvMemHandle *")
        # aclrtPhysicalMemProp: handles that are not shared, pinned memory, its kind, the device and that it is one, 0
        prop = self.ffi.new(
            "char[]", struct.pack("@iiiIiQ", 0, 0, self.libraries.constant("ACL_HBM_MEM_HUGE"), device, 1, 0)
        )
        with self.on(device):
            self.call(
                "aclrtMallocPhysical",
                cell,
                nbytes,
                self.ffi.cast("aclrtPhysicalMemProp *", prop),
                0,
                detail=f"{nbytes} bytes on npu:{device}",
            )
        return self._int(cell[0])

    def free_physical(self, device: int, handle: int) -> None:
        """Give memory back that is not mapped."""
        if self._releasable():
            with self.on(device):
                self.call("aclrtFreePhysical", self._pointer(handle))

    def map_memory(self, device: int, address: int, nbytes: int, handle: int) -> None:
        """Put memory, all of it, behind addresses."""
        with self.on(device):
            self.call("aclrtMapMem", self._pointer(address), nbytes, 0, self._pointer(handle), 0)
        self._mapped[address] = device, handle

    def unmap_memory(self, device: int, address: int) -> None:
        """Take the memory away again that was put there. No work may use it."""
        if self._releasable():
            with self.on(device):
                self.call("aclrtUnmapMem", self._pointer(address))
            self._mapped.pop(address, None)

    def release_mapped(self) -> None:
        """Give all memory and addresses back."""
        for address, (device, handle) in list(self._mapped.items()):
            self.unmap_memory(device, address)
            self.free_physical(device, handle)
        for address, device in list(self._ranges.items()):
            self.release_addresses(device, address)
