# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.checkpoint.format_utils, import-only stub."""

from __future__ import annotations

from torch.distributed.checkpoint.default_planner import (
    _EmptyStateDictLoadPlanner,
)
from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch.distributed.checkpoint.format_utils"
_BECAUSE = "mindtorch_v2 runs in one process"
dcp_to_torch_save = import_only_function("dcp_to_torch_save", _MODULE, _BECAUSE, NotImplementedError)
torch_save_to_dcp = import_only_function("torch_save_to_dcp", _MODULE, _BECAUSE, NotImplementedError)
