# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.fx._symbolic_trace, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, identity, import_only_function, returning

_MODULE = "torch.fx._symbolic_trace"
_BECAUSE = "there is no symbolic tracing"
is_fx_symbolic_tracing = returning("is_fx_symbolic_tracing", _MODULE, False)
is_fx_tracing = returning("is_fx_tracing", _MODULE, False)
is_fx_tracing_warning = returning("is_fx_tracing_warning", _MODULE, None)
wrap = identity("wrap", _MODULE)
symbolic_trace = import_only_function("symbolic_trace", _MODULE, _BECAUSE, NotImplementedError)


class ProxyableClassMeta(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class Tracer(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
