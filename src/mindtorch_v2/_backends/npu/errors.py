"""The exceptions of the NPU backend. All are RuntimeErrors, as PyTorch's errors of devices are."""

from __future__ import annotations

from typing import Any

__all__ = ["CannNotFound", "NpuError", "NpuOutOfMemory", "OutOfMemoryError", "SymbolNotFound"]


class CannNotFound(RuntimeError):
    """CANN (or the emulator) is not there, or its libraries cannot be opened; says what was looked for, where, and what to do."""


class NpuError(RuntimeError):
    """A call of CANN failed.

    operation: what was called, and for which operator. code, name: the status (0 and empty where there is none). recent: CANN's own message.
    """

    def __init__(
        self, message: str, *, operation: str = "", code: int = 0, name: str = "", recent: str = "", detail: str = ""
    ) -> None:
        super().__init__(message)
        self.operation = operation
        self.code = code
        self.name = name
        self.recent = recent
        self.detail = detail

    @classmethod
    def of(cls, runtime: Any, operation: str, code: int, detail: str = "") -> NpuError:
        """The error of a status that an operation of a `Runtime` gave, with CANN's recent message (which this call takes)."""
        name = runtime.error_name(code) if code else ""
        recent = runtime.recent_error()
        message = operation
        if code:
            message += f" failed with error {code}" + (f" ({name})" if name else "")
        if detail:
            message += f": {detail}" if code else f" {detail}"
        if recent:
            message += f"\n{recent}"
        if name.endswith("_EXCEPTION"):  # of a kernel, which was launched earlier
            message += "\nThe device keeps this failure until it is reset: every later wait reports it. End the process, and start another one."
            runtime.reported.add((code, recent))
        kind = NpuOutOfMemory if code in OUT_OF_MEMORY and cls is NpuError else cls
        return kind(message, operation=operation, code=code, name=name, recent=recent, detail=detail)


class NpuOutOfMemory(NpuError):
    """A device, or the host for pinned memory, has not enough memory."""


OutOfMemoryError = NpuOutOfMemory
"""The class by PyTorch's name: NPUs are the only accelerators here, so what they raise is `torch.OutOfMemoryError`."""


class SymbolNotFound(NpuError):
    """A function that this installation of CANN does not have."""


OUT_OF_MEMORY = frozenset({200000, 207001, 207018})
