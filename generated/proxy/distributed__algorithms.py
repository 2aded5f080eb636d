# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.algorithms, import-only stub."""

from __future__ import annotations

from torch.distributed.algorithms.join import (
    Join, JoinHook, Joinable,
)
from mindtorch_v2._torch_proxy.placeholders import lazy_children

_MODULE = "torch.distributed.algorithms"
__getattr__ = lazy_children(_MODULE)
