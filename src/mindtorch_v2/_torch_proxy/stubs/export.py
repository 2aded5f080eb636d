"""The names of dimensions in `torch.export`."""

from __future__ import annotations

import enum

from mindtorch_v2._torch_proxy.placeholders import ImportOnly


class _DimHint(enum.Enum):
    """What an export should do with a dimension."""

    AUTO = enum.auto()
    DYNAMIC = enum.auto()
    STATIC = enum.auto()


class Dim(metaclass=ImportOnly):
    """A named dimension; import only, apart from the hints that it holds."""

    _because = "there is no symbolic tracing"
    _error = NotImplementedError
    AUTO = _DimHint.AUTO
    DYNAMIC = _DimHint.DYNAMIC
    STATIC = _DimHint.STATIC


Dim.__module__ = "torch.export"
