"""`torch.futures`: values that are there later."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from . import _forks

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")


class Future(Generic[T]):
    """A value, or an exception, that another thread or a callback sets once.

    Args:
        devices: where values on devices may lie; nothing else lies elsewhere on one machine, so it is only kept.
    """

    def __init__(self, *, devices: list[Any] | None = None) -> None:
        self._devices = list(devices or [])
        self._condition = threading.Condition(_forks.lock())
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[], None]] = []

    def done(self) -> bool:
        """Whether there is a value or an exception."""
        return self._done

    def wait(self) -> T:
        """The value, once it is there; raises the exception if there is one."""
        with self._condition:
            self._condition.wait_for(lambda: self._done)
        if self._error is not None:
            raise self._error
        return self._value

    def value(self) -> T:
        """The value, which must be there; raises the exception if there is one.

        Raises:
            RuntimeError: if neither is there yet.
        """
        if not self._done:
            raise RuntimeError("value() can only be called on a future that is completed")
        return self.wait()

    def set_result(self, result: T) -> None:
        """Complete it with a value.

        Raises:
            RuntimeError: if it is complete already.
        """
        self._complete(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Complete it with an exception, which `wait` raises."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def _complete(self, value: Any, error: BaseException | None) -> None:
        with self._condition:
            if self._done:
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a Future can only be marked "
                    "completed once."
                )
            self._value, self._error, self._done = value, error, True
            waiting, self._callbacks = self._callbacks, []
            self._condition.notify_all()
        for callback in waiting:
            callback()

    def _when_done(self, callback: Callable[[], None]) -> None:
        with self._condition:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback()

    def then(self, callback: Callable[[Future[T]], Any]) -> Future[Any]:
        """A future of what `callback` returns for this one, once it is complete; an exception of it is kept there."""
        result: Future[Any] = Future(devices=self._devices)

        def run() -> None:
            try:
                value = callback(self)
            except Exception as error:  # noqa: BLE001  (whatever the program's callback raises belongs to who waits)
                result.set_exception(_failed(error))
            else:
                result.set_result(value)

        self._when_done(run)
        return result

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call `callback` with this future once it is complete. What it raises nobody waits for: it is said on stderr."""

        def run() -> None:
            try:
                callback(self)
            except Exception as error:  # noqa: BLE001  (as in `then`, but there is nobody to hand it to)
                sys.stderr.write(f"{_failed(error)}\n")

        self._when_done(run)


def _failed(error: Exception) -> RuntimeError:
    made = RuntimeError(f"Got the following error when running the callback: {type(error).__name__}: {error}")
    made.__cause__ = error
    return made


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future of the list, complete when all of them are. An exception of one of them is its exception."""
    result: Future[list[Future[Any]]] = Future()
    waiting = [len(futures)]
    lock = _forks.lock()

    def one_more(future: Future[Any]) -> None:
        with lock:
            waiting[0] -= 1
            if waiting[0]:
                return
        failed = next((f._error for f in futures if f._error is not None), None)
        if failed is not None:
            result.set_exception(failed)
        else:
            result.set_result(futures)

    for future in futures:
        future.add_done_callback(one_more)
    if not futures:
        result.set_result([])
    return result


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """The values of all of them, once they are there; raises the first exception."""
    return [future.wait() for future in cast("list[Future[Any]]", collect_all(futures).wait())]
