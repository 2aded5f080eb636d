# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.fx.experimental.proxy_tensor, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, NoOpContext, import_only_function, returning

_MODULE = "torch.fx.experimental.proxy_tensor"
_BECAUSE = "there is no symbolic tracing"
get_proxy_mode = returning("get_proxy_mode", _MODULE, None)
make_fx = import_only_function("make_fx", _MODULE, _BECAUSE, NotImplementedError)


class disable_proxy_modes_tracing(NoOpContext):
    """Changes nothing."""


class ProxyTorchDispatchMode(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class PythonKeyTracer(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
