"""Nested state dicts as flat ones, by PyTorch's names, for planners of programs."""

from __future__ import annotations

from ._flat import flatten_state_dict as flatten_state_dict, put as set_element, unflatten_state_dict

__all__ = ["flatten_state_dict", "set_element", "unflatten_state_dict"]
