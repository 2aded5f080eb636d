"""The optional C extension: whether it is there, and how it stands before generated Python functions.

`MINDTORCH_V2_NATIVE=0` in the environment leaves it out; with `MINDTORCH_V2_REQUIRE_NATIVE=1` neither building nor importing the package goes on
without it. With or without it every call gives the same: the extension takes the short
cuts of plain CPU tensors and leaves all else to the function that it stands before. What it needs to know comes from the operator's record;
the generated modules say only which function, which operators, and which ufunc or kernel.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _forks, _memory, _state
from .._above import above
from .._state import TLS
from .._tensor import read_only
from .._threads import get_num_threads
from .operator import Operator, Param, takes_number_first

_INT_TYPES = ("int", "SymInt")
_INTERFACE = 17  # as native.h has it


def _load() -> Any:
    if os.environ.get("MINDTORCH_V2_NATIVE", "1") == "0":
        return None
    name = f"{__name__.partition('.')[0]}._native"
    try:
        found = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name or _required():
            raise
        return None
    except ImportError as error:
        return _refused(f"{name} was built for another Python or numpy and is not used: {error}")
    if (getattr(found, "INTERFACE", None), getattr(found, "LOOPS", None)) != (_INTERFACE, above("loops")):
        return _refused(f"{name} was built from other sources and is not used; build it again")
    return found


def _required() -> bool:
    return os.environ.get("MINDTORCH_V2_REQUIRE_NATIVE", "0") != "0"


def _refused(why: str) -> None:
    if _required():
        raise ImportError(why)
    warnings.warn(why)


extension = _load()
"""The module `_native`, or None."""
if extension is not None:
    _memory.allocate = extension.empty
    extension.use_threads(get_num_threads(), False)


def connect(**classes: Any) -> None:
    """Tell the extension the classes of the package; once, when it is put together."""
    if extension is not None:
        extension.connect(**classes)


def connect_meta(**classes: Any) -> None:
    """Tell the extension the classes of payloads and storages on the meta device, and the device."""
    if extension is not None:
        extension.connect_meta(**classes)


def connect_road(**known: Any) -> None:
    """Tell the extension what makes plans and what words errors have, numpy's setting of warnings and that without any, bfloat16 as arrays have it, the class
    of generators, and what gives views of inference mode their history."""
    if extension is not None:
        extension.connect_road(**known)
        _state.FORGETTERS.append(extension.forget_plans)


def count_modes(inference: int = 0, autocast: int = 0) -> None:
    """Count an inference mode or an autocast that is entered (1) or left (-1): the extension knows of both, everything else is special while they are on."""
    if extension is not None:
        TLS.inferring += inference
        TLS.casting += autocast
        extension.count_modes(inference, autocast)
    elif inference + autocast > 0:
        _state.enter_special()
    else:
        _state.leave_special()


def _count_again() -> None:
    if extension is not None:
        inferring, casting = extension.count_modes(0, 0)
        extension.count_modes(TLS.inferring - inferring, TLS.casting - casting)


_forks.in_child(_count_again)


def set_profile(function: Callable | None) -> None:
    """Let a function be asked about each call of an operator while something special is active; None ends it.

    It gets the callable, the Python function behind it, the operators, the arguments as they were given, and (whether it is a method, whether it writes in place), and answers
    NotImplemented to leave the call alone.
    """
    if extension is not None:
        extension.set_profile(function)


def connect_making(**known: Any) -> None:
    """Tell the extension what it needs to make tensors: the class of dtypes, where the default one is, bfloat16 as arrays have it, dtypes by those of numpy."""
    if extension is not None:
        extension.connect_making(**known)


def members(owner: type, table: dict[str, Any]) -> dict[str, Any]:
    """Members of a class by name, with what stands before them in C. What has no setter is refused in PyTorch's words."""
    table = {name: _read_only(name, value) for name, value in table.items()}
    if extension is None:
        return table
    return {name: extension.member(owner, name, value) for name, value in table.items()}


def _read_only(name: str, value: Any) -> Any:
    return read_only(name, value) if value.__class__ is property and value.fset is None else value


def checked(function: Callable, check: Callable, usual: Any) -> Callable:
    """A member of Tensor before which `check` looks at the arguments, with the tensor; not at the `usual` ones."""
    if extension is not None:
        return _dressed(extension.Checked(function, check, *usual), function)

    @functools.wraps(function)
    def member(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not usual.are(args, kwargs):
            check(self, *args, **kwargs)
        return function(self, *args, **kwargs)

    return member


def connect_module(module: type, on_call: tuple, on_parameter: dict, on_module: dict) -> None:
    """Let the extension stand before the attributes and calls of nn.Module; the dicts hold the hooks of all modules."""
    if extension is not None:
        extension.connect_module(module, on_call, on_parameter, on_module)


def adopt_module(cls: type) -> None:
    """Give a new subclass of nn.Module the quick look-up of attributes."""
    if extension is not None:
        extension.adopt_module(cls)


def connect_parameter(parameter: type) -> None:
    """Let the extension stand before the constructor of nn.Parameter."""
    if extension is not None:
        extension.connect_parameter(parameter)


def connect_casts(operator: Callable, kinds: dict[str, Any]) -> None:
    """Tell the extension the operator behind conversions, and the dtypes by the names of the methods."""
    if extension is not None:
        extension.connect_casts(operator, kinds)


def constructor(function: Callable) -> Callable:
    """Decorator of a function that is no operator of its own: what stands before it in C."""
    return Unbound(function) if extension is None else extension.constructor(function.__name__, function)


_KERNELS = frozenset(() if extension is None else extension.kernel_names())


def kernel(function: Callable) -> Callable:
    """Decorator of a numpy kernel: the kernel of this name in C, if there is one, which calls `function` where it declines.

    The parameters are positional; the last one may be `out`.
    """
    name = _name(function)
    if name not in _KERNELS:
        return function
    written: Any = inspect.unwrap(function)
    code = written.__code__
    names = code.co_varnames[: code.co_argcount]
    return _dressed(
        extension.Kernel(name, function, written.__defaults__ or (), len(names), names[-1] == "out"), function
    )


def blocked(op: Operator) -> Any:
    """The operator's loops as a callable of its payloads and of the array for the result (or None), which declines by None; None without any."""
    if op.blocked is None and op.block and extension is not None:
        op.blocked = extension.Blocked(tuple((b.opcode, b.operands, b.conditions, b.exact) for b in op.block))
    return op.blocked


def _name(function: Any) -> str:
    return f"{function.__module__.rpartition('.')[2]}.{function.__name__}"


class Unbound(staticmethod):
    """A function that stays one as a member of a class, like PyTorch's builtin ones."""

    def __reduce__(self) -> str:
        return self.__qualname__

    def __repr__(self) -> str:
        return repr(self.__func__)


in_python: Callable | None = None
"""What stands before functions without the extension: `planned` puts its own here."""


def accelerate(
    function: Callable, *paths: tuple, method: bool = False, reflected: str = "", inplace: bool = False
) -> Callable:
    """`function`, or what stands before it: a callable that takes the road by itself for plain CPU tensors and otherwise calls it.

    paths: of each overload, in the order in which they are tried: (operator,), or with a short cut (operator, kernel), or (operator, ufunc, kind of
    result) with "bool" or None for the operands' dtype. A kernel is None where the operator's loop does without.
    inplace: the result is written to the first argument, which is returned.
    reflected: of an operator like `__rsub__`, "arguments" when the function's are the operator's in reverse, "operands" when the ufunc's are.
    """
    if extension is None:
        return function if in_python is None else in_python(function, paths, method, reflected, inplace)
    described = tuple(_describe(path, method, reflected, inplace) for path in paths)
    if None in described:
        return function
    made = (extension.FastMethod if method else extension.Fast)(function, described, _FORMS[method, inplace])
    return _dressed(made, function)


NO_OPERATORS: dict[Any, Callable] = {}
"""By public functions that are no operators, what they are made of."""


def unbound(function: Callable) -> Any:
    """Decorator of a function written by hand that is a builtin one in PyTorch: as a member of a class it stays a function."""
    return Unbound(function) if extension is None else _dressed(extension.Fast(function, (), function), function)


def builtin(function: Callable) -> Any:
    """Decorator of a function that is `unbound` and `overridable`, also by what is in its lists."""
    asking = _asking(function, True)
    made = Unbound(asking) if extension is None else _dressed(extension.Fast(function, (), asking), function)
    asking.public = made  # type: ignore[attr-defined]
    NO_OPERATORS[made] = function
    return made


def overridable(function: Callable) -> Any:
    """Decorator of a function that is no operator: what overrides `__torch_function__`, argument or mode, takes over its calls.

    It has what programs look at in a function of Python (monai at the defaults of torch.meshgrid).
    """
    asking = _asking(function, False)
    made: Any = asking if extension is None else _dressed(extension.FastMethod(function, (), asking), function)
    for name in ("__kwdefaults__",) if extension is None else ("__code__", "__defaults__", "__kwdefaults__"):
        setattr(made, name, getattr(function, name))
    asking.public = made  # type: ignore[attr-defined]
    NO_OPERATORS[made] = function
    return made


def _asking(function: Callable, in_lists: bool) -> Callable:
    @functools.wraps(function)
    def asking(*args: Any, **kwargs: Any) -> Any:
        from .overrides import find_for, run_function

        values = [*args, *kwargs.values()]
        if in_lists:
            values += [item for value in values if isinstance(value, list | tuple) for item in value]
        special = find_for(tuple(values))
        return function(*args, **kwargs) if special is None else run_function(asking.public, special, args, kwargs)  # type: ignore[attr-defined]

    return asking


def road(*paths: tuple, method: bool = False, reflected: str = "", inplace: bool = False) -> Callable:
    """Decorator: `accelerate` with these paths. What is no other form of an operator is its function."""

    def decorate(function: Callable) -> Callable:
        made = accelerate(function, *paths, method=method, reflected=reflected, inplace=inplace)
        if not (method or inplace or reflected):
            for path in paths:
                path[0].function = made
        return made

    return decorate


def _dressed(made: Any, function: Callable) -> Any:
    for name in functools.WRAPPER_ASSIGNMENTS:
        if hasattr(function, name):
            setattr(made, name, getattr(function, name))
    return made


_BY_NOTHING, _BY_PLAN, _BY_COMPOSITE = range(3)  # as fast.h has them


def _describe(path: tuple, method: bool, reflected: str, inplace: bool) -> tuple | None:
    op: Operator = path[0]
    if len(op.params) > _MAX_PARAMS:
        return None
    inplace = inplace or op.is_inplace
    if op.missing is not None:
        by = _BY_NOTHING
    elif op.composite is not None:
        by = _BY_NOTHING if inplace and not op.is_inplace else _BY_COMPOSITE
    else:
        by = _BY_PLAN if "cpu" in op.kernels or op.is_view else _BY_NOTHING
    return (
        op,
        _binding(op, method, reflected),
        by,
        op.is_view,
        inplace,
        op.record is not None,
        op.numbers,
        "pointwise" in op.tags,
        any(tag.startswith("autocast_") for tag in op.tags),
        -1 if op.mutates is None else op.mutates,
        by == _BY_PLAN and not inplace and _runs_at_once(op),
        ufunc_of(path),
        _short_cut(path, reflected, inplace) if len(path) > 1 else None,
    )


def _runs_at_once(op: Operator) -> bool:
    """Whether a careful pipeline never lets an operator wait, which writes to nothing that what waits may read."""
    waits = op.is_view or op.block or "by_rows" in op.tags
    return not waits and op.mutates is None and "updates_statistics" not in op.tags


_MAX_PARAMS = 16  # as native.h has it


def ufunc_of(path: tuple) -> Any:
    """The ufunc that does what an overload's kernel does where all but its operands have their defaults, or None."""
    op = path[0]
    ufunc = path[1] if len(path) > 1 else op.kernels.get("cpu")
    return ufunc if isinstance(ufunc, np.ufunc) and ufunc.nin <= 2 and ufunc.nin <= len(op.params) else None


_FORMS = {(method, inplace): (method, inplace) for method in (False, True) for inplace in (False, True)}
"""What errors say differently; one object for each."""


def _binding(op: Operator, method: bool, reflected: str) -> tuple:
    """How the extension binds arguments to the parameters."""
    params = op.params
    first = "input" if params and params[0].name == "self" and not method else params[0].name if params else ""
    positional = [p for p in params if not p.keyword]
    # What has one list of ints as its only parameter takes them one by one too: `x.view(2, 3)`, `zeros(2, 3)`.
    own = positional[1:] if method else positional
    gathers = len(positional) if len(own) == 1 and own[0].is_list and own[0].type in _INT_TYPES else 0
    return (
        (first, *(p.name for p in params[1:])) if params else (),
        tuple(p.default for p in params),
        tuple(p.required for p in params),
        tuple(p.optional for p in params),
        "".join(_kind(op, i, p, reflected) for i, p in enumerate(params)),
        tuple(p.size or 0 for p in params),
        tuple(i in op.cast for i in range(len(params))),
        len(positional),
        gathers,
        1 if reflected == "arguments" else _self(params) if method else 0,
        "out" in op.variants and not method,
        op.factory,
    )


def _self(params: tuple) -> int:
    """Where a method's own tensor stands: `x.where(condition, y)`."""
    return next((i for i, p in enumerate(params) if p.name == "self"), 0)


def _kind(op: Operator, index: int, param: Param, reflected: str) -> str:
    """The letter of bind.c for a parameter."""
    kind = param.type
    if kind == "Tensor":
        if param.is_list:
            return "v" if param.elements_optional else "V"
        return "N" if op.numbers and (index or reflected or takes_number_first(op)) else "T"
    if param.is_list:
        return "L" if kind in _INT_TYPES else "R" if kind == "float" and not param.size else "?"
    return _KINDS.get(kind, "?")


_KINDS = {
    "int": "I",
    "SymInt": "I",
    "float": "F",
    "bool": "B",
    "Scalar": "S",
    "str": "X",
    "ScalarType": "D",
    "Device": "C",
    "Generator": "G",
    "Layout": "O",
    "MemoryFormat": "O",
}


def _short_cut(path: tuple, reflected: str, inplace: bool) -> tuple | None:
    op: Operator = path[0]
    params = op.params
    roles = "".join(_role(p) for p in params)
    if "?" in roles or not roles.startswith("T"):
        return None
    kind, target, kernel_name, to_bool = "kernel", path[1], None, False
    if isinstance(target, np.ufunc):
        kind = "unary" if target.nin == 1 else "binary"
        to_bool = path[2] == "bool"
    elif target is not None:
        kernel_name = _name(target)
    return (
        kind,
        roles,
        target,
        kernel_name,
        None,
        to_bool,
        0,
        bool(reflected),
        _loop(op, kind, reflected),
        None if inplace or not set(op.tensors) <= set(op.cast) else blocked(op),
        op.block,
        None if kind != "kernel" or op.is_view or target is None else _both(target, kernel_name, len(params)),
    )


def _both(function: Callable, name: str | None, params: int) -> Callable:
    """The kernel of a fast path as a short cut runs it: the one in C first."""
    return function if name not in _KERNELS else extension.Kernel(name, function, (), params, 0)


def _loop(op: Operator, kind: str, reflected: str) -> Any:
    """The operator's loops for a path, if they are to be taken: not where numpy computes the very same, or where a tensor is no operand but a mask
    whose dtype the rule looks at."""
    exact = kind != "kernel" and op.block and op.block[0].exact
    return None if reflected or exact or not set(op.tensors) <= set(op.cast) else blocked(op)


def _role(param: Param) -> str:
    """T tensor, t optional tensor, L list of ints, I int, B bool, S str, - what a kernel gets as it is, ? what the extension does not take."""
    if param.type == "Tensor":
        return "?" if param.is_list else "t" if param.optional else "T"
    if param.is_list:
        return "L" if param.type in _INT_TYPES else "-"
    return "I" if param.type in _INT_TYPES else {"bool": "B", "str": "S"}.get(param.type, "-")


_COMPUTING = frozenset(("conv", "indexing", "loss", "matmul", "nn", "norm", "pointwise", "scan"))
"""Families whose derivatives compute with a gradient, so that they may get a dense copy of one that was expanded. The others take views of it."""


def recorder(
    function: Callable,
    name: str,
    cls: type,
    params: int,
    inputs: tuple,
    saved: tuple,
    consts: tuple,
    outputs: int,
    dense: bool,
) -> Callable:
    """`function`, which records one operator, or what stands before it; the layout is as `_autograd.recording.recorder` takes it. `dense`: whether its
    derivative may get a dense copy of a gradient, if it computes with one."""
    if extension is None or max(params, len(saved), len(consts)) > _MAX_PARAMS:
        return function
    family = cls.__module__.rpartition(".")[2]
    return extension.Recorder(
        function, name, dense and family in _COMPUTING, cls, params, inputs, saved, consts, outputs
    )


def subscript(function: Callable, operators: Callable) -> Callable:
    """`Tensor.__getitem__` or `__setitem__`, or what stands before it; `operators` gives slice, select and unsqueeze when they are first recorded."""
    return (
        function
        if extension is None
        else _dressed(extension.Subscript(function, operators, function.__code__.co_argcount), function)
    )
