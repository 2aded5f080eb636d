# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.utils, import-only stub: helpers of distributed modules."""

from __future__ import annotations

_MODULE = "torch.distributed.utils"
