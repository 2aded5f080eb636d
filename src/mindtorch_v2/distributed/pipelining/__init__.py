"""`torch.distributed.pipelining`: a model whose layers lie on several ranks, and batches that go through it in parts."""

from __future__ import annotations

from enum import Enum
from typing import Any, NoReturn

from .schedules import (
    Schedule1F1B as Schedule1F1B,
    ScheduleGPipe as ScheduleGPipe,
    ScheduleInterleaved1F1B as ScheduleInterleaved1F1B,
    ScheduleLoopedBFS as ScheduleLoopedBFS,
)
from .stage import PipelineStage as PipelineStage

_BECAUSE = "models are not taken apart by tracing; give each rank its layers as a PipelineStage"


class SplitPoint(Enum):
    """Where `pipeline` would split: before or behind a module."""

    BEGINNING = 1
    END = 2


class Pipe:
    """A model that was taken apart. There is none."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"Pipe: {_BECAUSE}")


def pipeline(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError: models are not taken apart by tracing."""
    raise NotImplementedError(f"pipeline: {_BECAUSE}")


def build_stage(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError: models are not taken apart by tracing."""
    raise NotImplementedError(f"build_stage: {_BECAUSE}")


def pipe_split() -> None:
    """Mark a place where a model would be taken apart; nothing when it runs."""
