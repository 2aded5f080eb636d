# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.cuda.nccl, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import returning

_MODULE = "torch.cuda.nccl"
is_available = returning("is_available", _MODULE, False)
version = returning("version", _MODULE, [])
