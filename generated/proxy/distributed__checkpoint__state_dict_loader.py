# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.checkpoint.state_dict_loader, import-only stub."""

from __future__ import annotations

from torch.distributed.checkpoint import (
    load, load_state_dict,
)

_MODULE = "torch.distributed.checkpoint.state_dict_loader"
