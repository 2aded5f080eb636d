"""Names of the capture of graphs, which say what is missing when they are called."""

from __future__ import annotations

from ._missing import NAMES as _NAMES

__all__ = [
    "NPUGraph",
    "graph",
    "graph_pool_handle",
    "graph_task_group_begin",
    "graph_task_group_end",
    "graph_task_update_begin",
    "graph_task_update_end",
    "is_current_stream_capturing",
    "make_graphed_callables",
    "super_kernel_scope_begin",
    "super_kernel_scope_end",
]

NPUGraph, graph = _NAMES["NPUGraph"], _NAMES["graph"]
graph_pool_handle, make_graphed_callables = _NAMES["graph_pool_handle"], _NAMES["make_graphed_callables"]
graph_task_group_begin, graph_task_group_end = _NAMES["graph_task_group_begin"], _NAMES["graph_task_group_end"]
graph_task_update_begin, graph_task_update_end = _NAMES["graph_task_update_begin"], _NAMES["graph_task_update_end"]
super_kernel_scope_begin, super_kernel_scope_end = _NAMES["super_kernel_scope_begin"], _NAMES["super_kernel_scope_end"]


def is_current_stream_capturing() -> bool:
    """False: nothing is captured."""
    return False
