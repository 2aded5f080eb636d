# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._dynamo.utils, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import returning

_MODULE = "torch._dynamo.utils"
counters = {}
compile_times = returning("compile_times", _MODULE, "")
is_compile_supported = returning("is_compile_supported", _MODULE, False)
