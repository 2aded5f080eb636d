# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.export.decomp_utils, import-only stub."""

from __future__ import annotations

from torch.export import (
    CustomDecompTable,
)

_MODULE = "torch.export.decomp_utils"
