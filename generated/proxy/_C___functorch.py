# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._C._functorch, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.internals import (
    _add_batch_dim, _is_vmap_fallback_enabled, _remove_batch_dim, _set_vmap_fallback_enabled,
    _vmap_decrement_nesting, _vmap_increment_nesting, is_batchedtensor, reshape_dim_into, reshape_dim_outof,
)
from mindtorch_v2._torch_proxy.placeholders import identity, returning

_MODULE = "torch._C._functorch"
is_functorch_wrapped_tensor = returning("is_functorch_wrapped_tensor", _MODULE, False)
is_gradtrackingtensor = returning("is_gradtrackingtensor", _MODULE, False)
is_legacy_batchedtensor = returning("is_legacy_batchedtensor", _MODULE, False)
maybe_get_level = returning("maybe_get_level", _MODULE, -1)
peek_interpreter_stack = returning("peek_interpreter_stack", _MODULE, None)
get_unwrapped = identity("get_unwrapped", _MODULE)
