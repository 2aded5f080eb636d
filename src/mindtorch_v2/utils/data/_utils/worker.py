"""The process that loads batches for a loader.

A worker gets `(number, indices)` from its own queue, or None to end, or a `Restart`; it puts `(number, result)` into the
queue that all workers share. The result may be a `Failure` or, at the end of the worker's part of a stream, an `End`.
"""

from __future__ import annotations

import queue
import random
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import numpy

import mindtorch_v2 as mt

ALIVE_CHECK_SECONDS = 5.0
_MASK32 = 0xFFFFFFFF


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker knows of itself.

    Attributes:
        id: its number, from 0.
        num_workers: how many there are.
        seed: the seed of this worker.
        dataset: its copy of the dataset.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any = field(repr=False)


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """What the worker in which this is called knows of itself; None in the main process."""
    return _worker_info


@dataclass(frozen=True)
class End:
    """A worker's part of a stream has ended."""

    worker_id: int


@dataclass(frozen=True)
class Restart:
    """Begin a new round; the worker answers with the same object."""

    seed: int


class Failure:
    """An exception of a worker, which the main process raises again with the worker's traceback in its message."""

    def __init__(self, error: BaseException, where: str) -> None:
        self.kind = type(error)
        self.where = where
        self.text = "".join(traceback.format_exception(error))

    def reraise(self) -> None:
        """Raise an exception of the same type; RuntimeError if its type cannot be made from a message."""
        message = f"Caught {self.kind.__name__} {self.where}.\nOriginal {self.text}"
        if self.kind is KeyError:
            raise KeyError(_Verbatim(message))
        try:
            error = self.kind(message)
        except Exception:  # noqa: BLE001  (a class of the user's may refuse a message in any way)
            raise RuntimeError(message) from None
        raise error


class _Verbatim(str):
    """A string whose repr is itself, so that the message of a KeyError keeps its lines."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Four 32-bit words to seed numpy with, of a worker's number and the seed that all workers share."""
    entropy = [worker_id, base_seed & _MASK32, base_seed >> 32, 0]
    return numpy.random.SeedSequence(entropy).generate_state(4).tolist()


def seed_worker(base_seed: int, worker_id: int) -> int:
    """Seed the generators of Python, numpy and mindtorch_v2 in a worker; the numbers are those of PyTorch's workers."""
    seed = base_seed + worker_id
    random.seed(seed)
    mt.manual_seed(seed)
    numpy.random.seed(_generate_state(base_seed, worker_id))
    return seed


def worker_loop(
    make_fetcher: Callable[[], Any],
    dataset: Any,
    index_queue: Any,
    result_queue: Any,
    done: Any,
    base_seed: int,
    worker_id: int,
    num_workers: int,
    init: Callable[[int], Any] | None,
) -> None:
    """Load what is asked for until None comes or the parent is gone."""
    global _worker_info
    import multiprocessing

    parent = multiprocessing.parent_process()
    set_num_threads = getattr(mt, "set_num_threads", None)
    if set_num_threads is not None:
        set_num_threads(1)
    seed = seed_worker(base_seed, worker_id)
    _worker_info = WorkerInfo(worker_id, num_workers, seed, dataset)
    failure: Failure | None = None
    fetcher = None
    try:
        if init is not None:
            init(worker_id)
        fetcher = make_fetcher()
    except Exception as error:  # noqa: BLE001  (raised again in the main process)
        failure = Failure(error, f"in DataLoader worker process {worker_id}")
    ended = False
    while parent is None or parent.is_alive():
        try:
            task = index_queue.get(timeout=ALIVE_CHECK_SECONDS)
        except queue.Empty:
            continue
        if task is None or done.is_set():
            break
        if isinstance(task, Restart):
            result_queue.put((task, worker_id))
            ended = False
            try:
                fetcher = make_fetcher()
            except Exception as error:  # noqa: BLE001  (raised again in the main process)
                failure = Failure(error, f"in DataLoader worker process {worker_id}")
            continue
        number, indices = task
        if ended:
            continue
        result: Any
        if failure is not None:
            result, failure = failure, None
        else:
            try:
                result = cast(Any, fetcher).fetch(indices)  # there, since nothing has failed
            except StopIteration:
                result, ended = End(worker_id), True
            except Exception as error:  # noqa: BLE001  (raised again in the main process)
                result = Failure(error, f"in DataLoader worker process {worker_id}")
        result_queue.put((number, result))
    if done.is_set():
        result_queue.cancel_join_thread()
    result_queue.close()
