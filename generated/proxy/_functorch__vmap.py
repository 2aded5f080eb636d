# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._functorch.vmap, functional stub."""

from __future__ import annotations

from mindtorch_v2 import (
    Tensor,
)
from mindtorch_v2._torch_proxy.stubs.internals import (
    _add_batch_dim, _maybe_remove_batch_dim, _remove_batch_dim, _vmap_decrement_nesting, _vmap_increment_nesting,
    is_batchedtensor,
)
from mindtorch_v2._torch_proxy.stubs.vmap import (
    _get_name,
)
from mindtorch_v2.func import (
    vmap,
)
from mindtorch_v2.func.vmap import (
    restore_vmap,
)
from mindtorch_v2.utils._pytree import (
    _broadcast_to_and_flatten, tree_flatten, tree_map_, tree_unflatten,
)
from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch._functorch.vmap"
_BECAUSE = "the transform is torch.vmap, which is written otherwise"
_chunked_vmap = import_only_function("_chunked_vmap", _MODULE, _BECAUSE, NotImplementedError)
_create_batched_inputs = import_only_function("_create_batched_inputs", _MODULE, _BECAUSE, NotImplementedError)
_flat_vmap = import_only_function("_flat_vmap", _MODULE, _BECAUSE, NotImplementedError)
_process_batched_inputs = import_only_function("_process_batched_inputs", _MODULE, _BECAUSE, NotImplementedError)
_unwrap_batched = import_only_function("_unwrap_batched", _MODULE, _BECAUSE, NotImplementedError)
