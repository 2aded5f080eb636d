# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._custom_ops, functional stub."""

from __future__ import annotations

from mindtorch_v2.library import (
    custom_op, impl_abstract,
)
from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch._custom_ops"
_BECAUSE = "torch.library serves"
get_ctx = import_only_function("get_ctx", _MODULE, _BECAUSE, NotImplementedError)
impl = import_only_function("impl", _MODULE, _BECAUSE, NotImplementedError)
impl_backward = import_only_function("impl_backward", _MODULE, _BECAUSE, NotImplementedError)
impl_save_for_backward = import_only_function("impl_save_for_backward", _MODULE, _BECAUSE, NotImplementedError)
