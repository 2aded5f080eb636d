# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.utils.bottleneck, import-only stub: profiling of scripts."""

from __future__ import annotations

_MODULE = "torch.utils.bottleneck"
