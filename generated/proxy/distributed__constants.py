# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.constants, functional stub."""

from __future__ import annotations

_MODULE = "torch.distributed.constants"
default_pg_nccl_timeout = None
default_pg_timeout = None
