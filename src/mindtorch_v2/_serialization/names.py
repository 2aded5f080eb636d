"""The names by which files call things: PyTorch's, whatever ours are.

A pickle holds no functions and classes, only their names. Files that are written here say `torch._utils _rebuild_tensor_v2`, so that PyTorch
reads them, and such names lead back to the functions of this library, with or without a module called `torch`.
"""

from __future__ import annotations

import _codecs
import functools
import importlib
from collections import Counter, OrderedDict
from typing import Any

from .. import _dtype, _layout, _tensor
from .._device import device
from .._storage import UntypedStorage
from .._typed_storage import LEGACY_STORAGES, TypedStorage
from . import rebuild

_PACKAGE = __name__.partition(".")[0]


@functools.cache
def safe_globals_by_name() -> dict[str, Any]:
    """What a file may name when it is read with `weights_only=True`: "module.name" to object."""
    from ..nn.parameter import Parameter  # nn is made of tensors, so it cannot be imported with this module

    found: dict[str, Any] = {
        "collections.OrderedDict": OrderedDict,
        "collections.Counter": Counter,
        "builtins.set": set,
        "builtins.bytearray": bytearray,
        "builtins.complex": complex,
        "_codecs.encode": _codecs.encode,
        "torch.Size": _tensor.Size,
        "torch.Tensor": _tensor.Tensor,
        "torch.device": device,
        "torch.nn.parameter.Parameter": Parameter,
        "torch.serialization._get_layout": rebuild._get_layout,
        "torch._tensor._rebuild_from_type_v2": rebuild._rebuild_from_type_v2,
        "torch.storage.UntypedStorage": UntypedStorage,
        "torch.storage.TypedStorage": TypedStorage,
    }
    for function in rebuild.REBUILD_FUNCTIONS:
        found[f"torch._utils.{function.__name__}"] = function
    for dtype in _dtype.DTYPES.values():
        found[f"torch.{dtype.name}"] = dtype
    for name, storage in LEGACY_STORAGES.items():
        found[f"torch.{name}"] = storage
        found[f"torch.cuda.{name}"] = storage  # where the elements go is said elsewhere
    return found


@functools.cache
def _names_by_id() -> dict[int, tuple[str, str]]:
    from .._random.generator import Generator

    names = {id(Generator): ("torch._C", "Generator"), id(_layout.layout): ("torch", "layout")}
    for full, found in safe_globals_by_name().items():
        module, _, name = full.rpartition(".")
        if module.partition(".")[0] == "torch":
            names.setdefault(id(found), (module, name))
    return names


_PUBLIC = ("", "nn.functional", "linalg", "special", "fft", "autograd.grad_mode")
"""Where PyTorch offers what lies in private modules here."""

_EXTENSION_MODULES = {
    "torch._C": "",
    "torch._C._nn": "nn.functional",
    "torch._C._linalg": "linalg",
    "torch._C._fft": "fft",
}
"""Where PyTorch's files look for functions that are compiled there."""


def torch_name(found: Any) -> tuple[str, str] | None:
    """The module and name by which PyTorch's files call a class, function or dtype of this library; None for what is not ours."""
    known = _names_by_id().get(id(found))
    if known is not None:
        return known
    module = getattr(found, "__module__", None) or ""
    name = getattr(found, "__qualname__", None)
    package, _, rest = module.partition(".")
    if name is None or package not in (_PACKAGE, "torch"):
        return None
    if any(part.startswith("_") for part in rest.split(".")):
        for place in _PUBLIC:
            try:
                if getattr(_module(place), name, None) is found:
                    rest = place
                    break
            except ModuleNotFoundError:
                continue
    return (f"torch.{rest}" if rest else "torch"), name


def find_class(module: str, name: str) -> Any:
    """The thing that PyTorch's files call `module`, `name`. AttributeError or ImportError when there is none here.

    This imports modules: it is for files that are trusted.
    """
    known = safe_globals_by_name().get(f"{module}.{name}")
    if known is not None:
        return known
    if module == "torch._C" and name == "_VariableFunctionsClass":
        return _module("")  # functions are named as its attributes
    if module == "torch._C" and name == "TensorBase":
        return _tensor.Tensor
    found = _module(_EXTENSION_MODULES.get(module, module.removeprefix("torch").lstrip(".")))
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _module(place: str) -> Any:
    return importlib.import_module(f"{_PACKAGE}.{place}" if place else _PACKAGE)
