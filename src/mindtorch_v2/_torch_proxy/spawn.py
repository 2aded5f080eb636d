"""Child processes of `multiprocessing` that start from nothing (spawn, forkserver) get the proxy too.

Such a child unpickles its preparation data before it runs the main module of its parent, which may say `import torch`.
An object in that data whose unpickling installs the proxy therefore comes in time.
"""

from __future__ import annotations

from multiprocessing import spawn
from typing import Any

_former: Any = None


class InstallOnUnpickle:
    """Installs the proxy where it is unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        return _install, ()


def _install() -> None:
    from . import install

    install()


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
