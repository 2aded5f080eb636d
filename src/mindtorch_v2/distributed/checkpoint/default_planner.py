"""The planners of PyTorch, of which the options are read: what they plan is what `save` and `load` do."""

from __future__ import annotations

from typing import Any

__all__ = ["DefaultLoadPlanner", "DefaultSavePlanner"]


class SavePlanner:
    """What plans of saving are made by."""


class LoadPlanner:
    """What plans of loading are made by."""


class DefaultSavePlanner(SavePlanner):
    """State dicts are taken apart by their keys, and what several ranks have is written once, by the lowest of them."""

    def __init__(self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, dedup_replicated_tensors: Any = None, dedup_save_to_lowest_rank: bool = False, enable_plan_caching: bool = False) -> None:  # fmt: skip
        if not flatten_state_dict:
            raise NotImplementedError("state dicts are always taken apart by their keys")


class DefaultLoadPlanner(LoadPlanner):
    """allow_partial_load: leave what the checkpoint does not have as it is."""

    def __init__(self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, allow_partial_load: bool = False) -> None:  # fmt: skip
        if not flatten_state_dict:
            raise NotImplementedError("state dicts are always taken apart by their keys")
        self.allow_partial_load = allow_partial_load


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Loads all that there is, or the keys that are said, into an empty dict: see `format_utils`."""

    def __init__(self, keys: Any = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.keys = keys
