# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._guards, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, NoOpContext, returning

_MODULE = "torch._guards"
_BECAUSE = "there is no symbolic tracing"
active_fake_mode = returning("active_fake_mode", _MODULE, None)
detect_fake_mode = returning("detect_fake_mode", _MODULE, None)


class compile_context(NoOpContext):
    """Changes nothing."""


class tracing(NoOpContext):
    """Changes nothing."""


class CompileContext(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class Guard(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ShapeGuard(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class Source(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class TracingContext(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
