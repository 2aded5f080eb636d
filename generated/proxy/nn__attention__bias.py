# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.nn.attention.bias, import-only stub."""

from __future__ import annotations

import enum

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function

_MODULE = "torch.nn.attention.bias"
_BECAUSE = "attention bias objects are not implemented"
causal_lower_right = import_only_function("causal_lower_right", _MODULE, _BECAUSE, NotImplementedError)
causal_upper_left = import_only_function("causal_upper_left", _MODULE, _BECAUSE, NotImplementedError)


class CausalVariant(enum.Enum):
    """An enumeration of torch.nn.attention.bias."""

    UPPER_LEFT = enum.auto()
    LOWER_RIGHT = enum.auto()


class CausalBias(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
