# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.compiler, functional stub: nothing is compiled, so every switch of the compiler is accepted and changes nothing."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.compiler import (
    compile, disable, set_stance, substitute_in_graph,
)
from mindtorch_v2._torch_proxy.placeholders import identity, import_only_function, lazy_children, returning

_MODULE = "torch.compiler"
_BECAUSE = "there is no compiler"
cudagraph_mark_step_begin = returning("cudagraph_mark_step_begin", _MODULE, None)
is_compiling = returning("is_compiling", _MODULE, False)
is_dynamo_compiling = returning("is_dynamo_compiling", _MODULE, False)
is_exporting = returning("is_exporting", _MODULE, False)
keep_portable_guards_unsafe = returning("keep_portable_guards_unsafe", _MODULE, [])
keep_tensor_guards_unsafe = returning("keep_tensor_guards_unsafe", _MODULE, [])
list_backends = returning("list_backends", _MODULE, [])
load_cache_artifacts = returning("load_cache_artifacts", _MODULE, None)
reset = returning("reset", _MODULE, None)
save_cache_artifacts = returning("save_cache_artifacts", _MODULE, None)
set_enable_guard_collectives = returning("set_enable_guard_collectives", _MODULE, False)
skip_all_guards_unsafe = returning("skip_all_guards_unsafe", _MODULE, [])
skip_guard_on_all_nn_modules_unsafe = returning("skip_guard_on_all_nn_modules_unsafe", _MODULE, [])
skip_guard_on_globals_unsafe = returning("skip_guard_on_globals_unsafe", _MODULE, [])
skip_guard_on_inbuilt_nn_modules_unsafe = returning("skip_guard_on_inbuilt_nn_modules_unsafe", _MODULE, [])
allow_in_graph = identity("allow_in_graph", _MODULE)
assume_constant_result = identity("assume_constant_result", _MODULE)
nested_compile_region = identity("nested_compile_region", _MODULE)
wrap_numpy = identity("wrap_numpy", _MODULE)
load_compiled_function = import_only_function("load_compiled_function", _MODULE, _BECAUSE, NotImplementedError)
__getattr__ = lazy_children(_MODULE)
