"""The names of `torch._tensor_str`: how tensors print, see `_printing`."""

from __future__ import annotations

from ._printing import PRINT_OPTS, get_printoptions, printoptions, set_printoptions, tensor_repr as _str

__all__ = ["PRINT_OPTS", "_str", "get_printoptions", "printoptions", "set_printoptions"]
