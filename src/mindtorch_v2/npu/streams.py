"""Streams and events of NPUs."""

from __future__ import annotations

from .._backends.npu.streams import Event, Stream
from ._missing import NAMES as _NAMES

__all__ = ["Event", "ExternalEvent", "Stream", "SyncLaunchStream"]

ExternalEvent, SyncLaunchStream = _NAMES["ExternalEvent"], _NAMES["SyncLaunchStream"]
