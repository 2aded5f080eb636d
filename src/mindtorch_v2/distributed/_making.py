"""Making groups, which choose what moves bytes between their ranks, and destroying them."""

from __future__ import annotations

import hashlib
import os
import sys
import traceback
import warnings
from datetime import timedelta
from typing import Any

import mindtorch_v2 as torch

from ._backend import Backend, BackendConfig, is_mpi_available
from ._engines import Engine, FakeEngine, LocalEngine
from ._groups import (
    GroupMember,
    GroupName,
    _check_valid_timeout,
    _get_default_group,
    _get_default_store,
    _update_default_pg,
    _world,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    is_initialized,
)
from ._joining import joined, several_launchers
from ._mpi_engine import MpiEngine, launched, leave, unname_memory, world
from ._places import may_take, take
from ._process_group import ProcessGroup
from ._store_engine import StoreEngine
from ._stores import HashStore, PrefixStore, Store
from .constants import default_pg_timeout
from .rendezvous import rendezvous, store_by_mpi


def _engine(backend: str, store: Store, rank: int, size: int, ranks: list[int] | None) -> Engine:
    """What moves bytes between the ranks of a new group."""
    if backend == Backend.FAKE:
        return FakeEngine(rank, size)
    if size == 1:
        return LocalEngine()
    default = _world.default_pg
    if ranks is not None and default is not None and isinstance(default.engine, MpiEngine):
        return default.engine.group(
            ranks, int.from_bytes(hashlib.sha1(repr(ranks).encode()).digest()[:2], "big"), store
        )
    if ranks is None and several_launchers(size):
        comm = joined(store, rank, size, is_mpi_available())
        if comm is not None:
            return MpiEngine(comm, store)
        if backend == Backend.MPI:
            raise RuntimeError("the ranks of these machines cannot join one MPI: start them by srun or mpiexec")
    elif ranks is None:
        found = launched()
        if backend == Backend.MPI or (
            found is not None and found["rank"] == rank and found["size"] == size and is_mpi_available()
        ):
            return MpiEngine(world().Dup(), store)
        if found is None and may_take():
            comm = take(store, rank, size)
            if comm is not None:
                return MpiEngine(comm.Dup(), store, meets=True)
    return StoreEngine(store, rank, size)


def _new_group(
    backend: str, store: Store, rank: int, ranks: list[int] | None, size: int, name: str, timeout: timedelta, desc: str
) -> Any:
    """Make a group that this process is in, and enter it. ranks: None for the default group."""
    config = BackendConfig(backend)
    plugin = Backend._plugins.get(backend.upper())
    own = PrefixStore(f"{name}/", store)
    if plugin is not None:
        made = plugin.creator_fn(own, rank, size, timeout)
    elif backend == Backend.HCCL or config.get_device_backend_map().get("npu") == Backend.HCCL:
        from ._hccl import make

        made = make(own, rank, size, timeout)
    else:
        for served in config.get_device_backend_map().values():
            if served not in (Backend.GLOO, Backend.MPI, Backend.FAKE) and len(config.get_device_backend_map()) == 1:
                raise RuntimeError(f"Distributed package doesn't have {served.upper()} built in")
        named = Backend.GLOO if backend == Backend.UNDEFINED else backend
        engine = _engine(backend, own, rank, size, ranks)
        if ranks is None and isinstance(engine, MpiEngine):
            unname_memory()
        made = ProcessGroup(own, rank, size, engine, timeout, named)
    made.group_name = GroupName(name)
    made.group_desc = desc
    _world.pg_map[made] = (backend, store if ranks is None else own)
    _world.pg_names[made] = GroupName(name)
    _world.pg_backend_config[made] = str(config)
    tag = f"ptd:{name}"
    _world.pg_to_tag[made] = tag
    for key in (tag, ""):
        _world.tags_to_pg.setdefault(key, []).append(made)
    members = range(size) if ranks is None else ranks
    _world.pg_group_ranks[made] = {member: index for index, member in enumerate(members)}
    return made


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
    _ranks: list[int] | None = None,
) -> None:
    """Make the default group of all processes.

    A group of one rank needs nobody. Several ranks exchange tensors by MPI where mpiexec, torchrun or a scheduler started them and mpi4py is there, and else, on one machine, by the store
    in which they found each other.

    Args:
        backend: "gloo", "mpi", "fake" (nothing is exchanged), or one that was registered.
        init_method: how they find each other: env:// (the default; RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or what mpiexec says), tcp://HOST:PORT or file:///PATH.
        timeout: how long a call waits for the other ranks.
        world_size, rank: how many there are, and which this one is, where the method does not say it.
        store: in place of a method.

    Raises:
        ValueError: if there is a default group.
        AssertionError: for a store without `rank` and `world_size`, or together with a method.
        DistNetworkError, DistStoreError: if they do not find each other in time.
    """
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if store is not None:
        if not world_size > 0:
            raise AssertionError("world_size must be positive if using store")
        if not rank >= 0:
            raise AssertionError("rank must be non-negative if using store")
    if isinstance(device_id, int) and not torch.npu.is_available():
        raise ValueError(
            "device_id is an int, but no accelerator support is found from the current compilation. "
            "Please use a different compiled version that supports your accelerator."
        )
    name = Backend("undefined" if backend is None else backend)
    if timeout is None:
        timeout = default_pg_timeout
    _check_valid_timeout(timeout)
    if name == Backend.MPI:
        if world_size != -1 or rank != -1:
            warnings.warn(
                f"For MPI backend, world_size ({world_size}) and rank ({rank}) are ignored since they are assigned by the MPI runtime.",
                stacklevel=2,
            )
        if not is_mpi_available():
            raise RuntimeError(
                "Distributed package doesn't have MPI built in. MPI is only included if mpi4py is installed: pip install mindtorch_v2[distributed]"
            )
        whole = int(os.environ.get("WORLD_SIZE", "1"))
        if several_launchers(whole):
            store, rank, world_size = next(rendezvous("env://", int(os.environ["RANK"]), whole, timeout=timeout))
        else:
            comm = world()
            rank, world_size = comm.Get_rank(), comm.Get_size()
            store = store_by_mpi(timeout) if world_size > 1 else HashStore()
    elif store is None and name == Backend.FAKE:
        store = HashStore()
    elif store is None:
        store, rank, world_size = next(rendezvous(init_method or "env://", rank, world_size, timeout=timeout))
        store.set_timeout(timeout)
    assert store is not None
    made = _new_group(
        name, PrefixStore("default_pg", store), rank, None, world_size, _next_name(), timeout, "default_pg"
    )
    _update_default_pg(made)
    _say_rank(made)


def _next_name() -> str:
    _world.group_count += 1
    return str(_world.group_count - 1)


_plain_hook = sys.excepthook


def _say_rank(made: ProcessGroup) -> None:
    """Let an exception that ends this process name its rank, and end all ranks that MPI started."""
    rank = made.rank()

    def hook(kind: type[BaseException], error: BaseException, where: Any) -> None:
        lines = "".join(traceback.format_exception(kind, error, where)).split("\n")
        sys.stderr.write("\n".join(f"[rank{rank}]: {line}" if line else "" for line in lines))
        sys.stderr.flush()
        if isinstance(made.engine, MpiEngine):
            leave(1)

    sys.excepthook = hook


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Forget a group, or all of them. ValueError for an unknown one."""
    if group == GroupMember.NON_GROUP_MEMBER:
        return
    pg = _world.default_pg if group is None else group
    if pg is None:
        raise AssertionError("Process group cannot be None")
    if pg not in _world.pg_map:
        raise ValueError("Invalid process group specified")
    if pg is _world.default_pg:
        for made in sorted(_world.pg_names, key=lambda one: _world.pg_names[one], reverse=True):
            made.shutdown()
        _world.clear()
        sys.excepthook = _plain_hook
        return
    pg.shutdown()
    for table in (_world.pg_map, _world.pg_names, _world.pg_group_ranks, _world.pg_backend_config):
        del table[pg]
    if _world.pg_coalesce_state.pop(pg, None) is not None:
        warnings.warn(
            "Some coalesced collectives haven't been launched when ProcessGroup is destroyed. They will be cleaned."
        )
    tag = _world.pg_to_tag.pop(pg)
    for key in (tag, ""):
        _world.tags_to_pg[key].remove(pg)


def _abort_process_group(group: ProcessGroup | None = None) -> None:
    """Forget a group without waiting for what has begun."""
    pg = group or _get_default_group()
    pg.abort()
    destroy_process_group(pg)


def new_group(
    ranks: list[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """A group of some ranks, in ascending order unless `sort_ranks` is False; `GroupMember.NON_GROUP_MEMBER` in processes that are not in it.

    All processes call it, in the same order; with `use_local_synchronization` only those that are in it do.

    Raises:
        ValueError: for ranks that are given twice or are not there.
    """
    default = _get_default_group()
    name = Backend(backend or _world.pg_map[default][0])
    if timeout is None:
        timeout = default_pg_timeout
    _check_valid_timeout(timeout)
    size, rank = default.size(), default.rank()
    if use_local_synchronization:
        if name == Backend.MPI:
            raise ValueError("MPI backend doesn't support use_local_synchronization=True")
        if ranks is not None and rank not in ranks:
            return None
    if ranks is None:
        ranks = list(range(size))
    else:
        ranks = sorted(ranks) if sort_ranks else list(ranks)
        if len(set(ranks)) != len(ranks):
            raise ValueError(f"ranks list must not contain duplicate entries, got {ranks}")
        if len(ranks) > size:
            raise ValueError(
                "the new group's world size should be less or equal to the world size set by init_process_group"
            )
        for one in ranks:
            if not 0 <= one < size:
                raise ValueError(f"Rank {one} is out of range. Valid ranks are 0 to {size - 1} (world_size={size})")
    group_name = _hashed_name(ranks) if use_local_synchronization else _next_name()
    if rank not in ranks:
        return GroupMember.NON_GROUP_MEMBER
    store = _get_default_store()
    return _new_group(name, store, ranks.index(rank), ranks, len(ranks), group_name, timeout, group_desc or "undefined")


def _hashed_name(ranks: list[int]) -> str:
    """A name that the ranks of a group, who alone make it, agree on: they have made as many of these ranks before."""
    count = _world.hashed[tuple(ranks)] = _world.hashed.get(tuple(ranks), 0) + 1
    return hashlib.sha1(repr((ranks, count)).encode(), usedforsecurity=False).hexdigest()


def new_subgroups(
    group_size: int | None = None,
    group: Any = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Groups of so many neighbouring ranks each: the one of this process, and all. ValueError where that does not divide the ranks."""
    if group_size is None:
        raise ValueError(
            "Default group size only takes effect when CUDA is available."
            "If your subgroup using a backend that does not depend on CUDA,"
            "please pass in 'group_size' correctly."
        )
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    size = get_world_size(group=group)
    if size < group_size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({size})")
    if size % group_size:
        raise ValueError(f"The world size ({size}) must be divisible by '{group_size=}'")
    ranks = get_process_group_ranks(group)
    parts = [ranks[start : start + group_size] for start in range(0, len(ranks), group_size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: list[list[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """A group for each list of ranks: the one of this process (None if it is in none), and all. ValueError for a rank in two of them."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    seen: dict[int, list[int]] = {}
    groups, mine = [], None
    for ranks in ranks_per_subgroup_list:
        groups.append(new_group(ranks, timeout, backend, pg_options, group_desc=group_desc))
        for rank in ranks:
            if rank in seen:
                raise ValueError(f"Rank {rank} has appeared in both subgroup {seen[rank]} and {ranks}")
            seen[rank] = ranks
            if rank == get_rank():
                mine = groups[-1]
    return mine, groups


def split_group(
    parent_pg: ProcessGroup | None = None,
    split_ranks: list[list[int]] | None = None,
    timeout: timedelta | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
    backend: str | None = None,
) -> ProcessGroup | None:
    """The group of this process among lists of a parent's ranks; None if it is in none. All ranks of the parent call it.

    Raises:
        ValueError: for an empty list, ranks that are given twice, or an unknown parent.
    """
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    parent = parent_pg or _get_default_group()
    if parent not in _world.pg_group_ranks:
        raise ValueError(f"Group {parent} is not registered")
    ranks = get_process_group_ranks(parent)
    for part in split_ranks:
        if not part:
            raise ValueError("the split group cannot be empty")
        if len(part) > get_world_size():
            raise ValueError(
                "the split group's size should be less or equal to the world_size set by init_process_group"
            )
        if len(part) != len(set(part)):
            raise ValueError("the split group cannot have duplicate ranks")
    mine = next((sorted(part) for part in split_ranks if parent.rank() in part), None)
    if mine is None:
        return None
    members = [ranks[rank] for rank in mine]
    name = _hashed_name(members)
    served = Backend(backend or _world.pg_map[parent][0])
    made = _new_group(
        served,
        _get_default_store(),
        mine.index(parent.rank()),
        members,
        len(members),
        name,
        timeout or default_pg_timeout,
        group_desc or f"{parent.group_desc}:split",
    )
    return made
