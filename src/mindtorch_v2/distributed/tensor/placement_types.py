"""Placements, under the name by which programs import them."""

from __future__ import annotations

from ..placements import (
    Partial as Partial,
    Placement as Placement,
    Replicate as Replicate,
    Shard as Shard,
    _NormPartial as _NormPartial,
    _StridedShard as _StridedShard,
)

__all__ = ["Placement", "Shard", "Replicate", "Partial"]
