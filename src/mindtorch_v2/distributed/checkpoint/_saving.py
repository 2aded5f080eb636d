"""`save` and `async_save`.

Note [Who writes what]
Each rank says what it has: chunks of tensors, and other values. The first rank assigns each to the lowest rank that has it, and sends the assignments; then every rank writes, and the first one commits what
all of them have written. `async_save` copies what a rank is to write before it returns, and its threads send nothing: they meet by small files in the folder, since other collectives of the program may go
on beside them.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import mindtorch_v2 as torch

from .. import _groups
from .._objects import broadcast_object_list, gather_object
from ..tensor import DTensor
from . import _planned
from ._files import Bytes, FileSystemWriter, StorageWriter, _durable, new_token
from ._flat import Path as Keys, flatten_state_dict
from ._pieces import assigned, described
from .api import CheckpointException
from .metadata import Metadata, MetadataIndex, StorageMeta
from .planner import SavePlanner
from .stateful import Stateful

__all__ = ["AsyncCheckpointerType", "AsyncSaveResponse", "async_save", "save", "save_state_dict"]

_POLL = 0.02  # seconds


class AsyncCheckpointerType(Enum):
    """What `async_save` writes in: a thread, whichever is said."""

    THREAD = "thread"
    PROCESS = "process"


class Ranks:
    """The ranks that save or load together: of a group, of all processes, or this one alone."""

    def __init__(self, group: Any, alone: bool) -> None:
        self.group = group
        together = not alone and _groups.is_initialized()
        self.count = _groups.get_world_size(group) if together else 1
        self.rank = _groups.get_rank(group) if together else 0
        self.first = _groups.get_global_rank(group or _groups._get_default_group(), 0) if together else 0

    def gather(self, value: Any) -> list[Any] | None:
        """All ranks' values, at the first."""
        if self.count == 1:
            return [value]
        found: list[Any] | None = [None] * self.count if self.rank == 0 else None
        gather_object(value, found, self.first, self.group)
        return found

    def spread(self, value: Any) -> Any:
        """The first rank's value."""
        if self.count == 1:
            return value
        found = [value]
        broadcast_object_list(found, self.first, self.group)
        return found[0]

    def each(self, step: str, work: Callable[[], Any]) -> list[Any] | None:
        """What each rank's work gives, at the first. CheckpointException on all ranks if one of them fails."""
        result, failure = None, None
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 - all ranks hear of it
            failure = error, traceback.extract_tb(sys.exc_info()[2])
        found = self.gather((result, _portable(failure)))
        failures = None
        if found is not None:
            failures = {rank: failed for rank, (_, failed) in enumerate(found) if failed is not None}
        failures = self.spread(failures)
        if failures:
            raise CheckpointException(step, failures)
        return None if found is None else [made for made, _ in found]

    def first_only(self, step: str, work: Callable[[], Any]) -> Any:
        """What the first rank's work gives, on all ranks. CheckpointException on all if it fails."""
        result, failures = None, {}
        if self.rank == 0:
            try:
                result = work()
            except Exception as error:  # noqa: BLE001 - all ranks hear of it
                failures[0] = _portable((error, traceback.extract_tb(sys.exc_info()[2])))
        result, failures = self.spread((result, failures))
        if failures:
            raise CheckpointException(step, failures)
        return result


def _portable(failure: Any) -> Any:
    """An error that can be sent."""
    if failure is None:
        return None
    error, where = failure
    try:
        pickle.loads(pickle.dumps((error, where)))
    except Exception:  # noqa: BLE001 - of whatever a program's class does
        return RuntimeError(f"{type(error).__name__}: {error}"), where
    return failure


def stateful_to_dict(state_dict: dict[str, Any]) -> dict[str, Any]:
    """What objects with a state give for it, in their places."""
    return {key: value.state_dict() if isinstance(value, Stateful) else value for key, value in state_dict.items()}


class _Save:
    """One save, as far as all ranks agree on it: what there is, and what this rank writes."""

    def __init__(self, state_dict: dict[str, Any], writer: StorageWriter, ranks: Ranks, planner: Any = None) -> None:
        self.writer, self.ranks = writer, ranks
        if not _planned.is_default(planner):
            self.token = ranks.first_only("plan", new_token)
            saving = _planned.Saving(planner, stateful_to_dict(state_dict), ranks, self.token)
            self.metadata, self._data = saving.metadata, saving.data
            return
        self.flat, paths = flatten_state_dict(stateful_to_dict(state_dict))
        found = ranks.each("describe", lambda: (described(self.flat), paths))

        def plan() -> tuple[str, Any, Any]:
            assert found is not None
            merged: dict[str, Keys] = {}
            for _, own in found:
                merged |= own
            made, work = assigned([named.items() for named, _ in found])
            return new_token(), Metadata(made, merged, {}, None, "1.0.0"), work

        self.token, self.metadata, work = ranks.first_only("plan", plan)
        own = [(MetadataIndex(name, offset), self.flat[name]) for name, offset in work[ranks.rank]]
        self._data: Callable[[], list[tuple[MetadataIndex, Any]]] = lambda: own

    def items(self, copy: bool) -> list[tuple[MetadataIndex, Any]]:
        """What this rank writes: tensors on the CPU, in memory of their own where they are a part of a larger one, or where a copy is asked for."""
        found = []
        for index, value in self._data():
            if isinstance(value, torch.Tensor):
                value = value._local_tensor if isinstance(value, DTensor) else value
                value = value.detach()
                own = value.cpu()
                if own is value and (copy or own.untyped_storage().nbytes() != own.numel() * own.element_size()):
                    own = value.clone()
                value = own
            elif copy and not isinstance(value, Bytes):
                value = pickle.loads(pickle.dumps(value))
            found.append((index, value))
        return found

    def commit(self, written: list[dict[MetadataIndex, Any]]) -> Metadata:
        digests: dict[str, dict[str, str]] = {}
        for one in written:
            for index, (info, digest) in one.items():
                self.metadata.storage_data[index] = info
                digests.setdefault(info.relative_path, {})[str(info.offset)] = digest
        self.metadata.storage_meta = StorageMeta(save_id=self.token)
        self.writer.commit(self.token, self.metadata, digests)
        return self.metadata


def _writer_of(writer: Any, checkpoint_id: Any, planner: Any) -> StorageWriter:
    _planned.check(planner, SavePlanner)
    if writer is None:
        if checkpoint_id is None:
            raise RuntimeError("`checkpoint_id` must be specified if storage_reader and storage_writer are None.")
        if not FileSystemWriter.validate_checkpoint_id(checkpoint_id):
            raise RuntimeError(f"Cannot detect which StorageReader or StorageWriter to use: {checkpoint_id} is no path")
        return FileSystemWriter(checkpoint_id)
    if not isinstance(writer, StorageWriter):
        raise NotImplementedError(
            f"a StorageWriter of one's own ({type(writer).__name__}) is not supported; FileSystemWriter is"
        )
    if checkpoint_id is not None and isinstance(writer, FileSystemWriter):
        writer.reset(checkpoint_id)
    return writer


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Metadata:
    """Save a state dict: each rank writes the pieces that it has, and those that several have are written once. All ranks of the group call it.

    Values may be tensors, DTensors, what `torch.save` takes, dicts and lists of these, and objects with `state_dict`. A checkpoint that was there is replaced when the new one is complete.

    Args:
        checkpoint_id: the folder.
        planner: what says what each rank writes; a DefaultSavePlanner, or a class of the program's own that is one, as in PyTorch.
        process_group: whose ranks save; all, unless said. no_dist: this process alone.

    Raises:
        CheckpointException: on every rank, with the errors of those that failed.
    """
    writer = _writer_of(storage_writer, checkpoint_id, planner)
    ranks = Ranks(process_group, no_dist)
    made = _Save(state_dict, writer, ranks, planner)
    written = ranks.each("write", lambda: writer.write(made.token, ranks.rank, made.items(copy=False)))
    return ranks.first_only("finish", lambda: made.commit(written or []))


def save_state_dict(
    state_dict: dict[str, Any],
    storage_writer: Any,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: Any = None,
) -> Metadata:
    """`save`, as it was called before."""
    return save(
        state_dict, storage_writer=storage_writer, process_group=process_group, no_dist=no_dist, planner=planner
    )


@dataclass
class AsyncSaveResponse:
    """The futures of a state's copy, and of the checkpoint that is written of it."""

    staging_completion: Future
    upload_completion: Future


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: Any = None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
    async_stager: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Future | AsyncSaveResponse:
    """`save` that returns once the state has been copied; a thread writes. The future has the metadata when the checkpoint is complete, or the CheckpointException. See Note [Who writes what].

    A stager of one's own copies in place of this function; where it gives a future of its copy, that and the checkpoint's are in the response.
    """
    staged: Any = None
    if async_stager is not None:
        staged = async_stager.stage(stateful_to_dict(state_dict))
        if isinstance(staged, Future):
            state_dict = staged.result()
        else:
            state_dict = staged
            if async_stager.should_synchronize_after_execute:
                async_stager.synchronize_staging()
    writer = _writer_of(storage_writer, checkpoint_id, planner)
    if not isinstance(writer, FileSystemWriter):
        raise NotImplementedError("async_save needs a FileSystemWriter")
    ranks = Ranks(process_group, no_dist)
    made = _Save(state_dict, writer, ranks, planner)
    items = made.items(copy=async_stager is None)
    timeout = (process_group or _groups._get_default_group()).timeout.total_seconds() if ranks.count > 1 else 0.0
    future: Future = Future()
    future.set_running_or_notify_cancel()

    def work() -> None:
        try:
            future.set_result(_in_background(made, writer, items, timeout))
        except BaseException as error:  # noqa: BLE001 - the future has it
            future.set_exception(error)

    threading.Thread(target=work, name="checkpoint", daemon=False).start()
    if isinstance(staged, Future):
        copied: Future = Future()
        copied.set_result(None)
        return AsyncSaveResponse(copied, future)
    return future


def _in_background(made: _Save, writer: FileSystemWriter, items: list, timeout: float) -> Metadata:
    ranks, folder = made.ranks, writer.path
    folder.mkdir(parents=True, exist_ok=True)

    def note(rank: int) -> Path:
        return folder / f".written-{made.token}-{rank}"

    outcome = folder / f".outcome-{made.token}"
    failure = None
    written: dict[MetadataIndex, Any] = {}
    try:
        written = writer.write(made.token, ranks.rank, items)
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
        if ranks.count == 1:
            raise CheckpointException("write", {0: (error, traceback.extract_tb(sys.exc_info()[2]))}) from error
    if ranks.count == 1:
        return made.commit([written])
    rows = [
        [i.fqn, i.offset, info.relative_path, info.offset, info.length, digest] for i, (info, digest) in written.items()
    ]
    _durable(note(ranks.rank), json.dumps({"failure": failure, "rows": rows}).encode())
    end = time.monotonic() + timeout
    if ranks.rank:
        while not outcome.exists():
            if time.monotonic() > end:
                raise CheckpointException(
                    "finish", {ranks.rank: (TimeoutError("the first rank did not finish the checkpoint in time"), [])}
                )
            time.sleep(_POLL)
        said = json.loads(outcome.read_bytes())
        note(ranks.rank).unlink(missing_ok=True)
        if said["failures"]:
            raise CheckpointException(
                "write", {int(rank): (RuntimeError(text), []) for rank, text in said["failures"].items()}
            )
        return made.metadata
    failures: dict[str, str] = {}
    found: list[dict[MetadataIndex, Any]] = []
    for rank in range(ranks.count):
        while not note(rank).exists():
            if time.monotonic() > end:
                failures[str(rank)] = "did not write its part in time"
                break
            time.sleep(_POLL)
        else:
            found.append(_noted(json.loads(note(rank).read_bytes()), failures, rank))
    result = None
    if not failures:
        result = made.commit(found)
    _durable(outcome, json.dumps({"failures": failures}).encode())
    while any(note(rank).exists() for rank in range(1, ranks.count)) and time.monotonic() < end and not failures:
        time.sleep(_POLL)
    note(0).unlink(missing_ok=True)
    outcome.unlink(missing_ok=True)
    if result is None:
        raise CheckpointException("write", {int(rank): (RuntimeError(text), []) for rank, text in failures.items()})
    return result


def _noted(said: dict[str, Any], failures: dict[str, str], rank: int) -> dict[MetadataIndex, Any]:
    from ._files import _StorageInfo

    if said["failure"]:
        failures[str(rank)] = said["failure"]
    return {
        MetadataIndex(name, offset): (_StorageInfo(file, start, length), digest)
        for name, offset, file, start, length, digest in said["rows"]
    }
