# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.export.dynamic_shapes, import-only stub."""

from __future__ import annotations

from torch.export import (
    AdditionalInputs, Dim, ShapesCollection, dims,
)

_MODULE = "torch.export.dynamic_shapes"
