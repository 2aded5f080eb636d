# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.jit, functional stub: scripting returns its argument; nothing is compiled."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.jit import (
    Final, _overload, _overload_method, annotate, export_opnames, fork, isinstance, wait,
)
from mindtorch_v2.futures import (
    Future,
)
from mindtorch_v2._torch_proxy.placeholders import ImportOnly, NoOpContext, identity, import_only_function, lazy_children, returning

_MODULE = "torch.jit"
_BECAUSE = "there is no TorchScript compiler"
_script_if_tracing = returning("_script_if_tracing", _MODULE, None)
enable_onednn_fusion = returning("enable_onednn_fusion", _MODULE, None)
is_scripting = returning("is_scripting", _MODULE, False)
is_tracing = returning("is_tracing", _MODULE, False)
onednn_fusion_enabled = returning("onednn_fusion_enabled", _MODULE, False)
set_fusion_strategy = returning("set_fusion_strategy", _MODULE, [])
export = identity("export", _MODULE)
ignore = identity("ignore", _MODULE)
interface = identity("interface", _MODULE)
script = identity("script", _MODULE)
script_if_tracing = identity("script_if_tracing", _MODULE)
script_method = identity("script_method", _MODULE)
unused = identity("unused", _MODULE)
freeze = import_only_function("freeze", _MODULE, _BECAUSE, NotImplementedError)
load = import_only_function("load", _MODULE, _BECAUSE, NotImplementedError)
optimize_for_inference = import_only_function("optimize_for_inference", _MODULE, _BECAUSE, NotImplementedError)
run_frozen_optimizations = import_only_function("run_frozen_optimizations", _MODULE, _BECAUSE, NotImplementedError)
save = import_only_function("save", _MODULE, _BECAUSE, NotImplementedError)
trace = import_only_function("trace", _MODULE, _BECAUSE, NotImplementedError)
trace_module = import_only_function("trace_module", _MODULE, _BECAUSE, NotImplementedError)
__getattr__ = lazy_children(_MODULE)


class Error(RuntimeError):
    """An error of torch.jit, which mindtorch_v2 never raises."""


class TracerWarning(RuntimeError):
    """An error of torch.jit, which mindtorch_v2 never raises."""


class fuser(NoOpContext):
    """Changes nothing."""


class optimized_execution(NoOpContext):
    """Changes nothing."""


class strict_fusion(NoOpContext):
    """Changes nothing."""


class Attribute(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class CompilationUnit(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class RecursiveScriptModule(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ScriptFunction(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ScriptModule(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class TopLevelTracedModule(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class TracedModule(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
