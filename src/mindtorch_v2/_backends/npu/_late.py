"""Results that have not been launched, and what has them launched in time.

Note [Late results]
What begins a composition that one function computes (`composing.py`) is not launched at once: its result is a storage without memory, with a `Late` in the place of its lease. The launch comes when
somebody asks for the memory, or before anything that could tell that it has not been there: a launch that may write to an operand, a copy, another stream, an event, a wait, the allocator's figures. Where
nobody can ask any more it never comes. Operands are kept until then. The launches of plans (`plans.py`) write to new memory alone, so these may go before.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable
from typing import Any

from ..._forks import lock
from ..._state import WAITING

_numbers = itertools.count()
alive: weakref.WeakValueDictionary[int, Late] = weakref.WeakValueDictionary()
"""What has not been launched and may be asked for, in order."""
_lock = lock()
_thread = threading.local()


class fresh:
    """A context whose launches write to new memory alone, so that what is late may stay so."""

    def __enter__(self) -> None:
        self.before = getattr(_thread, "fresh", False)
        _thread.fresh = True

    def __exit__(self, *error: object) -> None:
        _thread.fresh = self.before


def hurries() -> bool:
    """Whether a launch of this thread may write to what a late result reads."""
    return bool(alive) and not getattr(_thread, "fresh", False)


class Late:
    """A result that has not been launched.

    op, operands, shape: what it is of, and its own. source, epsilon: of the composition that it may become a part of. stream: on which it belongs. compute: gives the lease of a Late.
    """

    __slots__ = ("__weakref__", "compute", "epsilon", "lease", "number", "op", "operands", "shape", "source", "stream")

    def __init__(
        self, op: Any, operands: tuple, shape: tuple, source: Any, epsilon: float, stream: Any, compute: Callable
    ) -> None:
        self.op, self.operands, self.shape, self.source, self.epsilon = op, operands, shape, source, epsilon
        self.stream, self.compute = stream, compute
        self.lease: Any = None
        self.number = next(_numbers)
        alive[self.number] = self

    def launched(self) -> Any:
        """The lease, once what gives it has been launched. Raises what that raises, each time."""
        with _lock:
            if self.lease is None:
                with fresh():
                    self.lease = self.compute(self)
                alive.pop(self.number, None)
                self.operands, self.source = (), None
        return self.lease


def settle() -> None:
    """Launch all that is late. The newest first: what it was made of may not be asked for by anybody else."""
    for ref in reversed(alive.valuerefs()) if alive else ():
        one = ref()
        if one is not None:
            one.launched()


WAITING.append(settle)
