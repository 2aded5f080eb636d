# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._dynamo.decorators, functional stub."""

from __future__ import annotations

from torch._dynamo import (
    allow_in_graph, assume_constant_result, disable, disallow_in_graph, forbid_in_graph, graph_break, mark_dynamic,
    mark_static, mark_static_address, maybe_mark_dynamic, nonstrict_trace, run, set_stance, substitute_in_graph,
)
from mindtorch_v2._torch_proxy.placeholders import returning

_MODULE = "torch._dynamo.decorators"
_BECAUSE = "there is no compiler"
mark_unbacked = returning("mark_unbacked", _MODULE, None)
