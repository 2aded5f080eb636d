# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.jit._script, functional stub."""

from __future__ import annotations

from torch.jit import (
    Attribute, CompilationUnit, RecursiveScriptModule, ScriptFunction, ScriptModule, interface, script,
    script_method,
)

_MODULE = "torch.jit._script"
