"""Values of a file in messages about it.

A file decides how deep and how wide its values are, and shared parts make a few bytes an endless text; so a message says what a container is, and spells
out only what is short.
"""

from __future__ import annotations

from typing import Any

from .._device import device
from .._dtype import dtype
from .._layout import layout

_LONGEST = 80
_PLAIN = (bool, float, complex, type(None), dtype, device, layout)


def shown(value: Any) -> str:
    """A text of bounded length, made in bounded time."""
    kind = type(value)
    if kind in (str, bytes):
        return f"{value}" if len(value) <= _LONGEST else f"{value[:_LONGEST]}..."
    if kind in _PLAIN or (kind is int and value.bit_length() < 256):
        return repr(value)
    if isinstance(value, (tuple, list, dict, set, frozenset)):
        return f"a {kind.__name__} of {len(value)}"
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    name = getattr(value, "__qualname__", None)
    return (
        f"{getattr(value, '__module__', '?')}.{name}" if isinstance(name, str) else f"an object of {kind.__qualname__}"
    )
