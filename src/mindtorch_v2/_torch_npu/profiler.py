"""`torch_npu.profiler`: the recorder of `torch.profiler`, by torch_npu's names.

It records what the host does. torch_npu's settings of what the chip's own counters record are taken and checked, and said to record nothing here.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

from .. import profiler as _profiler
from ..profiler import ProfilerAction, profile, schedule

__all__ = [
    "AiCMetrics",
    "ExportType",
    "ProfilerAction",
    "ProfilerActivity",
    "ProfilerLevel",
    "profile",
    "schedule",
    "supported_activities",
    "supported_ai_core_metrics",
    "supported_export_type",
    "supported_profiler_level",
    "tensorboard_trace_handler",
]


class ProfilerActivity:
    """What can be asked for: the host, and the NPU, of which nothing is recorded."""

    CPU = _profiler.ProfilerActivity.CPU
    NPU = _profiler.ProfilerActivity.PrivateUse1


class ProfilerLevel:
    """How much the chip's counters record."""

    Level0 = "Level0"
    Level1 = "Level1"
    Level2 = "Level2"
    Level_none = "Level_none"


class AiCMetrics:
    """Which of the chip's counters record."""

    PipeUtilization = "ACL_AICORE_PIPE_UTILIZATION"
    ArithmeticUtilization = "ACL_AICORE_ARITHMETIC_UTILIZATION"
    Memory = "ACL_AICORE_MEMORY_BANDWIDTH"
    MemoryL0 = "ACL_AICORE_L0B_AND_WIDTH"
    MemoryUB = "ACL_AICORE_MEMORY_UB"
    ResourceConflictRatio = "ACL_AICORE_RESOURCE_CONFLICT_RATIO"
    L2Cache = "ACL_AICORE_L2_CACHE"
    MemoryAccess = "ACL_AICORE_MEMORY_ACCESS"
    AiCoreNone = "ACL_AICORE_NONE"


class ExportType:
    """The form of what is written."""

    Text = "text"
    Db = "db"


def _values(kind: type, but: tuple[str, ...] = ()) -> set[str]:
    return {value for name, value in vars(kind).items() if not name.startswith("_") and name not in but}


def supported_activities() -> set[Any]:
    """What can be asked for."""
    return {ProfilerActivity.CPU, ProfilerActivity.NPU}


def supported_profiler_level() -> set[str]:
    """Levels that can be asked for."""
    return _values(ProfilerLevel, ("Level_none",))


def supported_ai_core_metrics() -> set[str]:
    """Counters that can be asked for."""
    return _values(AiCMetrics, ("AiCoreNone",))


def supported_export_type() -> set[str]:
    """Forms that can be asked for."""
    return _values(ExportType)


class _ExperimentalConfig(_profiler._ExperimentalConfig):
    """torch_npu's settings. ValueError for a value that it does not know; a warning where they ask for counters of the chip."""

    def __init__(
        self,
        profiler_level: str = ProfilerLevel.Level0,
        aic_metrics: str = AiCMetrics.AiCoreNone,
        l2_cache: bool = False,
        msprof_tx: bool = False,
        data_simplification: bool = True,
        record_op_args: bool = False,
        op_attr: bool = False,
        gc_detect_threshold: float | None = None,
        export_type: Any = ExportType.Text,
        **more: Any,
    ) -> None:
        super().__init__()
        for name, given, kind in (
            ("profiler_level", profiler_level, ProfilerLevel),
            ("aic_metrics", aic_metrics, AiCMetrics),
        ):
            if given not in _values(kind):
                raise ValueError(
                    f"torch_npu.profiler: {name} {given!r} is not known; there are {', '.join(sorted(_values(kind)))}"
                )
        forms = export_type if isinstance(export_type, list | tuple) else [export_type]
        if not set(forms) <= _values(ExportType):
            raise ValueError(f"torch_npu.profiler: export_type {export_type!r} is not known; there are text and db")
        asked = [
            name for name, given in (("l2_cache", l2_cache), ("msprof_tx", msprof_tx), ("op_attr", op_attr)) if given
        ]
        if aic_metrics != AiCMetrics.AiCoreNone:
            asked.append("aic_metrics")
        if asked:
            text = f"torch_npu.profiler: {', '.join(asked)}: the chip's counters are not recorded; msprof records them"
            warnings.warn(text, UserWarning, stacklevel=2)
        self.__dict__.update(
            profiler_level=profiler_level,
            data_simplification=data_simplification,
            record_op_args=record_op_args,
            gc_detect_threshold=gc_detect_threshold,
            export_type=export_type,
            **more,
        )


def tensorboard_trace_handler(
    dir_name: str | None = None, worker_name: str | None = None, analyse_flag: bool = True, async_mode: bool = False
) -> Callable[[Any], None]:
    """`torch.profiler.tensorboard_trace_handler` for `dir_name`, ASCEND_WORK_PATH or the working directory. Traces need no analysis."""
    return _profiler.tensorboard_trace_handler(
        dir_name or os.environ.get("ASCEND_WORK_PATH") or os.getcwd(), worker_name
    )


def __getattr__(name: str) -> Any:
    return getattr(_profiler, name)
