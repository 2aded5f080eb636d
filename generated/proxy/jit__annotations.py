# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.jit.annotations, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.jit import (
    BroadcastingList1, BroadcastingList2, BroadcastingList3, BroadcastingList4, BroadcastingList5,
    BroadcastingList6, BroadcastingListCls, Dict, Future, List, Optional, Tuple,
)
from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch.jit.annotations"
_BECAUSE = "there is no TorchScript compiler"
get_signature = import_only_function("get_signature", _MODULE, _BECAUSE, NotImplementedError)
parse_type_line = import_only_function("parse_type_line", _MODULE, _BECAUSE, NotImplementedError)
