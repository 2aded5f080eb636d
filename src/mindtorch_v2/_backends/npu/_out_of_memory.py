"""The error of a device without room."""

from __future__ import annotations

OUT_OF_MEMORY = 207001
"""ACL's code for it."""


class NpuOutOfMemory(RuntimeError):
    """The device, or the part of it that the process may use, has no room for an allocation."""

    code = OUT_OF_MEMORY
