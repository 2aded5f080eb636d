# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._jit_internal, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.jit import (
    BroadcastingList1, BroadcastingList2, BroadcastingList3, BroadcastingList4, BroadcastingList5,
    BroadcastingList6, BroadcastingListCls, _copy_to_script_wrapper, _overload, _overload_method, boolean_dispatch,
)
from mindtorch_v2.futures import (
    Future,
)
from torch.jit import (
    Final, export, ignore, is_scripting, unused,
)

_MODULE = "torch._jit_internal"
_BECAUSE = "there is no TorchScript compiler"
