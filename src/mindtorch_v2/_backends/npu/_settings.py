"""Settings of the caching allocator, from PYTORCH_NPU_ALLOC_CONF (PYTORCH_ALLOC_CONF where that is not set).

Every key of torch_npu's is taken and checked. Those that choose between ways which this allocator does not have (pinned memory from the operating system,
threads for pinned memory, alignment, locks) change nothing, as they may: they are about speed alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ._blocks import LARGE_SEGMENT, MIB

VARIABLE = "PYTORCH_NPU_ALLOC_CONF"
COMMON_VARIABLE = "PYTORCH_ALLOC_CONF"


@dataclass(frozen=True)
class Settings:
    """`max_split_size`: blocks above so many bytes are not cut (None: all may be). `max_waste`: bytes that an oversize request may leave unused in a block.
    `gc_threshold`: the part of the memory limit above which old cached blocks go back to the device (0: never). `large_segment`: bytes taken for blocks
    between 1 MiB and half of it. `divisions`: (bytes up to which it counts, parts) of the rounding of sizes between powers of two. `fraction`: the part
    of the device's memory that the process may take. `expandable`: segments grow, see Note [Expandable segments] in `_expandable.py`."""

    max_split_size: int | None = None
    gc_threshold: float = 0.0
    text: str = ""
    max_waste: int = LARGE_SEGMENT
    large_segment: int = LARGE_SEGMENT
    divisions: tuple[tuple[int | None, int], ...] = ()
    fraction: float = 1.0
    expandable: bool = False


def _flag(key: str, value: str) -> bool:
    if value not in ("True", "False"):
        raise ValueError(f"{VARIABLE}: {key} must be True or False, got '{value}'")
    return value == "True"


def _whole(key: str, value: str, least: int, most: int | None = None) -> int:
    number = int(value) if re.fullmatch(r"\d+", value) else -1
    if number < least or (most is not None and number > most):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{VARIABLE}: {key} must be a whole number {bounds}, got '{value}'")
    return number


def _part(key: str, value: str, open_ends: bool) -> float:
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not (0 < number < 1 if open_ends else 0 <= number <= 1):
        raise ValueError(f"{VARIABLE}: {key} must lie between 0 and 1, got '{value}'")
    return number


def _divisions(key: str, value: str) -> tuple[tuple[int | None, int], ...]:
    """`8`, or `[256:1,512:2,>:8]`: by megabytes up to which a number of parts counts; the last counts beyond."""

    def parts(text: str) -> int:
        number = _whole(key, text, 0)
        if number & (number - 1):
            raise ValueError(f"{VARIABLE}: {key} must be a power of 2 or 0, got '{text}'")
        return number

    if not value.startswith("["):
        return ((None, parts(value)),)
    found: list[tuple[int | None, int]] = []
    for item in value.strip("[]").split(","):
        above, colon, text = (piece.strip() for piece in item.partition(":"))
        if not colon:
            raise ValueError(f"{VARIABLE}: '{item}' of {key} is not of the form megabytes:parts")
        found.append((None if above == ">" else _whole(key, above, 1) * MIB, parts(text)))
    found.sort(key=lambda pair: (pair[0] is None, pair[0] or 0))
    if found[-1][0] is not None:
        found.append((None, found[-1][1]))
    return tuple(found)


_LEAST_SPLIT = LARGE_SEGMENT // MIB + 1
_READERS: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    "max_split_size_mb": ("max_split_size", lambda key, value: _whole(key, value, _LEAST_SPLIT) * MIB),
    "max_non_split_rounding_mb": ("max_waste", lambda key, value: _whole(key, value, _LEAST_SPLIT) * MIB),
    "garbage_collection_threshold": ("gc_threshold", lambda key, value: _part(key, value, True)),
    "roundup_power2_divisions": ("divisions", _divisions),
    "large_segment_size_mb": ("large_segment", lambda key, value: _whole(key, value, 20, 512) * MIB),
    "segment_size_mb": ("large_segment", lambda key, value: _whole(key, value, 20, 512) * MIB),
    "per_process_memory_fraction": ("fraction", lambda key, value: _part(key, value, False)),
    "expandable_segments": ("expandable", _flag),
    # about speed alone, see above
    "base_addr_aligned_kb": ("", lambda key, value: _whole(key, value, 0, 16)),
    "multi_stream_lazy_reclaim": ("", _flag),
    "page_size": ("", lambda key, value: _word(key, value, "1g")),
    "pin_memory_expandable_segments": ("", _flag),
    "pinned_mem_register": ("", _flag),
    "pinned_num_register_threads": ("", lambda key, value: _whole(key, value, 1)),
    "pinned_reserve_segment_size_mb": ("", lambda key, value: _whole(key, value, 0)),
    "pinned_use_background_threads": ("", _flag),
    "release_lock_on_npumalloc": ("", _flag),
}
"""By key: the field that it sets (none: it changes nothing), and what reads its value."""


def _word(key: str, value: str, *words: str) -> str:
    if value not in words:
        raise ValueError(f"{VARIABLE}: {key} must be {' or '.join(words)}, got '{value}'")
    return value


def parse(text: str) -> Settings:
    """Read `key:value,key:value`. ValueError for an unknown key, a value out of range, and settings that exclude each other."""
    found: dict[str, Any] = {}
    for item in filter(None, (part.strip() for part in re.split(r",(?![^\[]*\])", text))):
        key, colon, value = (part.strip() for part in item.partition(":"))
        if not colon or not value:
            raise ValueError(f"{VARIABLE}: '{item}' is not of the form key:value")
        if key not in _READERS:
            raise ValueError(f"{VARIABLE}: unknown setting '{key}'; known are {', '.join(sorted(_READERS))}")
        field, read = _READERS[key]
        value = read(key, value)
        if field:
            found[field] = value
    if found.get("expandable") and ("max_split_size" in found or "gc_threshold" in found):
        raise ValueError(
            f"{VARIABLE}: expandable_segments:True goes with neither max_split_size_mb nor garbage_collection_threshold"
        )
    return Settings(text=text, **found)


def from_environment() -> Settings:
    """The settings that the environment asks for."""
    return parse(os.environ.get(VARIABLE) or os.environ.get(COMMON_VARIABLE, ""))
