"""A round of a loader whose batches come from worker processes."""

from __future__ import annotations

import itertools
import multiprocessing
import queue
import time
from typing import TYPE_CHECKING, Any

from ._rounds import _BaseDataLoaderIter, _DatasetKind
from ._utils.worker import ALIVE_CHECK_SECONDS, End, Failure, Restart, worker_loop

if TYPE_CHECKING:
    from .dataloader import DataLoader

_JOIN_SECONDS = 5.0


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Hands out indices to the workers in turn, `prefetch_factor` each, and gives the batches in order."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        self._ahead = max(loader.prefetch_factor or 1, 1)
        self._in_order = loader.in_order
        context = loader.multiprocessing_context or multiprocessing.get_context()
        self._result_queue = context.Queue()
        self._done = context.Event()
        self._index_queues: list[Any] = []
        self._workers: list[Any] = []
        self._closed = False
        for worker_id in range(self._num_workers):
            index_queue = context.Queue()
            index_queue.cancel_join_thread()
            arguments = (
                self._fetcher_factory(),
                self._dataset,
                index_queue,
                self._result_queue,
                self._done,
                self._base_seed,
                worker_id,
                self._num_workers,
                loader.worker_init_fn,
            )
            worker = context.Process(target=worker_loop, args=arguments, daemon=True)
            worker.start()
            self._index_queues.append(index_queue)
            self._workers.append(worker)
        self._reset(loader, first_iter=True)

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False) -> None:
        super()._reset(loader, first_iter)
        self._sent = 0  # number of the next task
        self._given = 0  # number of the next batch to give, when in order
        self._worker_of: dict[int, int] = {}  # tasks on their way, by number
        self._finished: dict[int, Any] = {}  # batches that wait for their turn
        self._active = [True] * self._num_workers  # whose part of the stream has not ended
        self._turn = itertools.cycle(range(self._num_workers))
        if not first_iter:
            self._restart()
        for _ in range(self._ahead * self._num_workers):
            self._send()

    def _restart(self) -> None:
        """Let persistent workers begin a new round, and throw away what is left of the former one."""
        for index_queue in self._index_queues:
            index_queue.put(Restart(self._base_seed))
        waiting = set(range(self._num_workers))
        while waiting:
            number, value = self._receive()
            if isinstance(number, Restart):
                waiting.discard(value)

    def _send(self) -> None:
        """Give the next indices to the next worker that is not at its end."""
        for worker_id in itertools.islice(self._turn, self._num_workers):
            if self._active[worker_id]:
                break
        else:
            return
        try:
            index = self._next_index()
        except StopIteration:
            return
        self._worker_of[self._sent] = worker_id
        self._index_queues[worker_id].put((self._sent, index))
        self._sent += 1

    def _receive(self) -> tuple[Any, Any]:
        """The next message of any worker.

        Raises:
            RuntimeError: if the timeout has passed, or a worker has died.
        """
        deadline = time.monotonic() + self._timeout if self._timeout > 0 else None
        while True:
            wait = ALIVE_CHECK_SECONDS
            if deadline is not None:
                wait = max(min(wait, deadline - time.monotonic()), 0)
            try:
                return self._result_queue.get(timeout=wait)
            except queue.Empty:
                dead = [w.pid for w, on in zip(self._workers, self._active, strict=True) if on and not w.is_alive()]
                if dead:
                    self._shutdown_workers()
                    pids = ", ".join(map(str, dead))
                    raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly") from None
                if deadline is not None and time.monotonic() >= deadline:
                    raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds") from None

    def _next_data(self) -> Any:
        while True:
            while self._in_order and self._given not in self._worker_of and self._given < self._sent:
                if self._given in self._finished:
                    break
                self._given += 1  # that task went to a worker whose stream had ended
            if self._in_order and self._given in self._finished:
                result = self._finished.pop(self._given)
                self._given += 1
                return self._give(result)
            if not self._worker_of:
                if not self._persistent_workers:
                    self._shutdown_workers()
                raise StopIteration
            number, result = self._receive()
            if isinstance(number, Restart):
                continue
            if isinstance(result, End):
                self._end_worker(result.worker_id)
                self._send()
                continue
            self._worker_of.pop(number, None)
            if not self._in_order:
                return self._give(result)
            self._finished[number] = result

    def _end_worker(self, worker_id: int) -> None:
        """A worker's part of the stream has ended: forget its other tasks, and end it unless it stays for another round."""
        self._active[worker_id] = False
        for number in [number for number, owner in self._worker_of.items() if owner == worker_id]:
            del self._worker_of[number]
        if not self._persistent_workers and self._dataset_kind == _DatasetKind.Iterable:
            self._index_queues[worker_id].put(None)

    def _give(self, result: Any) -> Any:
        self._send()
        if isinstance(result, Failure):
            self._shutdown_workers()
            result.reraise()
        return result

    def _shutdown_workers(self) -> None:
        """End every worker; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self._done.set()
        for index_queue in self._index_queues:
            index_queue.put(None)
        for worker in self._workers:
            worker.join(_JOIN_SECONDS)
            if worker.is_alive():
                worker.terminate()
                worker.join()
        for each in (*self._index_queues, self._result_queue):
            each.cancel_join_thread()
            each.close()

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            self._shutdown_workers()
