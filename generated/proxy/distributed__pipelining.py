# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.pipelining, import-only stub."""

from __future__ import annotations

import enum

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function

_MODULE = "torch.distributed.pipelining"
_BECAUSE = "mindtorch_v2 runs in one process"
build_stage = import_only_function("build_stage", _MODULE, _BECAUSE, NotImplementedError)
pipe_split = import_only_function("pipe_split", _MODULE, _BECAUSE, NotImplementedError)
pipeline = import_only_function("pipeline", _MODULE, _BECAUSE, NotImplementedError)


class SplitPoint(enum.Enum):
    """An enumeration of torch.distributed.pipelining."""

    BEGINNING = enum.auto()
    END = enum.auto()


class Pipe(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class PipelineStage(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class Schedule1F1B(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ScheduleGPipe(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ScheduleInterleaved1F1B(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
