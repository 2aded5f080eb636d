"""`torch.jit.save`: modules of TorchScript into a file that `torch.jit.load` reads, here and in PyTorch.

The code is the text that the module was loaded with, or that a trace wrote; the values are the module's, as they are now.
"""

from __future__ import annotations

import os
import pickle
import struct
from typing import Any

from .._device import device
from .._serialization.locations import location_tag
from .._serialization.records import BYTE_ORDER, RecordWriter
from .._storage import UntypedStorage
from .._tensor import Tensor
from ..serialization import storage_class
from .kinds import Kind, kind_of
from .library import Library
from .module import ScriptModule
from .objects import Instance, Member, Named

_LIST_MAKERS = {
    "int": "build_intlist",
    "float": "build_doublelist",
    "bool": "build_boollist",
    "Tensor": "build_tensorlist",
}


def save(m: Any, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
    """Write a module that was loaded or traced to a path or a binary file, with further records of bytes or text.

    RuntimeError for any other module: nothing is scripted here.
    """
    m = getattr(m, "_module", m)
    if not isinstance(m, ScriptModule):
        raise RuntimeError(
            f"torch.jit.save writes what torch.jit.load or torch.jit.trace gave, but got {type(m).__name__}: there is no TorchScript compiler"
        )
    library: Library = m._library
    values, constants = _Pickle("data"), _Pickle("constants")
    values.value(m, None)
    constants.tuple(library.constants, [None] * len(library.constants))
    path = os.fspath(f) if isinstance(f, (str, os.PathLike)) else None
    root = "archive" if path is None else os.path.splitext(os.path.basename(path))[0]
    if path is not None:
        with open(path, "wb") as file:
            _write(file, root, library, values, constants, _extra_files)
    else:
        _write(f, root, library, values, constants, _extra_files)


def _write(
    file: Any, root: str, library: Library, values: _Pickle, constants: _Pickle, extra_files: dict[str, Any] | None
) -> None:
    writer = RecordWriter(file, root)
    for name, content in (extra_files or {}).items():
        writer.write(f"extra/{name}", content.encode() if isinstance(content, str) else content)
    for pickled in (values, constants):
        writer.write(f"{pickled.name}.pkl", pickled.content())
        for key, storage in enumerate(pickled.storages):
            writer.write(f"{pickled.name}/{key}", storage.cpu()._root)
    for name, text in library.texts.items():
        writer.write(name, text)
    writer.write("version", f"{library.version}\n".encode())
    writer.write("byteorder", BYTE_ORDER)
    writer.write(".data/serialization_id", f"{writer.checksum:040d}".encode())
    writer.close()


class _Pickle:
    """One pickle, as TorchScript has it: protocol 2, its lists and dicts with their types."""

    def __init__(self, name: str):
        self.name = name
        self.storages: list[UntypedStorage] = []
        self._parts: list[bytes] = [pickle.PROTO, b"\2"]
        self._memo: dict[int, int] = {}
        self._keys: dict[int, int] = {}
        self._held: list[Any] = []

    def content(self) -> bytes:
        """The pickle's bytes."""
        return b"".join([*self._parts, pickle.STOP])

    def _put(self, *parts: bytes) -> None:
        self._parts += parts

    def _global(self, module: str, name: str) -> None:
        self._put(pickle.GLOBAL, f"{module}\n{name}\n".encode())

    def value(self, value: Any, kind: Kind | None) -> None:
        """Write a value; kind: its declared type, where there is one."""
        while kind is not None and kind.name in ("Optional", "Final"):
            kind = kind.parts[0]
        if value is None:
            self._put(pickle.NONE)
        elif value is True or value is False:
            self._put(pickle.NEWTRUE if value else pickle.NEWFALSE)
        elif isinstance(value, int):
            self._int(value)
        elif isinstance(value, float):
            self._put(pickle.BINFLOAT, struct.pack(">d", value))
        elif isinstance(value, str):
            raw = value.encode("utf-8", "surrogatepass")
            self._put(pickle.BINUNICODE, struct.pack("<I", len(raw)), raw)
        elif isinstance(value, complex):
            self._global("builtins", "complex")
            self.tuple((value.real, value.imag), [None, None])
            self._put(pickle.REDUCE)
        elif isinstance(value, device):
            self._global("torch", "device")
            self.tuple((value.type,) if value.index is None else (value.type, value.index), [None, None])
            self._put(pickle.REDUCE)
        elif isinstance(value, Tensor):
            self._tensor(value)
        else:
            self._compound(value, kind)

    def _int(self, value: int) -> None:
        if -(1 << 31) <= value < 1 << 31:
            self._put(pickle.BININT, struct.pack("<i", value))
        else:
            self._put(pickle.LONG1, b"\x08", value.to_bytes(8, "little", signed=True))

    def _compound(self, value: Any, kind: Kind | None) -> None:
        known = self._memo.get(id(value))
        if known is not None:
            self._put(pickle.LONG_BINGET, struct.pack("<I", known))
            return
        if isinstance(value, (ScriptModule, Instance)):
            self._object(value)
        elif isinstance(value, Member):
            self._named(value._script_class.name)
            self.value(value.value, None)
            self._put(pickle.REDUCE)
        elif isinstance(value, Named):
            self._named(value._script_class.name)
            self.tuple(tuple(value), value._script_class.kinds())
            self._put(pickle.REDUCE)
        elif isinstance(value, tuple):
            parts: Any = kind.parts if kind is not None and kind.name == "Tuple" and kind.parts else [None] * len(value)
            self.tuple(value, parts)
            return
        elif isinstance(value, list):
            self._list(value, kind)
        elif isinstance(value, dict):
            self._dict(value, kind)
        else:
            raise RuntimeError(f"a {type(value).__name__} cannot be written to a TorchScript file")
        self._held.append(value)
        self._memo[id(value)] = len(self._memo)
        self._put(pickle.LONG_BINPUT, struct.pack("<I", self._memo[id(value)]))

    def tuple(self, values: tuple, kinds: Any) -> None:
        """Write a tuple."""
        self._put(pickle.MARK)
        for value, kind in zip(values, kinds):
            self.value(value, kind)
        self._put(pickle.TUPLE)

    def _list(self, value: list, kind: Kind | None) -> None:
        inner = kind.parts[0] if kind is not None and kind.name == "List" and kind.parts else None
        maker = None if inner is None else _LIST_MAKERS.get(inner.name)
        if inner is not None:
            self._global("torch.jit._pickle", maker or "restore_type_tag")
            self._put(pickle.MARK)
        self._put(pickle.EMPTY_LIST, pickle.MARK)
        for one in value:
            self.value(one, inner)
        self._put(pickle.APPENDS)
        if inner is not None:
            if maker is None:
                self.value(str(kind), None)
            self._put(pickle.TUPLE, pickle.REDUCE)

    def _dict(self, value: dict, kind: Kind | None) -> None:
        parts: Any = kind.parts if kind is not None and kind.name == "Dict" and len(kind.parts) == 2 else (None, None)
        if parts[0] is not None:
            self._global("torch.jit._pickle", "restore_type_tag")
            self._put(pickle.MARK)
        self._put(pickle.EMPTY_DICT, pickle.MARK)
        for key, one in value.items():
            self.value(key, parts[0])
            self.value(one, parts[1])
        self._put(pickle.SETITEMS)
        if parts[0] is not None:
            self.value(str(kind), None)
            self._put(pickle.TUPLE, pickle.REDUCE)

    def _named(self, name: str) -> None:
        module, _, own = name.rpartition(".")
        self._global(module, own)

    def _object(self, value: ScriptModule | Instance) -> None:
        cls = value._script_class
        self._named(cls.name)
        self._put(pickle.EMPTY_TUPLE, pickle.NEWOBJ)
        method = cls.methods.get("__getstate__")
        if method is not None:
            self.value(method(value), kind_of(method.node.returns, method.library.class_of))
        else:
            self._put(pickle.EMPTY_DICT, pickle.MARK)
            for name in cls.fields:
                if name in cls.constants:
                    continue
                self.value(name, None)
                self.value(value._script_get(name), cls.kind_of_field(name))
            self._put(pickle.SETITEMS)
        self._put(pickle.BUILD)

    def _tensor(self, tensor: Tensor) -> None:
        storage = tensor._typed_storage()
        cls, count, _ = storage_class(storage)
        untyped = storage.untyped()
        key = self._keys.setdefault(untyped._cdata, len(self._keys))
        if key == len(self.storages):
            self.storages.append(untyped)
        self._global("torch._utils", "_rebuild_tensor_v2")
        self._put(pickle.MARK, pickle.MARK)
        self.value("storage", None)
        self._global("torch", cls.__name__)
        for part in (str(key), location_tag(untyped), count):
            self.value(part, None)
        self._put(pickle.TUPLE, pickle.BINPERSID)
        self.value(tensor.storage_offset(), None)
        self.tuple(tuple(tensor.shape), [None] * tensor.dim())
        self.tuple(tuple(tensor.stride()), [None] * tensor.dim())
        self.value(tensor.requires_grad, None)
        self._global("collections", "OrderedDict")
        self._put(pickle.EMPTY_TUPLE, pickle.REDUCE, pickle.TUPLE, pickle.REDUCE)
