"""The pickle of a checkpoint's metadata, taken to be hostile: see Note [Metadata from others] in `_files.py`.

It is read as files of weights are (`_serialization.weights_only`), by instructions that build plain values, with those of later protocols. It may name the classes of metadata, which
get the attributes that they have and no others, sizes, dtypes, layouts and paths; keys are texts or numbers, or indices of metadata of which each part is what it should be.
"""

from __future__ import annotations

import dataclasses
import os
import pickle
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any

import mindtorch_v2 as torch

from ..._serialization.shown import shown
from ..._serialization.weights_only import Unpickler
from . import metadata as of_metadata
from .metadata import MetadataIndex, TensorProperties

_CLASSES = {
    name: getattr(of_metadata, name)
    for name in (
        "BytesStorageMetadata",
        "ChunkStorageMetadata",
        "Metadata",
        "MetadataIndex",
        "StorageMeta",
        "TensorProperties",
        "TensorStorageMetadata",
        "_MEM_FORMAT_ENCODING",
    )  # fmt: skip
}
_PATHS = ("PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath", "Path")
_MOST_DIMENSIONS = 1 << 10


class _Call:
    """A function that the pickle may call."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function


def _setting(name: Any) -> Any:
    """The dtype or layout of a name: what a tensor's properties are made of. UnpicklingError for anything else."""
    found = getattr(torch, name.removeprefix("torch."), None) if isinstance(name, str) else None
    if not isinstance(found, (torch.dtype, torch.layout)):
        raise UnpicklingError(f"the metadata of a checkpoint names torch.{shown(name)}, which it must not")
    return found


def _size(lengths: Any = ()) -> torch.Size:
    if not isinstance(lengths, (tuple, list)) or len(lengths) > _MOST_DIMENSIONS:
        raise UnpicklingError("a size is made from a tuple of whole numbers")
    if not all(type(length) is int for length in lengths):
        raise UnpicklingError("a size is made from a tuple of whole numbers")
    return torch.Size(lengths)


def _path(*parts: Any) -> str:
    if not parts or not all(isinstance(part, str) for part in parts):
        raise UnpicklingError("a path is made from texts")
    return os.path.join(*parts)


def _ordered(*pairs: Any) -> dict:
    if pairs and pairs != ([],):
        raise UnpicklingError("a dict is made empty")
    return {}


def _format(value: Any) -> Any:
    if type(value) is not int or value not in (0, 1, 2):
        raise UnpicklingError("a memory format is made from its number")
    return of_metadata._MEM_FORMAT_ENCODING(value)


_SETTING, _SIZE, _PATH, _ORDERED, _FORMAT = map(_Call, (_setting, _size, _path, _ordered, _format))


class MetadataUnpickler(Unpickler):
    """Reads the metadata from a binary file: `MetadataUnpickler(file, the class of places).load()`."""

    def __init__(self, file: Any, place: type) -> None:
        super().__init__(file, encoding="utf-8")
        self._classes = _CLASSES | {"_StorageInfo": place}
        self._fields = {
            cls: frozenset(field.name for field in dataclasses.fields(cls))
            for cls in self._classes.values()
            if dataclasses.is_dataclass(cls)
        }

    def _found(self, module: str, name: str) -> Any:
        package = module.partition(".")[0]
        if package in ("torch", "mindtorch_v2"):
            if name in self._classes and module.partition(".")[2].startswith("distributed.checkpoint."):
                return _FORMAT if name == "_MEM_FORMAT_ENCODING" else self._classes[name]
            if name == "Size" or (module, name) == ("mindtorch_v2._tensor", "_sized"):
                return _SIZE
            if (module, name) in (("mindtorch_v2._dtype", "by_name"), ("mindtorch_v2._layout", "_by_name")):
                return _SETTING
            if name == "_get_layout":
                return _SETTING
            if package == module:
                return _setting(name)
        if (module, name) == ("collections", "OrderedDict"):
            return _ORDERED
        if module in ("pathlib", "pathlib._local") and name in _PATHS:
            return _PATH
        raise UnpicklingError(f"the metadata of a checkpoint names {shown(f'{module}.{name}')}, which it must not")

    def _global(self) -> None:
        module, name = self._line(), self._line()
        self._push(self._found(module, name))

    def _stack_global(self) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise UnpicklingError("a name is made of texts")
        self._push(self._found(module, name))

    def _reduce(self) -> None:
        args, function = self._stack.pop(), self._stack[-1]
        if not isinstance(function, _Call) or not isinstance(args, tuple):
            raise UnpicklingError(f"the metadata of a checkpoint calls {shown(function)}, which it must not")
        try:
            self._stack[-1] = function.function(*args)
        except TypeError as error:
            raise UnpicklingError(f"the metadata of a checkpoint is malformed: {error}") from error

    def _newobj(self) -> None:
        args, cls = self._stack.pop(), self._stack.pop()
        if not isinstance(cls, type) or cls not in self._fields or args != ():
            raise UnpicklingError(f"the metadata of a checkpoint makes {shown(cls)}, which it must not")
        self._push(object.__new__(cls))

    def _build(self) -> None:
        state, made = self._stack.pop(), self._stack[-1]
        fields = self._fields.get(type(made))
        if fields is None:
            raise UnpicklingError(f"the metadata of a checkpoint fills {shown(made)}, which it must not")
        if isinstance(made, TensorProperties):
            if (
                not isinstance(state, tuple)
                or len(state) != 5
                or type(state[3]) is not of_metadata._MEM_FORMAT_ENCODING
            ):
                raise UnpicklingError("the properties of a tensor are five")
            made.__setstate__(state)
            return
        if not isinstance(state, dict) or not fields.issuperset(state):
            raise UnpicklingError(f"a {type(made).__name__} has no such attributes")
        made.__dict__.update(state)

    def _set_items(self, instruction: str, items: list[Any]) -> None:
        for key in items[::2]:
            if type(key) is MetadataIndex:
                _check_index(key)
            elif type(key) not in (str, int, bool, type(None)):
                raise UnpicklingError(f"a key of a checkpoint's metadata is {shown(key)}")
        super()._set_items(instruction, items)

    def _frame(self) -> None:
        self._bytes(8)

    def _memoize(self) -> None:
        self._memo[len(self._memo)] = self._stack[-1]

    def _protocol(self) -> None:
        self._bytes(1)


def _check_index(key: MetadataIndex) -> None:
    """UnpicklingError for an index of which a part is something else than it should be: hashing it goes through all of it."""
    parts = vars(key)
    offset = parts.get("offset")
    whole = isinstance(offset, tuple) and len(offset) <= _MOST_DIMENSIONS and all(type(n) is int for n in offset)
    if type(parts.get("fqn")) is not str or not (offset is None or whole):
        raise UnpicklingError("an index of a checkpoint's metadata has no name, or no offset")


MetadataUnpickler.actions = {
    **Unpickler.actions,
    pickle.PROTO: MetadataUnpickler._protocol,
    pickle.GLOBAL: MetadataUnpickler._global,
    pickle.STACK_GLOBAL: MetadataUnpickler._stack_global,
    pickle.REDUCE: MetadataUnpickler._reduce,
    pickle.NEWOBJ: MetadataUnpickler._newobj,
    pickle.BUILD: MetadataUnpickler._build,
    pickle.FRAME: MetadataUnpickler._frame,
    pickle.MEMOIZE: MetadataUnpickler._memoize,
    pickle.SHORT_BINUNICODE: lambda self: self._text(self._bytes(self._number("B"))),
    pickle.BINUNICODE8: lambda self: self._text(self._bytes(self._number("<Q"))),
    pickle.BINBYTES: lambda self: self._push(self._bytes(self._number("<I"))),
    pickle.SHORT_BINBYTES: lambda self: self._push(self._bytes(self._number("B"))),
}
for _absent in (pickle.BINPERSID,):
    del MetadataUnpickler.actions[_absent]
