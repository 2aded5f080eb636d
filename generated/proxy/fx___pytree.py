# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.fx._pytree, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.fx import (
    _dict_flatten_spec, _list_flatten_spec, _tuple_flatten_spec, register_pytree_flatten_spec,
)

_MODULE = "torch.fx._pytree"
