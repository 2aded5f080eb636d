# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.multiprocessing.reductions, import-only stub: reductions of tensors."""

from __future__ import annotations

_MODULE = "torch.multiprocessing.reductions"
