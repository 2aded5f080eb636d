# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.nn, import-only stub."""

from __future__ import annotations

from torch.distributed.nn.functional import (
    all_gather, all_reduce, all_to_all, all_to_all_single, broadcast, gather, reduce, reduce_scatter, scatter,
)
from mindtorch_v2._torch_proxy.placeholders import lazy_children

_MODULE = "torch.distributed.nn"
__getattr__ = lazy_children(_MODULE)
