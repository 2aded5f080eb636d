"""What may watch, and stand in for, the operators of a thread: `TLS.observer`.

It is installed together with `_state.enter_special`, so that every call comes to the dispatcher. Planning is one.
"""

from __future__ import annotations

from typing import Any, Protocol

from .operator import Operator


class Observer(Protocol):
    """The dispatcher's side of it. Composites are not shown, only the operators that they end in."""

    def arguments(self, op: Operator, args: tuple) -> tuple:
        """The arguments to go on with, before the rule sees them."""

    def buffer(self, out: Any) -> Any:
        """The `out=` buffer to go on with."""

    def run(self, op: Operator, spec: Any, args: tuple, where: Any) -> Any:
        """In place of the backend: fresh payloads as the spec says."""

    def ran(self, op: Operator, args: tuple, result: Any, written: Any = None) -> None:
        """A call has its result, history included. written: the tensor that it wrote to, of in-place and `out=` forms."""

    def values(self, tensor: Any) -> Any:
        """The elements of a meta tensor as an array, where they are known; else None."""
