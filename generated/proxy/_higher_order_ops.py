# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._higher_order_ops, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.higher_order import (
    associative_scan, cond, map, scan, while_loop,
)
from mindtorch_v2._torch_proxy.placeholders import import_only_function, lazy_children

_MODULE = "torch._higher_order_ops"
_BECAUSE = "there is no compiler"
flex_attention = import_only_function("flex_attention", _MODULE, _BECAUSE, NotImplementedError)
out_dtype = import_only_function("out_dtype", _MODULE, _BECAUSE, NotImplementedError)
strict_mode = import_only_function("strict_mode", _MODULE, _BECAUSE, NotImplementedError)
__getattr__ = lazy_children(_MODULE)
