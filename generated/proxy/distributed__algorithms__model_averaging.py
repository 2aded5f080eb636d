# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.algorithms.model_averaging, import-only stub: averaging of models."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import lazy_children

_MODULE = "torch.distributed.algorithms.model_averaging"
__getattr__ = lazy_children(_MODULE)
