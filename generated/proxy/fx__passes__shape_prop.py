# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.fx.passes.shape_prop, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly

_MODULE = "torch.fx.passes.shape_prop"
_BECAUSE = "there is no symbolic tracing"


class ShapeProp(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class TensorMetadata(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
