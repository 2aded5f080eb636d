# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.tensor.device_mesh, import-only stub."""

from __future__ import annotations

from torch.distributed.device_mesh import (
    DeviceMesh, init_device_mesh,
)

_MODULE = "torch.distributed.tensor.device_mesh"
