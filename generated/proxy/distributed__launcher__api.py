# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.launcher.api, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function

_MODULE = "torch.distributed.launcher.api"
_BECAUSE = "mindtorch_v2 runs in one process"
launch_agent = import_only_function("launch_agent", _MODULE, _BECAUSE, NotImplementedError)


class elastic_launch(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class LaunchConfig(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
