# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._higher_order_ops.associative_scan, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch._higher_order_ops.associative_scan"
_BECAUSE = "there is no compiler"
associative_scan = import_only_function("associative_scan", _MODULE, _BECAUSE, NotImplementedError)
