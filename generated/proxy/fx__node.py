# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.fx.node, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.fx import (
    map_aggregate, map_arg,
)
from mindtorch_v2._torch_proxy.placeholders import ImportOnly, identity

_MODULE = "torch.fx.node"
_BECAUSE = "there is no symbolic tracing"
has_side_effect = identity("has_side_effect", _MODULE)


class Node(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
