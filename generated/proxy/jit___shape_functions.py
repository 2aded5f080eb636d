# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.jit._shape_functions, import-only stub: shapes of operators in TorchScript."""

from __future__ import annotations

_MODULE = "torch.jit._shape_functions"
