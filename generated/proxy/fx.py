# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.fx, import-only stub."""

from __future__ import annotations

from torch.fx._symbolic_trace import (
    Tracer, symbolic_trace,
)
from torch.fx.node import (
    Node, map_arg,
)
from torch.fx.proxy import (
    Proxy,
)
from mindtorch_v2._torch_proxy.placeholders import ImportOnly, identity, import_only_function, lazy_children

_MODULE = "torch.fx"
_BECAUSE = "there is no symbolic tracing"
has_side_effect = identity("has_side_effect", _MODULE)
wrap = identity("wrap", _MODULE)
replace_pattern = import_only_function("replace_pattern", _MODULE, _BECAUSE, NotImplementedError)
__getattr__ = lazy_children(_MODULE)


class CodeGen(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class Graph(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class GraphModule(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class Interpreter(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class Transformer(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
