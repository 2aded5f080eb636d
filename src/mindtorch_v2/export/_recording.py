"""One run of a program, as the operators that it called.

Note [What is recorded]
The program runs on copies of its example arguments, where profilers stand (`TLS.profiler`): above composites, so that `linear` is one step, as in PyTorch's graphs. What
a tensor is, is known by its object: an argument, a parameter, a buffer, a constant, or what a step made. A tensor that nobody knows is a constant of the program if its
memory is its own; what shares memory with a known one has come about past the operators (`.data`), and is `detach` of it.

Nothing that the run does may stay: buffers are copies while it runs, the modules' dicts and the random state are put back, and so are other tensors that it wrote to.
"""

from __future__ import annotations

import dataclasses
import itertools
import linecache
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple, NoReturn

from .. import _state, nn, ops
from .._api.functions.randomness import get_rng_state, set_rng_state
from .._compiling.refusals import GuardOnDataDependentSymNode
from .._device import device
from .._dispatch.overrides import as_called
from .._dtype import bool as _bool, uint8
from .._state import PROFILED, TLS
from .._tensor import Tensor
from ..utils import _pytree as pytree

_PACKAGES = ("mindtorch_v2", "torch")


class Value(NamedTuple):
    """What a tensor of a run is: an `input` by its place among the leaves, a `parameter`, `buffer` or `constant` by its name, or of a `step` by its number and place (None: the only result)."""

    kind: str
    key: Any
    place: int | None = None


@dataclasses.dataclass
class Described:
    """The geometry of a tensor, and its memory. sizes: its shape in terms of symbols."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: Any
    requires_grad: bool
    sizes: tuple[Any, ...]
    memory: int  # where its memory begins, 0 for none
    offset: int


@dataclasses.dataclass
class Step:
    """A call of an operator: `args` and `kwargs` with a `Value` for each tensor. count: of the results, None for one alone; grad: whether gradients were recorded."""

    target: Any
    args: list[Any]
    kwargs: dict[str, Any]
    count: int | None
    grad: bool
    trace: str
    modules: dict[str, tuple[str, str]]


@dataclasses.dataclass
class Run:
    """What a run was. outputs: the leaves of the result, a `Value` for each tensor; constants: by name."""

    steps: list[Step]
    described: dict[Value, Described]
    outputs: list[Any]
    out_spec: Any
    constants: dict[str, Tensor]
    grad: bool
    met: set[str]  # of the constants: tensors that are nobody's attributes
    written: list[tuple[Value, Value]] = dataclasses.field(
        default_factory=list
    )  # of `_functional`: what is written to what


def record(mod: nn.Module, leaves: list[Any], in_spec: Any, whole: bool = True, without_data: bool = False) -> Run:
    """Run a module on the leaves of `(args, kwargs)`. whole: composites are one step each. without_data: with meta tensors in the place of all others."""
    return _Recorder(mod, whole, without_data).run(leaves, in_spec)


def _copied(leaf: Any) -> Any:
    if not isinstance(leaf, Tensor):
        return leaf
    made = leaf.detach().clone()
    return made.requires_grad_() if leaf.requires_grad else made


def _hollow(leaf: Any) -> Any:
    """A meta tensor, or parameter, of the geometry of a tensor."""
    if not isinstance(leaf, Tensor):
        return leaf
    made = leaf.detach().to("meta")
    if isinstance(leaf, nn.Parameter):
        return nn.Parameter(made, requires_grad=leaf.requires_grad)
    return made.requires_grad_() if leaf.requires_grad else made


class _Recorder:
    """Stands where a profiler does, for one run."""

    def __init__(self, mod: nn.Module, whole: bool, without_data: bool) -> None:
        self._mod = mod
        self._whole = whole
        self._copied = _hollow if without_data else _copied
        self._device: Any = device("meta") if without_data else nullcontext()
        self._depth = 0
        self._values: dict[int, Value] = {}
        self._kept: list[Any] = []  # ids are those of living objects
        self._memory: dict[int, Tensor] = {}
        self._constant: set[Value] = set()  # what follows from constants alone
        self._fresh: set[int] = set()  # tensors that `torch.tensor` and its like made
        self._modes: list[bool | None] = []  # of the ranges that are open
        self._positions: set[Value] = set()  # tensors without dimensions that pick parts of others
        self._picked: set[int] = set()  # the memory of those parts
        self._strange: set[str] = set()
        self._own: dict[int, str] = {}  # tensors that are attributes of modules
        self._before: dict[int, tuple[Tensor, Tensor]] = {}
        self._names = {id(module): name for name, module in mod.named_modules()}
        self._steps: list[Step] = []
        self._described: dict[Value, Described] = {}
        self._constants: dict[str, Tensor] = {}

    # the run

    def run(self, leaves: list[Any], in_spec: Any) -> Run:
        grad = TLS.grad_enabled
        with self._undone() as buffers:
            for name, tensor in self._mod.named_parameters(remove_duplicate=False):
                self._know(tensor, Value("parameter", name))
            for name, tensor in buffers:
                self._know(tensor, Value("buffer", name))
            copies = [self._copied(leaf) for leaf in leaves]
            for place, leaf in enumerate(copies):
                if isinstance(leaf, Tensor):
                    self._know(leaf, Value("input", place))
            args, kwargs = pytree.tree_unflatten(copies, in_spec)
            with self._watching(), self._device:
                result = self._mod(*args, **kwargs)
                self._assigned(buffers)
            outputs, out_spec = pytree.tree_flatten(result)
            outputs = [self._output(one) for one in outputs]
        return Run(self._steps, self._described, outputs, out_spec, self._constants, grad, self._strange)

    @contextmanager
    def _watching(self) -> Iterator[None]:
        outer = TLS.profiler, TLS.exporting
        TLS.profiler = TLS.exporting = self
        PROFILED.add(self)
        _state.enter_special()
        try:
            yield
        finally:
            _state.leave_special()
            PROFILED.discard(self)
            TLS.profiler, TLS.exporting = outer

    @contextmanager
    def _undone(self) -> Iterator[list[tuple[str, Tensor]]]:
        """Undo at the end what the block does to the modules, the random state and the memory of tensors; gives the buffers, which are copies in it."""
        state = get_rng_state()
        modules = list(self._mod.modules())
        before = [(m, dict(m.__dict__), dict(m._parameters), dict(m._buffers), dict(m._modules)) for m in modules]
        copies: dict[int, Tensor] = {}
        for module in modules:
            self._replace(module._buffers, copies)
            if self._copied is _hollow:
                self._replace(module._parameters, copies)
                self._replace(module.__dict__, copies)
            prefix = self._names[id(module)]
            for name, value in module.__dict__.items():
                if isinstance(value, Tensor):
                    self._own.setdefault(id(value), f"{prefix}.{name}" if prefix else name)
        try:
            yield list(self._mod.named_buffers(remove_duplicate=False))
        finally:
            set_rng_state(state)
            for module, attributes, *own in before:
                module.__dict__.clear()
                module.__dict__.update(attributes)
                for name, entries in zip(("_parameters", "_buffers", "_modules"), own):
                    table = module.__dict__[name]
                    table.clear()
                    table.update(entries)
            outer, TLS.grad_enabled = TLS.grad_enabled, False
            try:
                for tensor, saved in self._before.values():
                    tensor.copy_(saved)
            finally:
                TLS.grad_enabled = outer

    def _replace(self, table: dict[str, Any], copies: dict[int, Tensor]) -> None:
        """Put copies in the place of the tensors of a table; one for each, wherever it stands."""
        for name, value in table.items():
            if isinstance(value, Tensor):
                if id(value) not in copies:
                    copies[id(value)] = self._copied(value)
                table[name] = copies[id(value)]

    def _assigned(self, buffers: list[tuple[str, Tensor]]) -> None:
        """Write what the program has put in the place of a buffer to the buffer."""
        for name, buffer in buffers:
            owner, _, last = name.rpartition(".")
            now = self._mod.get_submodule(owner)._buffers.get(last)
            if isinstance(now, Tensor) and now is not buffer:
                self._step(ops.ops.aten.copy_.default, [self._value(buffer), self._value(now)], {}, buffer, "", {})

    # tensors

    def _know(self, tensor: Tensor, value: Value) -> None:
        self._kept.append(tensor)
        self._values[id(tensor)] = value
        shape = tuple(tensor.shape)
        memory = _memory(tensor)
        offset = tensor.storage_offset() if memory else 0
        self._described[value] = Described(
            shape, _strides(tensor), tensor.dtype, bool(tensor.requires_grad), shape, memory, offset
        )
        if memory:
            self._memory.setdefault(memory, tensor)

    def _value(self, tensor: Tensor) -> Value:
        value = self._values.get(id(tensor))
        return self._met(tensor) if value is None else value

    def _met(self, tensor: Tensor) -> Value:
        """What a tensor is that no operator made."""
        known = self._memory.get(_memory(tensor))
        if known is not None and id(tensor) not in self._own and id(tensor) not in self._fresh:
            if known.shape != tensor.shape or _strides(known) != _strides(tensor) or known.dtype != tensor.dtype:
                raise NotImplementedError(
                    f"torch.export: a tensor of shape {list(tensor.shape)} shares memory with a tensor of the program, and no operator that is recorded has made it"
                )
            same = ops.ops.aten.alias if tensor.requires_grad else ops.ops.aten.detach
            self._step(same.default, [self._value(known)], {}, tensor, *self._place())
            return self._values[id(tensor)]
        fresh = id(tensor) in self._fresh
        name = self._own.get(id(tensor))
        if name is None:
            name = next(
                one
                for n in itertools.count()
                if not hasattr(self._mod, one := f"lifted_tensor_{n}") and one not in self._constants
            )
            if not fresh:
                self._strange.add(name)
        value = Value("constant", name)
        self._constant.add(value)
        self._know(tensor, value)
        kept = tensor
        if fresh:
            with _apart(self):
                kept = tensor.detach().clone()
        self._constants[name] = kept
        if fresh:
            aten, where = ops.ops.aten, self._place()
            self._step(aten.lift_fresh_copy.default, [value], {}, tensor, *where)
            self._step(aten.detach_.default, [self._values[id(tensor)]], {}, tensor, *where)
        return self._values[id(tensor)]

    def made(self, tensor: Tensor) -> None:
        """Take note of a tensor that the program has made of numbers."""
        if not self._depth:
            self._kept.append(tensor)
            self._fresh.add(id(tensor))

    def _output(self, leaf: Any) -> Any:
        if isinstance(leaf, Tensor):
            return self._value(leaf)
        if leaf is None or isinstance(leaf, int | float | bool | str | complex):
            return leaf
        raise RuntimeError(
            f"Found {type(leaf)} in output, which is not a known type. If this type holds tensors, you need to register a pytree for it. See "
            "https://github.com/pytorch/functorch/issues/475 for a brief explanation why. If you don't need to register a pytree, please leave a comment "
            "explaining your use case and we'll make this more ergonomic to deal with"
        )

    # what the dispatcher asks

    def call(self, run: Callable, op: Any, args: tuple, *rest: Any, inplace: bool = False) -> Any:
        """`run(op, args, *rest)`, a call of an operator, as a step of the outermost one."""
        out = rest[0] if rest else None
        if self._depth:
            self._refuse_shapes(op, args)
            return run(op, args, *rest)
        if TLS.autocast is not None and out is None and not inplace:
            if op.composite is not None and not any(tag.startswith("autocast_") for tag in op.tags):
                return run(op, args, *rest)  # its parts are cast
            args = TLS.autocast.cast(op, args)
        if op.composite is not None and not self._whole and out is None and not inplace:
            begin = len(self._steps)
            try:
                return run(op, args, *rest)
            except GuardOnDataDependentSymNode:  # what it is composed of decides by elements, so it is one step
                del self._steps[begin:]
        self._refuse_shapes(op, args)
        form = "out" if out is not None else "inplace" if inplace and not op.is_inplace else "functional"
        if inplace or op.is_inplace or out is not None:
            self._save(args[0] if out is None else out)
        target, positional, keywords = _called(op, form, args)
        positional, keywords = self._given(positional), self._given(keywords)
        if out is not None:
            keywords.update(self._buffers(target, out))
        where = self._place()
        self._depth += 1
        try:
            result = run(op, args, *rest)
        finally:
            self._depth -= 1
        self._step(target, positional, keywords, result, *where, factory=op.factory)
        return result

    def outermost(self, target: Any, args: list[Any]) -> Any:
        """`target(*args)` as one step, for what is an operator in PyTorch and a function here."""
        if self._depth or not self._whole or TLS.autocast is not None:
            return target(*args)
        given, where = self._given(args), self._place()
        self._depth += 1
        try:
            result = target(*args)
        finally:
            self._depth -= 1
        self._step(target, given, {}, result, *where)
        return result

    def open(self, name: str, kind: str = "", *rest: Any) -> None:
        """Begin a range. That of a function with a derivative of its own is recorded as it was called, though nothing is while it runs."""
        self._modes.append(TLS.grad_enabled if kind else None)

    def close(self, one: None) -> None:
        """End a range."""
        self._modes.pop()

    def apart(self, name: str, function: Callable, *args: Any) -> NoReturn:
        """An optimizer's step. NotImplementedError: no graph can have one."""
        raise NotImplementedError(f"torch.export: {name} cannot be exported")

    def node(self, node: Any, *rest: Any) -> NoReturn:
        """A part of a backward pass. NotImplementedError: it is not made of calls that are seen."""
        raise NotImplementedError("torch.export: a program that runs a backward pass cannot be exported")

    apply = node

    def whole(self, function: Callable, ops: tuple, args: tuple, kwargs: dict, form: tuple) -> Any:
        """Leave every call to the dispatcher."""
        return NotImplemented

    def read(self, tensor: Tensor, what: str) -> None:
        """Refuse to give elements that depend on the arguments or the state. GuardOnDataDependentSymNode for these."""
        if self._depth:
            return
        with _apart(self):
            value = self._value(tensor)
        if value not in self._constant:
            trace, _ = self._place()
            raise GuardOnDataDependentSymNode(
                "Could not guard on data-dependent expression u0 (unhinted: u0).  (Size-like symbols: none)\n\nconsider using data-dependent friendly APIs such as "
                f"guard_or_false, guard_or_true and statically_known_true.\nThe program asks for elements of a tensor (Tensor.{what}) that its arguments or its state "
                f"decide:\n  {trace}"
            )

    def varies(self, position: Tensor) -> bool:
        """Whether a position without dimensions is none to read: the part of a tensor that it picks is a copy then, which must not be written to."""
        if self._depth:
            return False
        with _apart(self):
            value = self._value(position)
        if value in self._constant:
            return False
        self._positions.add(value)
        return True

    def _save(self, targets: Any) -> None:
        """Keep what was in the memory of a tensor that outlives the run."""
        for target in targets if isinstance(targets, (tuple, list)) else (targets,):
            root = target if target._base is None else target._base
            if _memory(root) in self._picked:
                trace, _ = self._place()
                raise GuardOnDataDependentSymNode(
                    f"Could not guard on data-dependent expression u0 (unhinted: u0).  (Size-like symbols: none)\nThe program writes to a part of a tensor that another tensor "
                    f"picks:\n  {trace}"
                )
            value = self._value(root) if id(root) in self._values or id(root) in self._own else None
            outlives = value is None or value.kind in ("parameter", "constant")
            if outlives and id(root) not in self._before and id(root) not in self._fresh:
                with _apart(self):
                    self._before[id(root)] = root, root.detach().clone()

    def _refuse_shapes(self, op: Any, args: tuple) -> None:
        """Refuse operators whose result's shape the elements decide: the graph would hold for these elements only."""
        if op.name in _SHAPED and _SHAPED[op.name](args):
            trace, _ = self._place()
            raise GuardOnDataDependentSymNode(
                f"Could not extract specialized integer from data-dependent expression u0 (unhinted: u0).  (Size-like symbols: none)\nThe shape of what {op.name} gives "
                f"depends on the elements of a tensor:\n  {trace}"
            )

    def _given(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self._value(value)
        if isinstance(value, (list, tuple)):
            return [self._given(one) for one in value]
        if isinstance(value, dict):
            return {name: self._given(one) for name, one in value.items()}
        return value

    def _buffers(self, target: Any, out: Any) -> dict[str, Any]:
        names = [argument.name for argument in target._schema.arguments if argument.is_out]
        return dict(zip(names, [self._given(one) for one in (out if isinstance(out, (tuple, list)) else (out,))]))

    def _step(
        self, target: Any, args: list, kwargs: dict, result: Any, trace: str, modules: dict, factory: bool = False
    ) -> None:
        results = list(result) if isinstance(result, (tuple, list)) else [result]
        taken = [one for one in pytree.tree_leaves((args, kwargs), is_leaf=_is_value) if _is_value(one)]
        constant = all(one in self._constant for one in taken) and not _draws(target)
        if not any(isinstance(one, Tensor) for one in results):
            if not constant and result is not None:
                raise GuardOnDataDependentSymNode(
                    f"Could not guard on data-dependent expression u0 (unhinted: u0).  (Size-like symbols: none)\n{target} gives a number that the elements of tensors decide:\n  {trace}"
                )
            return
        if factory:
            _where(target, kwargs, results[0])
        single = not isinstance(result, (tuple, list))
        number = len(self._steps)
        grad = next((mode for mode in self._modes if mode is not None), TLS.grad_enabled)
        self._steps.append(Step(target, args, kwargs, None if single else len(results), grad, trace, modules))
        if target._opname == "index" and not self._positions.isdisjoint(taken):
            self._picked.add(_memory(results[0]))
        for place, one in enumerate(results):
            if isinstance(one, Tensor):
                value = Value("step", number, None if single else place)
                self._know(one, value)
                if constant:
                    self._constant.add(value)

    # where the program is

    def _place(self) -> tuple[str, dict[str, tuple[str, str]]]:
        """The line of the program that calls, and the modules within which it does."""
        trace, stack = "", []
        frame: Any = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            file = code.co_filename
            if file.startswith("<graph_module_") and not trace:
                graph = getattr(frame.f_locals.get("self"), "graph", None)
                found = getattr(getattr(graph, "_codegen", None), "traces", {}).get(frame.f_lineno)
                if found is not None:  # of a program that was exported
                    return found
            if _is_told(
                frame.f_globals.get("__name__") or "torch", code.co_name
            ):  # what graphs have written has no name
                if not trace:
                    line = linecache.getline(file, frame.f_lineno).strip()
                    trace = f'File "{file}", line {frame.f_lineno}, in {code.co_name}\n    {line}'
                owner = frame.f_locals.get("self") if code.co_name == "forward" else None
                name = self._names.get(id(owner))
                if name is not None:
                    stack.append((name, f"{type(owner).__module__}.{type(owner).__qualname__}"))
            frame = frame.f_back
        return trace, {f"L['self'].{name}" if name else "L['self']": (name, kind) for name, kind in reversed(stack)}


def _is_told(module: str, function: str) -> bool:
    """Whether lines of a function are what the user wants to know: those of programs and of layers' `forward`."""
    package, _, rest = module.partition(".")
    return package not in _PACKAGES or (rest.startswith("nn.modules.") and function == "forward")


def _is_value(one: Any) -> bool:
    return isinstance(one, Value)


def _strides(tensor: Tensor) -> tuple[int, ...]:
    return tuple(tensor.stride()) if tensor.layout is _strided() else ()


def _strided() -> Any:
    from .._layout import strided

    return strided


def _memory(tensor: Tensor) -> int:
    """Where the memory of a tensor begins; 0 where it has none."""
    if tensor.layout is not _strided() or tensor.device.type == "meta":
        return 0
    storage = tensor.untyped_storage()
    return storage.data_ptr() if storage.nbytes() else 0


@contextmanager
def _apart(recorder: _Recorder) -> Iterator[None]:
    """What the recorder itself computes is no step."""
    recorder._depth += 1
    outer, TLS.grad_enabled = TLS.grad_enabled, False
    try:
        yield
    finally:
        TLS.grad_enabled = outer
        recorder._depth -= 1


def _masks(args: tuple) -> bool:
    return any(isinstance(one, Tensor) and one.dtype in (_bool, uint8) for one in args[1])


_SHAPED: dict[str, Callable[[tuple], bool]] = {
    "index": _masks,
    "nonzero": lambda args: True,
    "masked_select": lambda args: True,
    "bincount": lambda args: True,
    "unique_consecutive": lambda args: True,
    "_unique2": lambda args: True,
    "unique_dim": lambda args: True,
    "one_hot": lambda args: args[1] == -1,
    "repeat_interleave": lambda args: any(isinstance(one, Tensor) for one in args[1:]) and args[-1] is None,
}


def _draws(target: Any) -> bool:
    return any(tag.name == "nondeterministic_seeded" for tag in target.tags)


def _called(op: Any, form: str, args: tuple) -> tuple[Any, list[Any], dict[str, Any]]:
    """The overload that a call means, and its arguments, without defaults at the end."""
    target = ops.overload(op, form, args)
    positional, keywords = as_called(op, args)
    arguments = target._schema.arguments
    given = list(positional)
    while given and len(given) <= len(arguments) and _is_default(arguments[len(given) - 1], given[-1]):
        given.pop()
    by_name = {argument.name: argument for argument in arguments}
    keywords = {
        name: value for name, value in keywords.items() if name not in by_name or not _is_default(by_name[name], value)
    }
    if op.name == "_to_copy" and set(keywords) == {"dtype"}:
        return ops.ops.aten.to.dtype, [*given, keywords["dtype"]], {}
    return target, given, keywords


def _is_default(argument: Any, value: Any) -> bool:
    if not argument.has_default_value() or isinstance(value, Tensor):
        return False
    default = argument.default_value
    if isinstance(value, (list, tuple)):
        expected = default if isinstance(default, (list, tuple)) else [default] * len(value)
        return len(value) == len(expected) and all(type(a) is type(b) and a == b for a, b in zip(value, expected))
    return type(default) is type(value) and default == value


def _where(target: Any, kwargs: dict[str, Any], made: Tensor) -> None:
    """Say where a factory makes its tensor, as PyTorch's graphs do."""
    names = {argument.name for argument in target._schema.arguments}
    like = target._opname.endswith("_like") or target._opname.startswith("new_")
    if "device" in names and not like:
        kwargs.setdefault("device", made.device)
    if "pin_memory" in names:
        kwargs.setdefault("pin_memory", False)
