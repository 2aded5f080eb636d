"""The groups of this process, and who is in them: finding groups, ranks and names. `_making.py` makes them."""

from __future__ import annotations

import os
import warnings
from datetime import timedelta
from typing import Any, ClassVar

import mindtorch_v2 as torch

from ._backend import Backend
from ._process_group import ProcessGroup
from ._stores import Store


class GroupName(str):
    """The name of a group."""


class _World:
    """What there is, by group."""

    def __init__(self) -> None:
        self.default_pg: ProcessGroup | None = None
        self.pg_map: dict[Any, tuple[str, Store]] = {}
        self.pg_names: dict[Any, str] = {}
        self.pg_group_ranks: dict[Any, dict[int, int]] = {}
        self.pg_backend_config: dict[Any, str] = {}
        self.pg_to_tag: dict[Any, str] = {}
        self.tags_to_pg: dict[str, list[Any]] = {}
        self.pg_coalesce_state: dict[Any, list[Any]] = {}
        self.group_count = 0
        self.hashed: dict[tuple[int, ...], int] = {}

    def clear(self) -> None:
        self.__init__()


_world = _World()


class _WorldMeta(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The default group."""
        return _world.default_pg

    @WORLD.setter
    def WORLD(cls, group: ProcessGroup | None) -> None:
        _world.default_pg = group


class group(metaclass=_WorldMeta):
    """`group.WORLD` is the default group, None before `init_process_group`."""


class GroupMember(metaclass=_WorldMeta):
    """Whether a process belongs to a group."""

    NON_GROUP_MEMBER: ClassVar[int] = -100


def is_available() -> bool:
    """Whether there is torch.distributed: always."""
    return True


def is_initialized() -> bool:
    """Whether there is a default group."""
    return _world.default_pg is not None


def is_torchelastic_launched() -> bool:
    """Whether `torchrun` started this process."""
    return os.getenv("TORCHELASTIC_RUN_ID") is not None


def _get_default_group() -> ProcessGroup:
    found = _world.default_pg
    if found is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return found


def _get_default_store() -> Store:
    return _world.pg_map[_get_default_group()][1]


def _update_default_pg(pg: ProcessGroup | None) -> None:
    _world.default_pg = pg


def _rank_not_in_group(group: Any) -> bool:
    return group is not None and group == GroupMember.NON_GROUP_MEMBER


def _warn_not_in_group(name: str) -> None:
    rank = -1 if _world.default_pg is None else _world.default_pg.rank()
    warnings.warn(f"Running {name} on global rank {rank} which does not belong to the given group.", stacklevel=3)


def _group_or_default_group(group: Any = None) -> Any:
    return _get_default_group() if group is None else group


def _members(group: Any) -> dict[int, int]:
    found = _world.pg_group_ranks.get(group)
    if found is None:
        raise ValueError(f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    return found


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """A rank of the default group as the group's own. ValueError for an unknown group, or a rank that is not in it."""
    if group is _world.default_pg:
        return global_rank
    ranks = _members(group)
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks[global_rank]


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """A rank of the group as the default group's. ValueError for an unknown group, or a rank that is not in it."""
    if group is _world.default_pg:
        return group_rank
    for rank, own in _members(group).items():
        if own == group_rank:
            return rank
    raise ValueError(f"Group rank {group_rank} is not part of group {group}")


_get_global_rank = get_global_rank


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The default group's ranks of a group's members, in the order of the group."""
    return list(_world.pg_group_ranks[group or _get_default_group()])


def _canonicalize_group_rank(
    group: Any, global_rank: int | None = None, group_rank: int | None = None, return_global: bool = False
) -> int:
    if group_rank is not None:
        if global_rank is not None:
            raise ValueError("Can't specify both group_rank and global_rank")
        return get_global_rank(group, group_rank) if return_global else group_rank
    if global_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    return global_rank if return_global else get_group_rank(group, global_rank)


def get_rank(group: ProcessGroup | None = None) -> int:
    """This process's rank in a group; -1 if it is not in it."""
    if _rank_not_in_group(group):
        return -1
    default = _get_default_group()
    return default.rank() if group is None or group is default else get_group_rank(group, default.rank())


def get_world_size(group: ProcessGroup | None = None) -> int:
    """How many ranks a group has; -1 if this process is not in it."""
    return -1 if _rank_not_in_group(group) else _get_group_size(group)


def _get_group_size(group: ProcessGroup | None) -> int:
    default = _get_default_group()
    return default.size() if group is None else group.size()


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """Which backend of a group serves which devices."""
    pg = group or _get_default_group()
    if _rank_not_in_group(pg):
        raise ValueError("Invalid process group specified")
    return str(_world.pg_backend_config.get(pg))


def get_backend(group: ProcessGroup | None = None) -> str:
    """The name of a group's backend."""
    pg = group or _get_default_group()
    if _rank_not_in_group(pg):
        raise ValueError("Invalid process group specified")
    found = _world.pg_map.get(pg)
    if found is None:
        raise ValueError(
            f"Process group {pg} is not initialized in the world group map. Please initialize the group first."
        )
    return Backend(found[0])


def get_pg_count() -> int:
    """How many groups have been made."""
    return _world.group_count


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """This process's rank on its machine, as the launcher says it. RuntimeError if none does and nothing is given in its place."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, "
        "assuming you are not running in a multi-device context and want the code to run locally instead."
    )


def _check_valid_timeout(timeout: Any) -> None:
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")


def _find_pg_by_ranks_and_tag(tag: str, ranks: list[int]) -> Any:
    for made in _world.tags_to_pg.get(tag, ()):
        if sorted(get_process_group_ranks(made)) == sorted(ranks):
            return made
    return None


def _resolve_process_group(name: str) -> ProcessGroup:
    """The group of a name. RuntimeError if there is none."""
    for made, own in _world.pg_names.items():
        if own == name:
            return made
    raise RuntimeError(f"Could not resolve the process group registered under the name {name}")


def _group_of_operator(name: str, given: Any) -> ProcessGroup:
    """The group that an operator is given, by its name or as the object. RuntimeError for what is neither."""
    if isinstance(given, ProcessGroup):
        return given
    if not isinstance(given, str):
        raise RuntimeError(
            f"{name}(): argument 'group_name' must be either a string (group name) or a ProcessGroup object, but got {type(given).__name__}"
        )
    return _resolve_process_group(given)


def _get_process_group_name(pg: ProcessGroup) -> str:
    return _world.pg_names.get(pg, "None")


def _get_group_tag(pg: ProcessGroup) -> str:
    return _world.pg_to_tag[pg]


def _get_process_group_store(pg: ProcessGroup) -> Store:
    return _world.pg_map[pg][1]


def _set_pg_timeout(timeout: timedelta, group: ProcessGroup | None = None) -> None:
    """Say how long a group's calls wait for the other ranks."""
    _check_valid_timeout(timeout)
    (group or _get_default_group())._set_timeout(timeout)


def _get_pg_default_device(group: ProcessGroup | None = None) -> Any:
    return torch.device(getattr(group or _get_default_group(), "DEVICE", "cpu"))


def _get_object_coll_device(group: ProcessGroup | None = None) -> str:
    return _get_pg_default_device(group).type


def _device_capability(group: ProcessGroup | None = None) -> list[str]:
    return [_get_object_coll_device(group)]
