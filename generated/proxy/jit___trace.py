# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.jit._trace, functional stub."""

from __future__ import annotations

from torch.jit import (
    ScriptModule, TopLevelTracedModule, TracedModule, TracerWarning, is_scripting, is_tracing, trace, trace_module,
)

_MODULE = "torch.jit._trace"
