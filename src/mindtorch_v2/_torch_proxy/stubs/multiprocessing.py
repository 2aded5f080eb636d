"""`torch.multiprocessing`: Python's module, and `spawn`, which starts processes and waits for the first failure."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import signal
import time
import traceback
from collections.abc import Callable
from multiprocessing import (
    Array,
    AuthenticationError,
    Barrier,
    BoundedSemaphore,
    BufferTooShort,
    Condition,
    Event,
    JoinableQueue,
    Lock,
    Manager,
    Pipe,
    Pool,
    Process,
    ProcessError,
    Queue,
    RawArray,
    RawValue,
    RLock,
    Semaphore,
    SimpleQueue,
    TimeoutError,
    Value,
    active_children,
    allow_connection_pickling,
    cpu_count,
    current_process,
    freeze_support,
    get_all_start_methods,
    get_context,
    get_logger,
    get_start_method,
    log_to_stderr,
    parent_process,
    set_executable,
    set_forkserver_preload,
    set_start_method,
)
from typing import Any

_STRATEGY = "file_system"
_PATIENCE = 5.0  # seconds for processes that are asked to end


def get_all_sharing_strategies() -> set[str]:
    """The ways in which tensors are shared: one, which copies them."""
    return {_STRATEGY}


def get_sharing_strategy() -> str:
    """The way in which tensors are shared."""
    return _STRATEGY


def set_sharing_strategy(new_strategy: str) -> None:
    """Accept the only strategy.

    Raises:
        ValueError: for any other.
    """
    if new_strategy != _STRATEGY:
        raise ValueError(f"tensors are copied between processes; the only sharing strategy is {_STRATEGY!r}")


class ProcessException(Exception):
    """A process that `spawn` has started failed."""

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.error_pid = pid


class ProcessRaisedException(ProcessException):
    """A process ended with an exception."""


class ProcessExitedException(ProcessException):
    """A process was ended by a signal or an exit code."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name


def _run(fn: Callable[..., Any], index: int, args: tuple[Any, ...], errors: Any) -> None:
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # the parent was interrupted too and says so
    except Exception:  # noqa: BLE001  (raised again in the parent)
        errors.put(traceback.format_exc())
        raise SystemExit(1) from None


class ProcessContext:
    """Processes that have been started together."""

    def __init__(self, processes: list[Any], error_queues: list[Any]) -> None:
        self.processes = processes
        self.error_queues = error_queues
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """The process numbers."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait for one process or more; True when all have ended well.

        Raises:
            ProcessRaisedException: if one ended with an exception; the others are ended.
            ProcessExitedException: if one was ended otherwise.
        """
        if not self.sentinels:
            return True
        readers = {self.error_queues[index]._reader: index for index in self.sentinels.values()}
        ready = multiprocessing.connection.wait([*self.sentinels, *readers], timeout)
        for reader in ready:
            if reader in readers:  # it may wait for others, which wait for it
                self._fail(readers[reader], grace_period)
        for sentinel in ready:
            index = self.sentinels.pop(sentinel)
            process = self.processes[index]
            process.join()
            if process.exitcode:
                self._fail(index, grace_period)
        return not self.sentinels

    def _join_all(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        for process in self.processes:
            process.join(max(0.0, end - time.monotonic()))

    def _fail(self, index: int, grace_period: float | None) -> None:
        if grace_period is not None:
            self._join_all(grace_period)
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        self._join_all(_PATIENCE if grace_period is None else grace_period)
        for process in self.processes:
            if process.is_alive():
                process.kill()
            process.join()
        failed, errors = self.processes[index], self.error_queues[index]
        if errors.empty():
            code = failed.exitcode
            if code < 0:
                name = signal.Signals(-code).name
                text = f"process {index} terminated with signal {name}"
                raise ProcessExitedException(text, index, failed.pid, code, name)
            raise ProcessExitedException(f"process {index} terminated with exit code {code}", index, failed.pid, code)
        text = f"\n\n-- Process {index} terminated with the following error:\n{errors.get()}"
        raise ProcessRaisedException(text, index, failed.pid)


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Call `fn(i, *args)` in `nprocs` processes; with `join`, wait for all of them."""
    context = multiprocessing.get_context(start_method)
    processes, queues = [], []
    for index in range(nprocs):
        errors = context.SimpleQueue()
        process = context.Process(target=_run, args=(fn, index, args, errors), daemon=daemon)
        process.start()
        processes.append(process)
        queues.append(errors)
    started = ProcessContext(processes, queues)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Call `fn(i, *args)` in `nprocs` processes that start from nothing."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)


__all__ = [
    "AuthenticationError",
    "BufferTooShort",
    "ProcessError",
    "RawArray",
    "RawValue",
    "TimeoutError",
    "allow_connection_pickling",
    "freeze_support",
    "log_to_stderr",
    "set_executable",
    "set_forkserver_preload",
    "Array",
    "Barrier",
    "BoundedSemaphore",
    "Condition",
    "Event",
    "JoinableQueue",
    "Lock",
    "Manager",
    "Pipe",
    "Pool",
    "Process",
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "Queue",
    "RLock",
    "Semaphore",
    "SimpleQueue",
    "Value",
    "active_children",
    "cpu_count",
    "current_process",
    "get_all_sharing_strategies",
    "get_all_start_methods",
    "get_context",
    "get_logger",
    "get_sharing_strategy",
    "get_start_method",
    "parent_process",
    "set_sharing_strategy",
    "set_start_method",
    "spawn",
    "start_processes",
]
