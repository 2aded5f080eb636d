# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.fsdp.wrap, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, NoOpContext, import_only_function

_MODULE = "torch.distributed.fsdp.wrap"
_BECAUSE = "mindtorch_v2 runs in one process"
_or_policy = import_only_function("_or_policy", _MODULE, _BECAUSE, NotImplementedError)
always_wrap_policy = import_only_function("always_wrap_policy", _MODULE, _BECAUSE, NotImplementedError)
lambda_auto_wrap_policy = import_only_function("lambda_auto_wrap_policy", _MODULE, _BECAUSE, NotImplementedError)
size_based_auto_wrap_policy = import_only_function("size_based_auto_wrap_policy", _MODULE, _BECAUSE, NotImplementedError)
transformer_auto_wrap_policy = import_only_function("transformer_auto_wrap_policy", _MODULE, _BECAUSE, NotImplementedError)
wrap = import_only_function("wrap", _MODULE, _BECAUSE, NotImplementedError)


class enable_wrap(NoOpContext):
    """Changes nothing."""


class CustomPolicy(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ModuleWrapPolicy(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
