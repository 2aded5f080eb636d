"""Handles of calls that have begun."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from ..futures import Future
from ._engines import DONE, Request


class Work:
    """A call that has begun: wait for it before reading what it writes, or changing what it reads."""

    def __init__(
        self,
        request: Request = DONE,
        outputs: Any = None,
        finish: Callable[[], None] | None = None,
        seconds: float = 1800.0,
    ) -> None:
        self._request, self._outputs, self._finish, self._seconds = request, outputs, finish, seconds
        self._done = False
        self._error: BaseException | None = None
        self._future: WorkFuture | None = None
        self._among: dict[Work, Any] | None = None

    def _keep(self, among: dict[Work, Any], hold: Any) -> None:
        """Stand among the works of a group until it is settled, with memory that is read or written until then."""
        self._among = among
        among[self] = hold

    def _let_go(self) -> None:
        if self._among is not None:
            self._among.pop(self, None)
            self._among = None

    def _settle(self, step: Callable[[], bool]) -> bool:
        if self._error is not None:
            raise self._error
        if not self._done:
            try:
                if not step():
                    return False
                if self._finish is not None:
                    self._finish()
            except Exception as error:
                self._error = error
                self._let_go()
                raise
            finally:
                if self._error is not None and self._future is not None:
                    self._future.settle(self)
            self._finish = None
            self._done = True
            self._let_go()
            if self._future is not None:
                self._future.settle(self)
        return True

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Return True once it is done. Raises what went wrong; DistBackendError when it is not done in time."""
        seconds = self._seconds if not timeout else timeout.total_seconds()

        def step() -> bool:
            self._request.wait(seconds)
            return True

        return self._settle(step)

    def synchronize(self) -> None:
        """`wait`."""
        self.wait()

    def is_completed(self) -> bool:
        """Whether it is done; goes on with it."""
        return self._error is not None or self._settle(self._request.poll)

    def is_success(self) -> bool:
        """Whether it is done and nothing went wrong."""
        return self._done

    def exception(self) -> BaseException | None:
        """What went wrong."""
        return self._error

    def result(self) -> list[Any]:
        """The tensors that it writes."""
        self.wait()
        return self._outputs

    def source_rank(self) -> int:
        """The rank, in its group, that a message came from."""
        return self._request.source

    _source_rank = source_rank

    def get_future(self) -> Future[Any]:
        """A future of the tensors that it writes; whoever waits for it goes on with the call."""
        if self._future is None:
            self._future = WorkFuture(self)
            if self._done or self._error is not None:
                self._future.settle(self)
        return self._future

    @staticmethod
    def boxed(work: Work) -> Work:
        """The work itself."""
        return work

    @staticmethod
    def unbox(work: Work) -> Work:
        """The work itself."""
        return work


class WorkFuture(Future[Any]):
    """The future of a Work: nobody completes it unless somebody waits, so waiting for it, or for what follows from it, goes on with the work."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work: Work | None = work

    def settle(self, work: Work) -> None:
        """Complete it, as the work is."""
        if not self._done:
            self._work = None
            if work._error is not None:
                self._complete(None, work._error)
            else:
                self._complete(work._outputs, None)

    def done(self) -> bool:
        if self._work is not None:
            try:
                self._work.is_completed()
            except Exception:  # noqa: BLE001  (it is kept, and raised by `wait`)
                return True
        return self._done

    def wait(self) -> Any:
        if self._work is not None:
            self._work.wait()
        return super().wait()

    def then(self, callback: Callable[[Future[Any]], Any]) -> Future[Any]:
        made = _Later(self)
        _follow(self, made, callback)
        return made


class _Later(Future[Any]):
    """A future of what follows from another one, which it drives."""

    def __init__(self, before: Future[Any]) -> None:
        super().__init__()
        self._before = before

    def done(self) -> bool:
        return self._done or (self._before.done() and self._done)

    def wait(self) -> Any:
        if not self._done:
            self._before.wait()
        return super().wait()

    def then(self, callback: Callable[[Future[Any]], Any]) -> Future[Any]:
        made = _Later(self)
        _follow(self, made, callback)
        return made


def _follow(before: Any, made: _Later, callback: Callable[[Future[Any]], Any]) -> None:
    def run() -> None:
        try:
            value = callback(before)
        except Exception as error:  # noqa: BLE001  (it belongs to who waits for the future)
            made.set_exception(error)
        else:
            made.set_result(value)

    before._when_done(run)
