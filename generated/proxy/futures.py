# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.futures, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function

_MODULE = "torch.futures"
_BECAUSE = "there are no futures of remote work"
collect_all = import_only_function("collect_all", _MODULE, _BECAUSE, NotImplementedError)
wait_all = import_only_function("wait_all", _MODULE, _BECAUSE, NotImplementedError)


class Future(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
