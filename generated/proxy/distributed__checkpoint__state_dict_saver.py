# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.checkpoint.state_dict_saver, import-only stub."""

from __future__ import annotations

from torch.distributed.checkpoint import (
    async_save, save, save_state_dict,
)

_MODULE = "torch.distributed.checkpoint.state_dict_saver"
