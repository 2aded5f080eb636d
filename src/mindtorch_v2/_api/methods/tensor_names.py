"""What `torch._tensor` has beside the class: how subclasses are rebuilt, and helpers of the override protocol."""

from __future__ import annotations

from typing import Any

from ..._dispatch.overrides import _convert
from ..._serialization.rebuild import _rebuild_from_type_v2

NAMES: dict[str, Any] = {"_convert": _convert, "_rebuild_from_type_v2": _rebuild_from_type_v2}
