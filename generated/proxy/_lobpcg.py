# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._lobpcg, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch._lobpcg"
_BECAUSE = "it is not implemented"
lobpcg = import_only_function("lobpcg", _MODULE, _BECAUSE, NotImplementedError)
