"""`torch.pipeline()`: the context in which operators are recorded."""

from __future__ import annotations

import os
from typing import Any

from ... import _state
from ..._state import TLS
from . import report
from .recorder import Recorder, connect

MAX_OPS = 4096
MAX_BYTES = 1 << 30


class Pipeline:
    """Records the operators of its block and runs them when their results are asked for, at the latest when the block ends.

    fuse: run chains of pointwise operators block by block; otherwise one operator after the other. max_ops, max_bytes: run what is recorded
    when it is more operators, or gives more bytes, than this.

    Results are the same as without it. Errors in shapes, dtypes and devices come where the call is written; those that only the elements show come when
    the operator runs, with the line that recorded it. Memory that numpy shares is read when an operator runs: an array that is changed
    behind torch's back within the block may be seen in its new state. Blocks nest, and belong to the thread that entered them.
    """

    careful = False
    """Whether only such calls wait as cannot fail whatever the data are: see `Careful`."""

    def __init__(self, fuse: bool = True, max_ops: int = MAX_OPS, max_bytes: int = MAX_BYTES) -> None:
        if max_ops < 1 or max_bytes < 0:
            raise ValueError(
                f"pipeline(): max_ops must be at least 1 and max_bytes at least 0, but got {max_ops} and {max_bytes}"
            )
        self.fuse = fuse
        self.max_ops = max_ops
        self.max_bytes = max_bytes
        self._recorder: Recorder | None = None
        self._history = report.History()

    def __enter__(self) -> Pipeline:
        if self._recorder is not None:
            raise RuntimeError("pipeline(): this pipeline is active already; a nested block needs one of its own")
        recorder = TLS.pipeline
        if recorder is None:
            recorder = TLS.recorder
            if recorder is None:
                connect()
                recorder = TLS.recorder = Recorder()
            TLS.pipeline = recorder
            _state.enter_pipeline()
        self._history.clear()
        self._recorder = recorder
        recorder.enter(self)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        recorder = self._recorder
        assert recorder is not None
        try:
            failure = recorder.run(None if len(recorder.pipes) == 1 else lambda entry: entry.pipe is self)
        finally:
            self._recorder = None
            if recorder.leave(self):
                TLS.pipeline = None
                _state.leave_pipeline()
        # After an error of the block that one goes on; the tensors that could not be computed keep theirs.
        if failure is not None and error is None:
            raise failure.exception()

    def flush(self) -> None:
        """Run what is recorded. Raises the first error of an operator, once all others have run. RuntimeError outside of the block."""
        if self._recorder is None:
            raise RuntimeError("pipeline(): flush() outside of the block: nothing is recorded")
        self._recorder.flush()

    def explain(self, html: str | os.PathLike | None = None) -> str:
        """The plans of the flushes so far, and of what is recorded now: which operator was recorded where, what runs in one pass, which
        results are never written to memory, and the bytes that this saves. Prints the text and returns it.

        html: a file for the same as a page with a graph of the steps, which needs no network.
        """
        plans = self._history.with_pending([] if self._recorder is None else self._recorder.preview(self.fuse))
        text = report.text(plans)
        if html is not None:
            from .drawing import page_of

            with open(html, "w", encoding="utf-8") as f:
                f.write(page_of(plans))
        print(text)
        return text

    def note(self, plan: list, sources: list | None = None) -> None:
        """Remember the plan of a flush: a list of steps, each a list of lines as `report.line` makes them, and which steps each reads."""
        self._history.add(plan, sources)

    def note_steps(self, steps: list) -> None:
        """Remember a flush by its steps."""
        self.note([[report.line(entry, step) for entry in step.entries] for step in steps], report.sources_of(steps))


class Careful(Pipeline):
    """A pipeline that a program cannot tell from running at once, but by its time: pointwise operators on floating-point numbers and those that work row by
    row wait, since they cannot fail; all others run where they are called. Chains of both go part by part through the cache (see rows.py)."""

    careful = True

    def __init__(self) -> None:
        super().__init__()
        self.saved = 0  # bytes of results that were never written to memory: nobody asks for more

    def note(self, plan: list, sources: list | None = None) -> None:
        self.saved += sum(line[5] for step in plan for line in step)

    def note_steps(self, steps: list) -> None:
        for step in steps:
            if step.fused:
                self.saved += sum(entry.nbytes() for entry in step.entries if not entry.kept)


def pipeline(fuse: bool = True, max_ops: int = MAX_OPS, max_bytes: int = MAX_BYTES) -> Pipeline:
    """A context whose operators are recorded and run when they are needed: see `Pipeline`.

        with torch.pipeline() as pipe:
            y = torch.tanh(x * w + b)   # nothing has run; y.shape, y.dtype, y.grad_fn are known
        print(y)

    ValueError for limits that make no sense.
    """
    return Pipeline(fuse, max_ops, max_bytes)


def current_pipeline() -> Pipeline | None:
    """The innermost active pipeline of this thread, or None."""
    recorder = TLS.pipeline
    return None if recorder is None else recorder.pipes[-1]
