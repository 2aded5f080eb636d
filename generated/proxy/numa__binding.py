# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.numa.binding, import-only stub."""

from __future__ import annotations

import enum

from mindtorch_v2._torch_proxy.placeholders import ImportOnly

_MODULE = "torch.numa.binding"
_BECAUSE = "mindtorch_v2 runs in one process"


class AffinityMode(enum.Enum):
    """An enumeration of torch.numa.binding."""

    NODE = enum.auto()
    SOCKET = enum.auto()
    EXCLUSIVE = enum.auto()
    CORE_COMPLEX = enum.auto()


class NumaOptions(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
