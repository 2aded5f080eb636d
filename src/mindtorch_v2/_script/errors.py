"""What goes wrong with a TorchScript file: `ScriptError` says where in its code."""

from __future__ import annotations


class ScriptError(RuntimeError):
    """The code of a file says what cannot be read or run here."""


class Error(Exception):
    """`torch.jit.Error`: an exception that the code of a file raised itself."""


JITException = Error


class Raised(Exception):
    """An exception of the code on its way out. kind: the name of its class as the file tells it, or ""; text: its message."""

    def __init__(self, text: str, kind: str):
        super().__init__(text)
        self.text = text
        self.kind = kind


class Failed(Exception):
    """A failure on its way out: what failed, and the places of the calls that led there, innermost first."""

    def __init__(self, cause: BaseException):
        super().__init__(str(cause))
        self.cause = cause
        self.places: list[tuple[str, int, str, str]] = []

    def public(self) -> Exception:
        """The error that the caller of a method sees: the places with their lines, and what failed last."""
        lines = [
            "The following operation failed in the TorchScript interpreter.",
            "Traceback of TorchScript, serialized code (most recent call last):",
        ]
        for path, line, name, text in reversed(self.places):
            lines += [f'  File "{path}", line {line}, in {name}', f"    {text}"]
        lines[-1] += "  <--- HERE"
        if isinstance(self.cause, Raised):
            return Error("\n".join([*lines, f"{self.cause.kind or 'RuntimeError'}: {self.cause.text}"]))
        kind = type(self.cause).__name__
        made = ScriptError if isinstance(self.cause, ScriptError) else RuntimeError
        return made("\n".join([*lines, f"{'RuntimeError' if made is ScriptError else kind}: {self.cause}"]))


def at(path: str, line: int, text: str) -> ScriptError:
    """The error of code that cannot be read."""
    return ScriptError(f"{path}:{line}: {text}")
