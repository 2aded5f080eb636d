"""What tests of the emulator's runtime share: CANN's codes, arrays."""

from __future__ import annotations

import ctypes

import numpy as np

PARAM, CONTEXT, STREAM_CONTEXT, HANDLE, UNSUPPORTED, MEMORY = 107000, 107002, 107003, 107017, 207000, 207001
NULLPTR, INVALID, RUNTIME, INNER, INNER_NULLPTR = 161001, 161002, 361001, 561000, 561103


def ints(*values):
    return (ctypes.c_int64 * len(values))(*values)


class Slow:
    """A test operator that takes `seconds`, launched on a stream."""

    def __init__(self, lib, stream, seconds):
        self.lib = lib
        self.blocks = lib.upload(np.arange(4, dtype=np.float32)), lib.upload(np.zeros(4, np.float32))
        self.tensors = [lib.tensor(block, (4,)) for block in self.blocks]
        lib.emFault(b"slow:emCopy", 1, int(seconds * 1e6))
        lib.copy(*self.tensors, stream)
        self.result = self.blocks[1]

    def release(self):
        for tensor in self.tensors:
            self.lib.ok("aclDestroyTensor", tensor)
        for block in self.blocks:
            self.lib.ok("aclrtFree", block)
