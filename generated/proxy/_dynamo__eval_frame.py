# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._dynamo.eval_frame, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, identity, import_only_function, returning

_MODULE = "torch._dynamo.eval_frame"
_BECAUSE = "there is no compiler"
is_dynamo_supported = returning("is_dynamo_supported", _MODULE, False)
is_inductor_supported = returning("is_inductor_supported", _MODULE, False)
reset_code = returning("reset_code", _MODULE, None)
set_eval_frame = returning("set_eval_frame", _MODULE, None)
innermost_fn = identity("innermost_fn", _MODULE)
explain = import_only_function("explain", _MODULE, _BECAUSE, NotImplementedError)
export = import_only_function("export", _MODULE, _BECAUSE, NotImplementedError)
optimize = import_only_function("optimize", _MODULE, _BECAUSE, NotImplementedError)


class DisableContext(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class OptimizeContext(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class OptimizedModule(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class RunOnlyContext(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
