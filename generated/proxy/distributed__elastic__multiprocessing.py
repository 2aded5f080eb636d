# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.elastic.multiprocessing, import-only stub: elastic launching."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import lazy_children

_MODULE = "torch.distributed.elastic.multiprocessing"
__getattr__ = lazy_children(_MODULE)
