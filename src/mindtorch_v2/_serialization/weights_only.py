"""A reader of pickles that builds weights and nothing else: what `torch.load(..., weights_only=True)` uses.

The file is taken to be hostile. Only the instructions below exist, only names of an allow-list are looked up, and only what the list says may be
called, made or filled. What an allowed callable is given is checked where it could do harm:

Note [Harmless arguments]: `bytearray(10**12)` would claim memory and `encode(text, codec)` import a module, so both take only the forms
that pickles of bytes have. Hashing a tuple walks it without a limit on depth, and shared parts count again and again; so a key may hold
few and shallow tuples. Messages show values by `shown`, since their full text has no such limit. What allowed callables make is a copy of what they are
given, and a file may give one long text a thousand times; so what they make in all counts against what was read, see `_spend`.
"""

from __future__ import annotations

import _codecs
import _compat_pickle
import functools
import pickle
import struct
import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from pickle import UnpicklingError
from types import TracebackType
from typing import Any

from .._imports import outside
from .._storage import UntypedStorage
from .._tensor import Tensor
from .._typed_storage import LEGACY_STORAGES, TypedStorage
from .names import safe_globals_by_name
from .rebuild import REBUILD_FUNCTIONS, _rebuild_from_type_v2
from .shown import shown

_blocklisted_modules = ["sys", "os", "posix", "nt"]

_marked_safe_globals_set: set[Any] = set()
"""What users have allowed: classes and functions, or pairs of one and the name that files call it."""


# ------------------------------------------------------------------------------------------------------------------ allowed


def _add_safe_globals(safe_globals: Iterable[Any]) -> None:
    _marked_safe_globals_set.update(safe_globals)


def _get_safe_globals() -> list[Any]:
    return list(_marked_safe_globals_set)


def _clear_safe_globals() -> None:
    _marked_safe_globals_set.clear()


def _remove_safe_globals(globals_to_remove: Iterable[Any]) -> None:
    _marked_safe_globals_set.difference_update(globals_to_remove)


class _safe_globals:
    """Allows more names for the length of a block."""

    def __init__(self, safe_globals: list[Any]) -> None:
        self.safe_globals = safe_globals

    def __enter__(self) -> None:
        self.added = set(self.safe_globals) - _marked_safe_globals_set
        _add_safe_globals(self.safe_globals)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _remove_safe_globals(self.added)


def _get_user_allowed_globals() -> dict[str, Any]:
    found = {}
    for allowed in _marked_safe_globals_set:
        if isinstance(allowed, tuple):
            if len(allowed) != 2:
                raise ValueError(
                    f"Expected tuple of length 2 (global, str of callable full path), but got tuple of length: {len(allowed)}"
                )
            if not isinstance(allowed[1], str):
                raise TypeError(
                    f"Expected second item in tuple to be str of callable full path, but got: {type(allowed[1])}"
                )
            found[allowed[1]] = allowed[0]
        else:
            found[f"{allowed.__module__}.{allowed.__qualname__}"] = allowed
    return found


def _get_allowed_globals() -> dict[str, Any]:
    return safe_globals_by_name()


# ---------------------------------------------------------------------------------------------------------- harmless calls

_PLAIN_KEYS = frozenset({str, int, float, bool, bytes, complex, type(None)})
_KEY_BUDGET, _KEY_DEPTH = 10_000, 100
_FREE_COPIES = 1 << 22


def _check_key(key: Any) -> None:
    """Refuse keys whose hash would walk deep or wide. See Note [Harmless arguments]."""
    if type(key) in _PLAIN_KEYS:
        return
    level, budget = [key], _KEY_BUDGET
    for _ in range(_KEY_DEPTH):
        level = [part for item in level if isinstance(item, tuple) for part in item[: budget + 1]]
        budget -= len(level)
        if budget < 0:
            break
        if not level:
            return
    raise UnpicklingError("a key of nested tuples is too large")


def _attributes(state: Any) -> dict[str, Any]:
    """What is to become attributes of an object. UnpicklingError where it is no dict, and for names that Python gives a meaning."""
    if not state:
        return {}
    if not isinstance(state, dict):
        raise UnpicklingError(f"the attributes of an object must be a dict, but got {shown(state)}")
    for name in state:
        if not isinstance(name, str) or (name.startswith("__") and name.endswith("__")):
            raise UnpicklingError(f"an attribute may not be called {shown(name)}")
    return state


def _make_bytearray(*args: Any) -> bytearray:
    if args and not isinstance(args[0], (bytes, str, bytearray)):
        raise UnpicklingError(f"bytearray can only be made from bytes or str, but got {type(args[0])}")
    if len(args) > 1 and args[1] not in _CODECS:
        raise UnpicklingError(f"unsupported codec {shown(args[1])!r}")
    return bytearray(*args)


_CODECS = ("latin1", "latin-1", "ascii", "utf-8", "utf8")


def _encode(text: Any, codec: Any = "utf-8") -> bytes:
    if not isinstance(text, str) or codec not in _CODECS:
        raise UnpicklingError(f"unsupported codec {shown(codec)!r}")
    return _codecs.encode(text, codec)


def _make_set(items: Any = ()) -> set:
    for item in _listed(items):
        _check_key(item)
    return set(items)


def _make_ordered_dict(pairs: Any = ()) -> OrderedDict:
    for pair in _listed(pairs):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise UnpicklingError("OrderedDict can only be made from pairs")
        _check_key(pair[0])
    return OrderedDict(pairs)


def _make_counter(counts: Any = ()) -> Counter:
    if isinstance(counts, dict):
        return Counter(counts)
    for item in _listed(counts):
        _check_key(item)
    return Counter(counts)


def _listed(items: Any) -> Any:
    if not isinstance(items, (list, tuple, set)):
        raise UnpicklingError(f"expected a list, but got {type(items)}")
    return items


_CAREFUL: dict[Any, Callable[..., Any]] = {
    bytearray: _make_bytearray,
    _codecs.encode: _encode,
    set: _make_set,
    OrderedDict: _make_ordered_dict,
    Counter: _make_counter,
}


@functools.cache
def _callable_ids() -> frozenset[int]:
    # Tensors and storages come from records of the file; made from a number they would claim memory.
    claims = (Tensor, UntypedStorage, TypedStorage, *LEGACY_STORAGES.values())
    return frozenset(id(found) for found in safe_globals_by_name().values() if callable(found) and found not in claims)


# ---------------------------------------------------------------------------------------------------------------- unpickler


class Unpickler:
    """Reads one pickle from a binary file: `Unpickler(file).load()`.

    `persistent_load`, a function that a user of the class sets, makes storages from their ids. UnpicklingError for all that is not allowed,
    EOFError when the file ends early.
    """

    persistent_load: Callable[[tuple], Any]
    actions: dict[bytes, Callable[[Any], None]]

    def __init__(self, file: Any, *, encoding: str = "bytes", **_ignored: Any) -> None:
        self.encoding = encoding
        self._file = file
        self._read = file.read
        self._readline = file.readline
        self._stack: list[Any] = []
        self._marks: list[list[Any]] = []
        self._memo: dict[int, Any] = {}
        self._seen = self._copied = 0
        self._allowed = safe_globals_by_name()
        self._user_allowed = _get_user_allowed_globals()
        self._user_ids = frozenset(map(id, self._user_allowed.values()))

    def load(self) -> Any:
        """The object."""
        try:
            while True:
                code = self._bytes(1)
                if code == pickle.STOP:
                    return self._stack.pop()
                action = self.actions.get(code)
                if action is None:
                    raise UnpicklingError(f"Unsupported operand {code[0]}")
                action(self)
        except (IndexError, KeyError, struct.error, UnicodeDecodeError) as error:
            raise UnpicklingError(f"the pickle is malformed: {type(error).__name__}: {error}") from error

    # reading

    def _bytes(self, count: int) -> bytes:
        # In pieces, since the file may promise more than it has.
        self._seen += count
        data = self._read(min(count, 1 << 20))
        if len(data) < count:
            parts, missing = [data], count - len(data)
            while missing and parts[-1]:
                parts.append(self._read(min(missing, 1 << 24)))
                missing -= len(parts[-1])
            data = b"".join(parts)
            if missing:
                raise EOFError("the pickle ends early")
        return data

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._bytes(struct.calcsize(form)))[0]

    def _line(self) -> str:
        line = self._readline(1025)
        if not line.endswith(b"\n"):
            raise UnpicklingError("a name has no end") if len(line) > 1024 else EOFError("the pickle ends early")
        return line[:-1].decode()

    # the stack

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _pop_mark(self) -> list[Any]:
        items = self._stack
        self._stack = self._marks.pop()
        return items

    def _mark(self) -> None:
        self._marks.append(self._stack)
        self._stack = []

    # names and calls

    def _global(self) -> None:
        module, name = self._line(), self._line()
        # Protocol 2 writes the names of Python 2.
        if (module, name) in _compat_pickle.NAME_MAPPING:
            module, name = _compat_pickle.NAME_MAPPING[module, name]
        elif module in _compat_pickle.IMPORT_MAPPING:
            module = _compat_pickle.IMPORT_MAPPING[module]
        full = f"{module}.{name}"
        if full in self._allowed:
            self._push(self._allowed[full])
            return
        if full in self._user_allowed:
            self._push(self._user_allowed[full])
            return
        if module in _blocklisted_modules:
            raise UnpicklingError(f"Trying to load unsupported GLOBAL {full} whose module {module} is blocked.")
        shown = name if module == "builtins" else full
        if shown in self._user_allowed:
            self._push(self._user_allowed[shown])
            return
        raise UnpicklingError(
            f"Unsupported global: GLOBAL {shown} was not an allowed global by default. Please use "
            f"`torch.serialization.add_safe_globals([{shown}])` or the `torch.serialization.safe_globals([{shown}])` context "
            "manager to allowlist this global if you trust this class/function."
        )

    def _is_user_allowed(self, value: Any) -> bool:
        return id(value) in self._user_ids

    def _reduce(self) -> None:
        args = self._stack.pop()
        function = self._stack[-1]
        if not (id(function) in _callable_ids() or self._is_user_allowed(function)):
            raise UnpicklingError(f"Trying to call reduce for unrecognized function {shown(function)}")
        if not isinstance(args, tuple):
            raise UnpicklingError(f"arguments must be a tuple, but got {type(args)}")
        if function is _rebuild_from_type_v2 and not (
            args and (any(args[0] is each for each in REBUILD_FUNCTIONS) or self._is_user_allowed(args[0]))
        ):
            raise UnpicklingError(f"Trying to call reduce for unrecognized function {shown(args[0]) if args else args}")
        self._stack[-1] = self._made(function, args)

    def _made(self, function: Any, args: tuple) -> Any:
        """What an allowed function makes of its arguments."""
        careful = _CAREFUL.get(function)
        if careful is None:
            return function(*args)
        if args and hasattr(args[0], "__len__"):
            self._spend(len(args[0]))
        return careful(*args)

    def _spend(self, count: int) -> None:
        """Counts elements that are copied. See Note [Harmless arguments]."""
        self._copied += count
        if self._copied > _FREE_COPIES + 8 * self._seen:
            raise UnpicklingError("the pickle makes far more of its values than it holds")

    def _newobj(self) -> None:
        args = self._stack.pop()
        cls = self._stack.pop()
        if not isinstance(args, tuple):
            raise UnpicklingError(f"arguments must be a tuple, but got {type(args)}")
        if not isinstance(cls, type):
            raise UnpicklingError(f"Can only create new object of a class, but got {shown(cls)}")
        if cls in _CAREFUL:
            self._push(self._made(cls, args))
        elif cls is self._allowed["torch.nn.parameter.Parameter"] or cls is self._allowed["torch.Size"]:
            if args and isinstance(args[0], (tuple, list)):
                self._spend(len(args[0]))
            self._push(cls(*args))
        elif self._is_user_allowed(cls):
            self._push(cls.__new__(cls, *args))
        else:
            raise UnpicklingError(
                f"Can only create new object for nn.Parameter or classes allowlisted via `add_safe_globals` but got {shown(cls)}"
            )

    def _build(self) -> None:
        state = self._stack.pop()
        made = self._stack[-1]
        if type(made) is OrderedDict:
            # A pickle of an OrderedDict carries attributes, as a state dict's _metadata.
            if not isinstance(state, dict):
                raise UnpicklingError(f"an OrderedDict's state must be a dict, but got {type(state)}")
            made.__dict__.update(_attributes(state))
        elif self._is_user_allowed(type(made)):
            set_state = getattr(made, "__setstate__", None)
            if set_state is not None:
                set_state(state)
                return
            attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
            made.__dict__.update(_attributes(attributes))
            for name, value in _attributes(slots).items():
                setattr(made, name, value)
        elif isinstance(made, Tensor):
            raise UnpicklingError(f"the state of a {type(made).__name__} in a form of long ago is not supported")
        else:
            raise UnpicklingError(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, "
                f"but got {type(made)}"
            )

    def _persistent(self) -> None:
        pid = self._stack.pop()
        if type(pid) is int:
            pid = (pid,)
        elif type(pid) is not tuple:
            raise UnpicklingError(f"persistent_load id must be tuple or int, but got {type(pid)}")
        elif not pid or (pid[0].decode("ascii", "replace") if isinstance(pid[0], bytes) else pid[0]) != "storage":
            raise UnpicklingError(
                f"Only persistent_load of storage is allowed, but got {shown(pid[0] if pid else pid)}"
            )
        self._push(self.persistent_load(pid))

    # containers

    def _append(self) -> None:
        item = self._stack.pop()
        self._list().append(item)

    def _appends(self) -> None:
        items = self._pop_mark()
        self._list().extend(items)

    def _list(self) -> list[Any]:
        target = self._stack[-1]
        if type(target) is not list:
            raise UnpicklingError(f"Can only append to lists, but got {type(target)}")
        return target

    def _setitem(self) -> None:
        value = self._stack.pop()
        key = self._stack.pop()
        self._set_items("SETITEM", [key, value])

    def _setitems(self) -> None:
        items = self._pop_mark()
        self._set_items("SETITEMS", items)

    def _set_items(self, instruction: str, items: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) not in (dict, OrderedDict, Counter):
            raise UnpicklingError(
                f"Can only {instruction} for dict, collections.OrderedDict, collections.Counter, but got {type(target)}"
            )
        if len(items) % 2:
            raise IndexError("a key has no value")
        for key, value in zip(items[::2], items[1::2], strict=True):
            _check_key(key)
            target[key] = value

    def _tuple(self, count: int) -> None:
        if len(self._stack) < count:
            raise IndexError("stack is empty")
        items = tuple(self._stack[-count:])
        del self._stack[-count:]
        self._push(items)

    # texts and numbers

    def _text(self, raw: bytes) -> None:
        self._push(raw.decode("utf-8", "surrogatepass"))

    def _old_text(self, raw: bytes) -> None:
        self._push(raw if self.encoding == "bytes" else raw.decode(self.encoding))

    def _long(self, raw: bytes) -> None:
        self._push(int.from_bytes(raw, "little", signed=True))

    def _protocol(self) -> None:
        protocol = self._number("B")
        if protocol != 2:
            warnings.warn(
                f"Detected pickle protocol {protocol} in the checkpoint, which was not the default pickle protocol used by "
                "`torch.load` (2). The weights_only Unpickler might not support all instructions implemented by this protocol, "
                "please file an issue for adding support if you encounter this.",
                stacklevel=4,
            )


def _put(self: Unpickler, index: int) -> None:
    self._memo[index] = self._stack[-1]


Unpickler.actions = {
    pickle.PROTO: Unpickler._protocol,
    pickle.GLOBAL: Unpickler._global,
    pickle.REDUCE: Unpickler._reduce,
    pickle.NEWOBJ: Unpickler._newobj,
    pickle.BUILD: Unpickler._build,
    pickle.BINPERSID: Unpickler._persistent,
    pickle.MARK: Unpickler._mark,
    pickle.APPEND: Unpickler._append,
    pickle.APPENDS: Unpickler._appends,
    pickle.SETITEM: Unpickler._setitem,
    pickle.SETITEMS: Unpickler._setitems,
    pickle.TUPLE: lambda self: self._push(tuple(self._pop_mark())),
    pickle.TUPLE1: lambda self: self._tuple(1),
    pickle.TUPLE2: lambda self: self._tuple(2),
    pickle.TUPLE3: lambda self: self._tuple(3),
    pickle.EMPTY_TUPLE: lambda self: self._push(()),
    pickle.EMPTY_LIST: lambda self: self._push([]),
    pickle.EMPTY_DICT: lambda self: self._push({}),
    pickle.EMPTY_SET: lambda self: self._push(set()),
    pickle.NONE: lambda self: self._push(None),
    pickle.NEWTRUE: lambda self: self._push(True),
    pickle.NEWFALSE: lambda self: self._push(False),
    pickle.BININT: lambda self: self._push(self._number("<i")),
    pickle.BININT1: lambda self: self._push(self._number("B")),
    pickle.BININT2: lambda self: self._push(self._number("<H")),
    pickle.LONG1: lambda self: self._long(self._bytes(self._number("B"))),
    pickle.BINFLOAT: lambda self: self._push(self._number(">d")),
    pickle.BINUNICODE: lambda self: self._text(self._bytes(self._number("<I"))),
    pickle.SHORT_BINSTRING: lambda self: self._old_text(self._bytes(self._number("B"))),
    pickle.BINGET: lambda self: self._push(self._memo[self._number("B")]),
    pickle.LONG_BINGET: lambda self: self._push(self._memo[self._number("<I")]),
    pickle.BINPUT: lambda self: _put(self, self._number("B")),
    pickle.LONG_BINPUT: lambda self: _put(self, self._number("<I")),
}


def load(file: Any, *, encoding: str = "ASCII") -> Any:
    """Read one pickle of weights from a binary file; see `Unpickler`."""
    return Unpickler(file, encoding=encoding).load()


def get_globals_in_pkl(file: Any) -> set[str]:
    """The names ("module.name") that a pickle calls, found without calling them. The file is left at the pickle's end."""
    pickletools = outside("pickletools")

    found = set()
    texts: list[str] = []
    for code, argument, _ in pickletools.genops(file):
        if code.name == "GLOBAL":
            module, _, name = argument.partition(" ")
            module, name = _compat_pickle.NAME_MAPPING.get((module, name), (module, name))
            found.add(f"{_compat_pickle.IMPORT_MAPPING.get(module, module)}.{name}")
        elif code.name == "STACK_GLOBAL" and len(texts) > 1:
            found.add(f"{texts[-2]}.{texts[-1]}")
        elif isinstance(argument, str):
            texts = [*texts[-1:], argument]
    return found
