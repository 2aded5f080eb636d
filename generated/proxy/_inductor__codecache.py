# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._inductor.codecache, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function

_MODULE = "torch._inductor.codecache"
_BECAUSE = "there is no compiler"
code_hash = import_only_function("code_hash", _MODULE, _BECAUSE, NotImplementedError)
get_path = import_only_function("get_path", _MODULE, _BECAUSE, NotImplementedError)


class CppCodeCache(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class FxGraphCache(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class PyCodeCache(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
