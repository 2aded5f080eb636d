"""What writes pickles that call this library's things by PyTorch's names."""

from __future__ import annotations

import pickle
from types import FunctionType
from typing import Any

from .. import _device, _dtype, _layout
from .._tensor import Size
from .names import torch_name
from .rebuild import _get_layout

_PythonPickler: Any = getattr(pickle, "_Pickler")  # noqa: B009 (type checkers do not know it)


class NamingPickler(_PythonPickler):
    """Python's pickler, which calls this library's things by PyTorch's names (Note in `_serialization/names`)."""

    def save_global(self, obj: Any, name: str | None = None) -> None:
        known = torch_name(obj)
        if known is None:
            super().save_global(obj, name)
            return
        self.write(pickle.GLOBAL + "\n".join((*known, "")).encode())
        self.memoize(obj)

    def save_dtype(self, obj: _dtype.dtype) -> None:
        self.save_global(obj)

    def save_device(self, obj: _device.device) -> None:
        self.save_reduce(_device.device, (obj.type,) if obj.index is None else (obj.type, obj.index), obj=obj)

    def save_size(self, obj: Size) -> None:
        self.save_reduce(Size, (tuple(obj),), obj=obj)

    def save_layout(self, obj: _layout.layout) -> None:
        self.save_reduce(_get_layout, (str(obj),), obj=obj)


# The table by type is written out, since other packages (dill) put functions of theirs into Python's own.
NamingPickler.dispatch = {
    type(None): NamingPickler.save_none,
    bool: NamingPickler.save_bool,
    int: NamingPickler.save_long,
    float: NamingPickler.save_float,
    bytes: NamingPickler.save_bytes,
    bytearray: NamingPickler.save_bytearray,
    str: NamingPickler.save_str,
    tuple: NamingPickler.save_tuple,
    list: NamingPickler.save_list,
    dict: NamingPickler.save_dict,
    set: NamingPickler.save_set,
    frozenset: NamingPickler.save_frozenset,
    type: NamingPickler.save_type,
    FunctionType: NamingPickler.save_global,
    pickle.PickleBuffer: NamingPickler.save_picklebuffer,
}
NamingPickler.dispatch[_dtype.dtype] = NamingPickler.save_dtype
NamingPickler.dispatch[_device.device] = NamingPickler.save_device
NamingPickler.dispatch[Size] = NamingPickler.save_size
NamingPickler.dispatch[_layout.layout] = NamingPickler.save_layout


def pickler_class(pickle_module: Any) -> Any:
    """The class that writes pickles for a module of the form of `pickle`: Python's own is made to write PyTorch's names."""
    if pickle_module is pickle or getattr(pickle_module, "Pickler", None) is pickle.Pickler:
        return NamingPickler
    return pickle_module.Pickler
