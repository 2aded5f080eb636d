"""A lock between processes: a file that only one of them can make."""

from __future__ import annotations

import os
import time
import warnings

__all__ = ["FileBaton"]


class FileBaton:
    """A file as a baton: who makes it has it, the others wait until it is gone.

    Args:
        lock_file_path: the file.
        wait_seconds: how long to sleep between looks.
        warn_after_seconds: warn once when it took longer; None for never.
    """

    def __init__(self, lock_file_path: str, wait_seconds: float = 0.1, warn_after_seconds: float | None = None) -> None:
        self.lock_file_path = lock_file_path
        self.wait_seconds = wait_seconds
        self.warn_after_seconds = warn_after_seconds
        self.fd: int | None = None

    def try_acquire(self) -> bool:
        """Make the file; False when it is there."""
        try:
            self.fd = os.open(self.lock_file_path, os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return False
        return True

    def wait(self) -> None:
        """Sleep until the file is gone."""
        start, warned = time.monotonic(), False
        while os.path.exists(self.lock_file_path):
            time.sleep(self.wait_seconds)
            waited = time.monotonic() - start
            if not warned and self.warn_after_seconds is not None and waited > self.warn_after_seconds:
                warnings.warn(f"{self.lock_file_path} has been held for {waited:.1f} seconds", stacklevel=2)
                warned = True

    def release(self) -> None:
        """Remove the file."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
        os.remove(self.lock_file_path)
