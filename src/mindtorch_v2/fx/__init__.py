"""Programs as graphs: record what a function does, change the graph, run it."""

from __future__ import annotations

from typing import Any, NoReturn

from . import graph, graph_module, interpreter, node, proxy
from ._symbolic_trace import Tracer, symbolic_trace, wrap
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy

__all__ = [
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "Tracer",
    "Transformer",
    "graph",
    "graph_module",
    "has_side_effect",
    "interpreter",
    "map_arg",
    "node",
    "proxy",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]


def replace_pattern(gm: Any, pattern: Any, replacement: Any) -> NoReturn:
    """Raises NotImplementedError: subgraphs are not searched for."""
    raise NotImplementedError("torch.fx.replace_pattern is not implemented: change the nodes of the graph instead")
