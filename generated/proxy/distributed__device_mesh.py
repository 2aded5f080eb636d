# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.device_mesh, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function

_MODULE = "torch.distributed.device_mesh"
_BECAUSE = "mindtorch_v2 runs in one process"
init_device_mesh = import_only_function("init_device_mesh", _MODULE, _BECAUSE, NotImplementedError)


class DeviceMesh(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
