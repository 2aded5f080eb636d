# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._inductor, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function, lazy_children, returning

_MODULE = "torch._inductor"
_BECAUSE = "there is no compiler"
cudagraph_mark_step_begin = returning("cudagraph_mark_step_begin", _MODULE, None)
list_mode_options = returning("list_mode_options", _MODULE, {})
list_options = returning("list_options", _MODULE, [])
aoti_compile_and_package = import_only_function("aoti_compile_and_package", _MODULE, _BECAUSE, NotImplementedError)
aoti_load_package = import_only_function("aoti_load_package", _MODULE, _BECAUSE, NotImplementedError)
compile = import_only_function("compile", _MODULE, _BECAUSE, NotImplementedError)
standalone_compile = import_only_function("standalone_compile", _MODULE, _BECAUSE, NotImplementedError)
__getattr__ = lazy_children(_MODULE)
