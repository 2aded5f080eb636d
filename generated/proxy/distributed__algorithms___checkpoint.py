# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.algorithms._checkpoint, import-only stub: activation checkpointing of distributed modules."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import lazy_children

_MODULE = "torch.distributed.algorithms._checkpoint"
__getattr__ = lazy_children(_MODULE)
