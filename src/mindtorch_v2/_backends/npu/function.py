"""A function of CANN as calls name it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .runtime import get_runtime


class Function:
    """An aclnn function: its name, how each C parameter is passed, and what it is called. Its symbols are looked up at the first call."""

    __slots__ = ("name", "kinds", "parameters", "addresses", "_phases")

    def __init__(self, name: str, kinds: str, parameters: str = "") -> None:
        self.name = name
        self.kinds = tuple(kinds.split())
        self.parameters = tuple(parameters.split())
        self.addresses: Any = None  # of both phases, when the extension has launched it
        self._phases: tuple[Callable, Callable] | None = None

    @property
    def phases(self) -> tuple[Callable, Callable]:
        """Both phases. NpuError, naming the version of CANN, when it has no such function."""
        found = self._phases
        if found is None:
            runtime = get_runtime()
            found = runtime.symbol(f"{self.name}GetWorkspaceSize"), runtime.symbol(self.name)
            self._phases = found
        return found

    def __repr__(self) -> str:
        return f"<aclnn function {self.name}>"
