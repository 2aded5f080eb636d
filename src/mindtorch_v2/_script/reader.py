"""`torch.jit.load`: a TorchScript file's archive, taken to be hostile, into modules.

Note [The archive]
`code/**.py` is the code, `data.pkl` the module, `constants.pkl` a tuple of values that the code names; each pickle's storages are records of a directory of its
name. The pickles name the file's own classes (`__torch__.…`), which are made here as empty objects and filled, and a handful of functions; nothing is imported
and nothing of Python's is called (see `_serialization.weights_only`).
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any

from .. import serialization as _files
from .._device import device
from .._serialization.locations import restorer
from .._serialization.records import RecordReader
from .._serialization.weights_only import Unpickler
from .._storage import UntypedStorage
from .errors import Failed, ScriptError
from .library import Library
from .module import RecursiveScriptModule, ScriptModule
from .objects import Instance, Named, ScriptClass

_MOST_FILES, _MOST_CODE = 1 << 14, 256 << 20  # files of code, and their bytes


def load(
    f: Any, map_location: Any = None, _extra_files: dict[str, Any] | None = None, _restore_shapes: bool = False
) -> ScriptModule:
    """The module of a file that `torch.jit.save` wrote, from a path or a binary file.

    map_location: where tensors go, as `torch.load` has it. _extra_files: a dict whose keys are names of further records; their contents are put in, as bytes.
    ValueError for a file that is not there; RuntimeError for one that is damaged or no TorchScript, `ScriptError` naming file and line of code that cannot be read.
    """
    if isinstance(f, str) or hasattr(f, "__fspath__"):
        import os

        path = os.fspath(f)
        if not os.path.exists(path):
            raise ValueError(f"The provided filename {path} does not exist")
        if os.path.isdir(path):
            raise ValueError(f"The provided filename {path} is a directory")
        with open(path, "rb") as file:
            return _loaded(RecordReader(file), map_location, _extra_files)
    return _loaded(RecordReader(io.BytesIO(f.read())), map_location, _extra_files)


def _loaded(records: RecordReader, map_location: Any, extra_files: dict[str, Any] | None) -> ScriptModule:
    if "constants.pkl" not in records or "data.pkl" not in records:
        names = records.names()
        if "model.json" in names:
            kind = "TorchScript of PyTorch 1.3 or older, which is not supported"
        elif any(name.startswith(".data/") and name != ".data/serialization_id" for name in names):
            kind = "an archive of torch.package, which is not supported: it holds Python that would have to be run"
        else:
            kind = "no TorchScript: it has no record constants.pkl"
        raise RuntimeError(f"the file is {kind}")
    paths = [name for name in records.names() if name.startswith("code/") and name.endswith(".py")]
    if len(paths) > _MOST_FILES or sum(map(records.size, paths)) > _MOST_CODE:
        raise ScriptError("the archive has more code than is read")
    library = Library({path: records.read(path) for path in paths}, version=_files._check_version(records))
    restore = restorer(map_location)
    constants = _Reader(records, "constants", library, restore).object()
    if not isinstance(constants, tuple):
        raise RuntimeError("constants.pkl holds no tuple")
    library.constants = constants
    module = _Reader(records, "data", library, restore).object()
    if not isinstance(module, ScriptModule):
        raise RuntimeError(f"data.pkl holds no module, but a {type(module).__name__}")
    _check_tree(module)
    for name in extra_files or ():
        if f"extra/{name}" in records:
            extra_files[name] = records.read(f"extra/{name}")  # type: ignore[index]
    return module


def _check_tree(module: ScriptModule) -> None:
    """RuntimeError for a module that is below itself, or lies deeper than modules do."""
    level, depth = [module], 0
    while level:
        # a module that several have is looked at once on each level
        level = list({id(child): child for one in level for child in one._modules.values()}.values())
        depth += 1
        if depth > 200:
            raise RuntimeError("data.pkl holds a module below itself, or nested too deeply")


class _Call:
    """A function that a pickle may name: it is called with what the pickle has for it."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function


def _list(values: Any = ()) -> list:
    if not isinstance(values, list):
        raise UnpicklingError("a list is made from a list")
    return values


def _tagged(value: Any, tag: Any) -> Any:
    return value


def _device(kind: Any, index: Any = None) -> device:
    if type(kind) is not str or type(index) not in (int, type(None)):
        raise UnpicklingError("a device is made from a name")
    return device(kind) if index is None else device(kind, index)


def _complex(real: Any = 0.0, imaginary: Any = 0.0) -> complex:
    if type(real) is not float or type(imaginary) is not float:
        raise UnpicklingError("a complex number is made from floats")
    return complex(real, imaginary)


_CALLS = {
    **{
        f"torch.jit._pickle.{name}": _Call(_list)
        for name in "build_intlist build_doublelist build_boollist build_tensorlist".split()
    },
    "torch.jit._pickle.restore_type_tag": _Call(_tagged),
    "torch.device": _Call(_device),
    "builtins.complex": _Call(_complex),
}


class _Reader(Unpickler):
    """Reads one pickle of an archive."""

    def __init__(
        self, records: RecordReader, name: str, library: Library, restore: Callable[[UntypedStorage, str], Any]
    ) -> None:
        super().__init__(io.BytesIO(records.read(f"{name}.pkl")), encoding="utf-8")
        self._library = library
        self.persistent_load = _files.storage_loader(records, name, restore, None)

    def object(self) -> Any:
        """The pickle's value. RuntimeError for a pickle that is malformed or names what it may not."""
        try:
            return self.load()
        except UnpicklingError as error:
            raise RuntimeError(f"the archive's pickle cannot be read: {error}") from error
        except (TypeError, AttributeError, KeyError, IndexError, RecursionError) as error:
            raise RuntimeError(f"the archive's pickle is malformed: {error!s:.200}") from error
        except EOFError as error:
            raise RuntimeError("the archive's pickle ends early") from error
        except Failed as failed:
            raise failed.public() from failed.cause

    def _global(self) -> None:
        start = self._file.tell()
        module, name = self._line(), self._line()
        full = f"{module}.{name}"
        if module == "__torch__" or module.startswith("__torch__."):
            cls = self._library.class_of(full)
            if cls is None:
                kind = (
                    "is of C++, of which there are none"
                    if full.startswith("__torch__.torch.classes.")
                    else "has no code in the archive"
                )
                raise UnpicklingError(f"the class {full} {kind}")
            self._push(cls)
        elif full == "torch._utils._rebuild_qtensor":
            raise UnpicklingError("quantised tensors are not supported")
        elif full in _CALLS:
            self._push(_CALLS[full])
        else:
            self._file.seek(start)
            super()._global()

    def _reduce(self) -> None:
        args, function = self._stack[-1], self._stack[-2]
        if not isinstance(function, (_Call, ScriptClass)):
            super()._reduce()
            return
        self._stack.pop()
        if not isinstance(args, tuple):
            args = (args,)
        self._stack[-1] = _made(function, args) if isinstance(function, ScriptClass) else function.function(*args)

    def _newobj(self) -> None:
        cls = self._stack[-2]
        if not isinstance(cls, ScriptClass):
            super()._newobj()
            return
        self._stack.pop()
        if cls.flavour not in ("module", "class"):
            raise UnpicklingError(f"{cls.name} is no class of objects")
        module = cls.flavour == "module"
        self._stack[-1] = RecursiveScriptModule._of(cls, self._library) if module else Instance(cls)

    def _build(self) -> None:
        made = self._stack[-2]
        if not isinstance(made, (ScriptModule, Instance)):
            super()._build()
            return
        state = self._stack.pop()
        method = made._script_class.methods.get("__setstate__")
        if method is not None:
            method(made, state)
        elif not isinstance(state, dict) or not all(isinstance(name, str) for name in state):
            raise UnpicklingError(f"the state of a {made._script_class.name} is no dict")
        elif isinstance(made, ScriptModule):
            made._fill(state)
        else:
            made._attributes.update(state)


def _made(cls: ScriptClass, args: tuple) -> Any:
    """A member of an enum by its value, or a tuple with names."""
    if cls.flavour == "enum" and len(args) == 1:
        for member in cls.members.values():
            if type(member.value) is type(args[0]) and member.value == args[0]:
                return member
    if cls.flavour == "tuple":
        values = args[0] if len(args) == 1 and isinstance(args[0], tuple) and len(cls.fields) != 1 else args
        if len(values) == len(cls.fields):
            return Named(cls, tuple(values))
    raise UnpicklingError(f"no {cls.name} can be made of these values")


def _actions() -> dict[bytes, Callable[[Any], None]]:
    own = {
        pickle.GLOBAL: _Reader._global,
        pickle.REDUCE: _Reader._reduce,
        pickle.NEWOBJ: _Reader._newobj,
        pickle.BUILD: _Reader._build,
    }
    return {**Unpickler.actions, **own}


_Reader.actions = _actions()
