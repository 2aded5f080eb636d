"""The names of `torch._tensor_str`: how tensors print, see `_printing`."""

from __future__ import annotations

from ._printing import (
    PRINT_OPTS,
    get_printoptions,
    printoptions,
    set_printoptions,
    tensor_repr as _str,
    tensor_repr as _str_intern,
    tensor_text as _tensor_str,
    with_suffixes as _add_suffixes,
)

__all__ = [
    "PRINT_OPTS",
    "_add_suffixes",
    "_str",
    "_str_intern",
    "_tensor_str",
    "get_printoptions",
    "printoptions",
    "set_printoptions",
]
