# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._logging, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import returning

_MODULE = "torch._logging"
get_logs = returning("get_logs", _MODULE, {})
set_logs = returning("set_logs", _MODULE, None)
trace_structured = returning("trace_structured", _MODULE, None)
warning_once = returning("warning_once", _MODULE, None)
