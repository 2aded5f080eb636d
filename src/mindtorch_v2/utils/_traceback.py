"""Where a program is, and where an error came from: tracebacks that cost little to take and little to read."""

from __future__ import annotations

import contextlib
import itertools
import linecache
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from types import CodeType, FrameType, TracebackType
from typing import Any

_PARENT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_NUMBERS = itertools.count(1)


@contextlib.contextmanager
def report_compile_source_on_error() -> Iterator[None]:
    """Show the lines of code that was made by `exec` in the traceback of an error in the block.

    The code's globals have its source by the name `__compile_source__`.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever it is, it goes on
        raise error.with_traceback(_with_source(error.__traceback__))  # noqa: B904 - it is the error that was caught


def _with_source(entry: TracebackType | None) -> TracebackType | None:
    if entry is None:
        return None
    rest, frame = _with_source(entry.tb_next), entry.tb_frame
    source = frame.f_globals.get("__compile_source__")
    if source is None or frame.f_code.co_filename != "<string>":
        entry.tb_next = rest
        return entry
    name = f"<compiled source {next(_NUMBERS)}>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    # Without an instruction the place is the line alone, since the stand-in has other instructions.
    return TracebackType(rest, _stand_in(frame, name), -1, entry.tb_lineno)


def _stand_in(frame: FrameType, filename: str) -> FrameType:
    """A frame that a traceback shows as `frame`, in another file: the file of a frame cannot be changed."""
    code = compile("_frame()", filename, "eval").replace(co_name=frame.f_code.co_name)
    return eval(code, {**frame.f_globals, "_frame": sys._getframe}, frame.f_locals)


def shorten_filename(fn: str, *, base: str | None = None) -> str:
    """A path relative to `base` (where this library lies) as far as they have parts in common."""
    try:
        common = os.path.commonpath([fn, base or _PARENT])
    except ValueError:  # on several drives, or one of them relative
        return fn
    return fn[len(common) + 1 :]


def format_frame(frame: traceback.FrameSummary, *, base: str | None = None, line: bool = False) -> str:
    """ "file:line in function", after the code itself with `line`."""
    place = f"{shorten_filename(frame.filename, base=base)}:{frame.lineno} in {frame.name}"
    return f"{frame.line}  # {place}" if line else place


def format_traceback_short(tb: TracebackType | None) -> str:
    """The innermost frame of a traceback in few words."""
    return format_frame(traceback.extract_tb(tb)[-1])


class CapturedTraceback:
    """The stack at some moment. It holds code objects and line numbers; the lines themselves are read when it is shown."""

    __slots__ = ("skip", "tb")

    def __init__(self, tb: list[tuple[CodeType, int]] | None, skip: int = 0) -> None:
        self.tb, self.skip = tb, skip

    @staticmethod
    def extract(*, script: bool = False, cpp: bool = False, skip: int = 0) -> CapturedTraceback:
        """The stack of the caller, without its `skip` innermost frames. Frames of Python only, whatever is asked for."""
        found, frame = [], sys._getframe(1)
        while frame is not None:
            found.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back
        return CapturedTraceback(found, skip)

    def cleanup(self) -> None:
        """Forget the stack."""
        self.tb = None

    def summary(self) -> traceback.StackSummary:
        """The frames, the outermost first; none after `cleanup`."""
        frames = reversed((self.tb or [])[self.skip :])
        return traceback.StackSummary.from_list(
            [traceback.FrameSummary(code.co_filename, line, code.co_name) for code, line in frames]
        )

    def format(self) -> list[str]:
        """The lines that show the stack."""
        return traceback.format_list(self.summary())

    @staticmethod
    def format_all(tbs: Sequence[CapturedTraceback]) -> list[list[str]]:
        """`format` of each."""
        return [captured.format() for captured in tbs]

    def __getstate__(self) -> Any:
        return None, {"tb": None, "skip": self.skip}  # code objects cannot be pickled
