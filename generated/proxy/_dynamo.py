# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._dynamo, functional stub: nothing is compiled."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.compiler import (
    disable, set_stance, substitute_in_graph,
)
from torch._dynamo.eval_frame import (
    OptimizedModule,
)
from mindtorch_v2._torch_proxy.placeholders import NoOpContext, identity, import_only_function, lazy_children, returning

_MODULE = "torch._dynamo"
_BECAUSE = "there is no compiler"
graph_break = returning("graph_break", _MODULE, None)
is_compiling = returning("is_compiling", _MODULE, False)
is_dynamo_supported = returning("is_dynamo_supported", _MODULE, False)
is_inductor_supported = returning("is_inductor_supported", _MODULE, False)
list_backends = returning("list_backends", _MODULE, [])
mark_dynamic = returning("mark_dynamic", _MODULE, None)
mark_static = returning("mark_static", _MODULE, None)
mark_static_address = returning("mark_static_address", _MODULE, None)
maybe_mark_dynamic = returning("maybe_mark_dynamic", _MODULE, None)
reset = returning("reset", _MODULE, None)
reset_code = returning("reset_code", _MODULE, None)
reset_code_caches = returning("reset_code_caches", _MODULE, None)
set_recursion_limit = returning("set_recursion_limit", _MODULE, None)
skip_frame = returning("skip_frame", _MODULE, None)
step_unsupported = returning("step_unsupported", _MODULE, None)
allow_c_slot = identity("allow_c_slot", _MODULE)
allow_in_graph = identity("allow_in_graph", _MODULE)
assume_constant_result = identity("assume_constant_result", _MODULE)
disable_nested_graph_breaks = identity("disable_nested_graph_breaks", _MODULE)
disallow_in_graph = identity("disallow_in_graph", _MODULE)
dont_skip_tracing = identity("dont_skip_tracing", _MODULE)
forbid_in_graph = identity("forbid_in_graph", _MODULE)
nonstrict_trace = identity("nonstrict_trace", _MODULE)
run = identity("run", _MODULE)
explain = import_only_function("explain", _MODULE, _BECAUSE, NotImplementedError)
export = import_only_function("export", _MODULE, _BECAUSE, NotImplementedError)
lookup_backend = import_only_function("lookup_backend", _MODULE, _BECAUSE, NotImplementedError)
optimize = import_only_function("optimize", _MODULE, _BECAUSE, NotImplementedError)
optimize_assert = import_only_function("optimize_assert", _MODULE, _BECAUSE, NotImplementedError)
register_backend = import_only_function("register_backend", _MODULE, _BECAUSE, NotImplementedError)
replay = import_only_function("replay", _MODULE, _BECAUSE, NotImplementedError)
__getattr__ = lazy_children(_MODULE)


class error_on_graph_break(NoOpContext):
    """Changes nothing."""


class override_cudagraphs(NoOpContext):
    """Changes nothing."""


class patch_dynamo_config(NoOpContext):
    """Changes nothing."""
