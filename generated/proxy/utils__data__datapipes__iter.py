# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.utils.data.datapipes.iter, import-only stub."""

from __future__ import annotations

from torch.utils.data.datapipes.iter.combinatorics import (
    ShufflerIterDataPipe,
)
from mindtorch_v2._torch_proxy.placeholders import lazy_children

_MODULE = "torch.utils.data.datapipes.iter"
__getattr__ = lazy_children(_MODULE)
