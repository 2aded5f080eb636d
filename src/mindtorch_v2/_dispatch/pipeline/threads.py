"""Helpers for programs of many blocks: threads that claim blocks beside the one that runs the flush.

The caller works itself and never waits for a helper that has not started, so a busy machine costs nothing.
"""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..._threads import get_num_threads

LEAST = 1 << 17
"""Elements from which helpers are asked."""

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_size = 0


def run(program: Any, elements: int) -> None:
    """Run a program of the interpreter to its end."""
    helpers = get_num_threads() - 1 if elements >= LEAST else 0
    futures = [_executor(helpers).submit(program.run) for _ in range(helpers)]
    program.run()
    for future in futures:
        if not future.cancel():
            future.result()


def limit() -> int:
    """The number of elements from which helpers are asked; more than there can be when there is one thread."""
    return LEAST if get_num_threads() > 1 else sys.maxsize


def _executor(helpers: int) -> ThreadPoolExecutor:
    global _pool, _size
    with _lock:
        if _pool is None or _size < helpers:
            _pool = ThreadPoolExecutor(helpers, thread_name_prefix="mindtorch-blocks")
            _size = helpers
        return _pool
