# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._decomp, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch._decomp"
_BECAUSE = "there is no compiler"
core_aten_decompositions = import_only_function("core_aten_decompositions", _MODULE, _BECAUSE, NotImplementedError)
get_decompositions = import_only_function("get_decompositions", _MODULE, _BECAUSE, NotImplementedError)
register_decomposition = import_only_function("register_decomposition", _MODULE, _BECAUSE, NotImplementedError)
