# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._export, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch._export"
_BECAUSE = "there is no symbolic tracing"
aot_compile = import_only_function("aot_compile", _MODULE, _BECAUSE, NotImplementedError)
aot_load = import_only_function("aot_load", _MODULE, _BECAUSE, NotImplementedError)
