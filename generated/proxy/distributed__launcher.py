# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.launcher, import-only stub."""

from __future__ import annotations

from torch.distributed.launcher.api import (
    LaunchConfig, elastic_launch,
)
from mindtorch_v2._torch_proxy.placeholders import lazy_children

_MODULE = "torch.distributed.launcher"
__getattr__ = lazy_children(_MODULE)
