"""Serve mindtorch_v2 as `import torch`.

`install()` puts one finder in front of `sys.meta_path`. From then on `import torch` gives mindtorch_v2 itself,
and `torch.X` gives one of three things, as `schema/torch_proxy.yaml` says:

* tier 1: the real module `mindtorch_v2.X` (the same object under both names);
* tier 2: a functional stub, which answers truthfully for a machine without the feature (`torch.cuda.is_available()`);
* tier 3: an import-only stub, whose classes and functions can be imported and tested against, and raise when called.

A name that none of them has raises `AttributeError` or `ModuleNotFoundError`: nothing is invented.
"""

from __future__ import annotations

import sys

import mindtorch_v2
from mindtorch_v2 import _state
from mindtorch_v2._generated.proxy import index

from . import attributes, naming, spawn
from .finder import ProxyFinder

__all__ = ["install", "uninstall", "is_installed"]

_finder: ProxyFinder | None = None


def is_installed() -> bool:
    """Whether `import torch` is served by mindtorch_v2 in this process."""
    return _finder is not None


def install() -> None:
    """Serve `import torch` from mindtorch_v2 in this process; a second call changes nothing.

    Raises:
        RuntimeError: if another `torch` has been imported already.
    """
    global _finder
    if _finder is not None:
        return
    present = sys.modules.get("torch")
    if present is not None and present is not mindtorch_v2:
        where = getattr(present, "__file__", None) or "an unknown place"
        raise RuntimeError(
            f"cannot serve torch from mindtorch_v2: another torch, from {where}, has been imported already. "
            "Call mindtorch_v2._torch_proxy.install() before the first `import torch`, or run the program with "
            "`python -m mindtorch_v2 program.py`."
        )
    finder = ProxyFinder()
    sys.meta_path.insert(0, finder)
    sys.modules["torch"] = mindtorch_v2
    _finder = finder
    _state.serves_torch = True
    naming.attach()
    attributes.attach()
    spawn.attach()


def uninstall() -> None:
    """Undo `install()`: forget `torch` and everything below it. Without an earlier `install()` this does nothing.

    Objects that a program has taken from `torch` before stay what they are.
    """
    global _finder
    if _finder is None:
        return
    spawn.detach()
    naming.detach()
    attributes.detach()
    _state.serves_torch = False
    sys.meta_path.remove(_finder)
    for name in [n for n in sys.modules if n == "torch" or n.startswith("torch.") or n in index.BESIDE]:
        del sys.modules[name]
    _finder = None
