"""What a loader is made of: collating, fetching, workers."""

from __future__ import annotations

from . import collate, fetch, pin_memory, worker

__all__ = ["collate", "fetch", "pin_memory", "worker"]
