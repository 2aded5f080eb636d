# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.utils._sympy.functions, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly

_MODULE = "torch.utils._sympy.functions"
_BECAUSE = "there are no symbolic shapes"


class FloorDiv(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class Mod(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
