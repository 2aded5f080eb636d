# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.monitor, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function

_MODULE = "torch.monitor"
_BECAUSE = "there is no monitor"
log_event = import_only_function("log_event", _MODULE, _BECAUSE, NotImplementedError)
register_event_handler = import_only_function("register_event_handler", _MODULE, _BECAUSE, NotImplementedError)


class Aggregation(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class Event(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class Stat(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
