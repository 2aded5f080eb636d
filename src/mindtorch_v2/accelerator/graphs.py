"""`torch.accelerator.Graph`, which says what is missing when it is made."""

from __future__ import annotations

from typing import Any

from ..npu._missing import CAPTURE
from ._kind import require

__all__ = ["Graph"]


class Graph:
    """RuntimeError without an accelerator, else NotImplementedError: graphs of an NPU's work are not captured."""

    def __init__(self, keep_graph: bool = False, *, pool: Any = None, capture_error_mode: str = "default") -> None:
        require()
        raise NotImplementedError(f"torch.accelerator.Graph can be imported but not called: {CAPTURE}")
