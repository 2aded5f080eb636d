"""Settings of the caching allocator, from PYTORCH_NPU_ALLOC_CONF."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ._blocks import LARGE_SEGMENT, MIB

VARIABLE = "PYTORCH_NPU_ALLOC_CONF"


@dataclass(frozen=True)
class Settings:
    """`max_split_size`: blocks above so many bytes are not cut (None: all may be). `gc_threshold`: the part of the memory limit above which old
    cached blocks go back to the device (0: never)."""

    max_split_size: int | None = None
    gc_threshold: float = 0.0
    text: str = ""


def parse(text: str) -> Settings:
    """Read `key:value,key:value`. ValueError for an unknown key or a value out of range."""
    max_split_size: int | None = None
    gc_threshold = 0.0
    for item in filter(None, (part.strip() for part in text.split(","))):
        key, colon, value = (part.strip() for part in item.partition(":"))
        if not colon or not value:
            raise ValueError(f"{VARIABLE}: '{item}' is not of the form key:value")
        if key == "max_split_size_mb":
            least = LARGE_SEGMENT // MIB
            try:
                megabytes = int(value)
            except ValueError:
                megabytes = 0
            if megabytes <= least:
                raise ValueError(f"{VARIABLE}: max_split_size_mb must be a whole number above {least}, got '{value}'")
            max_split_size = megabytes * MIB
        elif key == "garbage_collection_threshold":
            try:
                gc_threshold = float(value)
            except ValueError:
                gc_threshold = 0.0
            if not 0 < gc_threshold < 1:
                raise ValueError(f"{VARIABLE}: garbage_collection_threshold must lie between 0 and 1, got '{value}'")
        elif key == "expandable_segments":
            if value != "False":
                raise ValueError(f"{VARIABLE}: expandable_segments is not supported; only False may be given")
        else:
            raise ValueError(
                f"{VARIABLE}: unknown setting '{key}'; known are max_split_size_mb and garbage_collection_threshold"
            )
    return Settings(max_split_size, gc_threshold, text)


def from_environment() -> Settings:
    """The settings that the environment asks for."""
    return parse(os.environ.get(VARIABLE, ""))
