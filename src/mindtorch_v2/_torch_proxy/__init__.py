"""Serve mindtorch_v2 as `import torch`.

`install()` puts one finder in front of `sys.meta_path`. From then on `import torch` gives mindtorch_v2 itself,
and `torch.X` gives one of three things, as `schema/torch_proxy.yaml` says:

* tier 1: the real module `mindtorch_v2.X` (the same object under both names);
* tier 2: a functional stub, which answers truthfully for a machine without the feature (`torch.cuda.is_available()`);
* tier 3: an import-only stub, whose classes and functions can be imported and tested against, and raise when called.

A name that none of them has raises `AttributeError` or `ModuleNotFoundError`: nothing is invented.
"""

from __future__ import annotations

import importlib
import os
import sys
import sysconfig

import mindtorch_v2
from mindtorch_v2 import _state
from mindtorch_v2._generated.proxy import index

from . import attributes, naming, spawn
from .finder import ProxyFinder

__all__ = ["install", "is_installed", "serve_children", "take_place", "uninstall"]

_finder: ProxyFinder | None = None


def is_installed() -> bool:
    """Whether `import torch` is served by mindtorch_v2 in this process."""
    return _finder is not None


def install(importing: str = "") -> None:
    """Serve `import torch` from mindtorch_v2 in this process; a second call changes nothing.

    importing: the name of the module that is being imported and shall become mindtorch_v2, `torch`; see `beside/torch`.

    Raises:
        RuntimeError: if another `torch` has been imported already.
    """
    global _finder
    if _finder is not None:
        sys.modules["torch"] = mindtorch_v2
        return
    present = sys.modules.get("torch")
    if present is not None and present is not mindtorch_v2 and importing != "torch":
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


def serve_children() -> None:
    """Let processes of Python that this one starts find torch too, by a folder in front of their PYTHONPATH.

    It is on the path of this process, too, for some programs hand that down (pytest-xdist).
    """
    here = os.path.abspath(mindtorch_v2.__path__[0])
    folders = [os.path.join(here, "_torch_proxy", "beside")]
    if folders[0] not in sys.path:
        sys.path.insert(1, folders[0])
    if os.path.dirname(here) not in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        folders.append(os.path.dirname(here))  # a source tree, which children may not know
    before = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder not in ("", *folders)]
    os.environ["PYTHONPATH"] = os.pathsep.join([*folders, *before])


def take_place(name: str) -> None:
    """Let a module that stands beside torch, and is being imported from a file, be what the finder serves by that name."""
    sys.modules.pop(name, None)
    sys.modules[name] = importlib.import_module(name)


def uninstall() -> None:
    """Undo `install()`: forget `torch` and everything below it. Without an earlier `install()` this does nothing.

    Objects that a program has taken from `torch` before stay what they are.
    """
    global _finder
    if _finder is None:
        return
    standing = sys.modules.get("torch_npu.contrib.transfer_to_npu")
    if standing is not None:
        standing.end()
    spawn.detach()
    naming.detach()
    attributes.detach()
    _state.serves_torch = False
    sys.meta_path.remove(_finder)
    for name in [
        n
        for n in sys.modules
        if n == "torch" or n.startswith(("torch.", "torch_npu.")) or n in (*index.BESIDE, *index.COMPANIONS)
    ]:
        del sys.modules[name]
    _finder = None
