# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.utils._triton, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import returning

_MODULE = "torch.utils._triton"
has_triton = returning("has_triton", _MODULE, False)
has_triton_package = returning("has_triton_package", _MODULE, False)
