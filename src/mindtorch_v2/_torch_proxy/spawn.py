"""Child processes of `multiprocessing` that start from nothing (spawn, forkserver) get the proxy too.

Such a child unpickles its preparation data before it runs the main module of its parent, which may say `import torch`.
An object in that data whose unpickling installs the proxy therefore comes in time. The child has not set its `sys.path`
by then, so the object brings the folder of mindtorch_v2 with it.
"""

from __future__ import annotations

from multiprocessing import spawn
from pathlib import Path
from typing import Any

import mindtorch_v2

_former: Any = None

_IN_THE_CHILD = """
import importlib.util, sys
if importlib.util.find_spec("mindtorch_v2") is None:
    sys.path.append({folder!r})
from mindtorch_v2._torch_proxy import install
install()
"""


class InstallOnUnpickle:
    """Installs the proxy where it is unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        folder = str(Path(mindtorch_v2.__path__[0]).parent)
        return exec, (_IN_THE_CHILD.format(folder=folder), {})


def attach() -> None:
    """Add the object to the preparation data of every child."""
    global _former
    former = _former = spawn.get_preparation_data

    def get_preparation_data(name: str) -> dict[str, Any]:
        data = former(name)
        data["mindtorch_v2_proxy"] = InstallOnUnpickle()
        return data

    spawn.get_preparation_data = get_preparation_data


def detach() -> None:
    """Restore what `attach` has replaced."""
    global _former
    spawn.get_preparation_data = _former
    _former = None
