# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.backends.openmp, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import returning

_MODULE = "torch.backends.openmp"
is_available = returning("is_available", _MODULE, False)
