"""Finding CANN: where its runtime library lies."""

from __future__ import annotations

import os
from pathlib import Path

RUNTIME = "libascendcl.so"


def find_runtime() -> Path | None:
    """The runtime library under the folders that CANN's environment scripts name, or None."""
    homes = [os.environ.get(name) for name in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")]
    folders = [Path(home) / "lib64" for home in homes if home]
    folders += [Path(folder) for folder in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if folder]
    for folder in folders:
        if (folder / RUNTIME).exists():
            return folder / RUNTIME
    return None
