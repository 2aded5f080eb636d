"""`torch.jit.trace`: the operators of one run, written as TorchScript without branches.

Note [Traces]
The program runs once, below the tape, where every operator is an overload of `torch.ops.aten`. Each becomes a line of code; tensors that no operator made are
the arguments, the module's parameters and buffers, or constants. Numbers that the program took of sizes and elements are constants: another shape needs
another trace, unless the operators fit it. The code is read back as that of a file would be, so what runs is what `save` writes.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

from .. import nn
from .._device import device
from .._dtype import dtype
from .._layout import layout, memory_format
from .._tensor import Tensor
from ..utils._python_dispatch import TorchDispatchMode
from .library import Library
from .module import ScriptModule, TopLevelTracedModule, TracedModule
from .numbers import code_of


class TracerWarning(Warning):
    """A trace may not be what the program does for other arguments."""


class ScriptFunction:
    """What `torch.jit.trace` gives of a function."""

    def __init__(self, module: ScriptModule, name: str):
        self._module = module
        self.__name__ = self.name = name

    @property
    def code(self) -> str:
        """The source text."""
        return self._module.code

    graph = code

    def save(self, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
        """Write the function to a path or a file."""
        self._module.save(f, _extra_files)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._module(*args, **kwargs)


def trace(
    func: Any,
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: dict[str, Any] | None = None,
    _store_inputs: bool = True,
) -> Any:
    """The operators that a module or function runs for example arguments, as a module or function of TorchScript that shares the module's parameters.

    example_inputs: a tuple of arguments, or one tensor; tensors, and tuples, lists and dicts of them. check_trace: run the trace for the same arguments, and warn
    with TracerWarning where its results differ by more than `check_tolerance`. RuntimeError for results that are no tensors or containers of them (dicts only
    unless `strict`).
    """
    if isinstance(func, ScriptModule):
        return func
    arguments = (example_inputs,) if isinstance(example_inputs, (Tensor, dict)) else tuple(example_inputs or ())
    named = dict(example_kwarg_inputs or {})
    if not arguments and not named:
        raise RuntimeError(
            "example_kwarg_inputs should be a dict" if example_inputs is None else "trace needs example inputs"
        )
    module = func if isinstance(func, nn.Module) else None
    named = _in_order(func, named)
    made = _Tracer(module, _name_of(func)).run(func, arguments, named, strict)
    if check_trace:
        _check(made, func, arguments, named, check_tolerance)
    return made if module is not None else ScriptFunction(made, _name_of(func))


def trace_module(mod: nn.Module, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    """`trace` of a module's `forward`, given as `{"forward": arguments}`. NotImplementedError for other methods."""
    if set(inputs) != {"forward"}:
        raise NotImplementedError("trace_module: only forward is traced")
    return trace(mod, inputs["forward"], *args, **kwargs)


def _in_order(func: Any, named: dict[str, Any]) -> dict[str, Any]:
    """Named arguments in the order in which the function or `forward` has them, in which the trace takes them too.

    NameError for one that `forward` does not name.
    """
    import inspect

    try:
        parameters = inspect.signature(func.forward if isinstance(func, nn.Module) else func).parameters
    except (TypeError, ValueError):
        return named
    known = [name for name, one in parameters.items() if one.kind is one.POSITIONAL_OR_KEYWORD]
    other = [name for name in named if name not in known]
    if other and isinstance(func, nn.Module):
        raise NameError(
            f"'{other[0]}' is not in forward() method's arguments,\n                         valid arguments name are [{','.join(known)}]"
        )
    return {name: named[name] for name in (*known, *other) if name in named}


def _name_of(func: Any) -> str:
    return type(func).__name__ if isinstance(func, nn.Module) else getattr(func, "__name__", "traced").strip("<>")


def _check(made: ScriptModule, func: Callable, arguments: tuple, named: dict[str, Any], tolerance: float) -> None:
    from .._api.functions.randomness import get_rng_state, set_rng_state
    from ..testing import assert_close

    state = get_rng_state()
    try:
        expected = func(*copy.deepcopy(arguments), **copy.deepcopy(named))
        set_rng_state(state)
        found = made(*copy.deepcopy(arguments), **copy.deepcopy(named))
        assert_close(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    except AssertionError as error:
        warnings.warn(
            f"Output of the traced function does not match that of the Python function: {error}",
            TracerWarning,
            stacklevel=3,
        )
    finally:
        set_rng_state(state)


def _copied(value: Any) -> Any:
    """Containers with a copy of each tensor, so that one tensor given twice is two arguments."""
    if isinstance(value, Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, (tuple, list)):
        return type(value)(map(_copied, value))
    return {key: _copied(one) for key, one in value.items()} if isinstance(value, dict) else value


class _Recorder(TorchDispatchMode):
    """Gives each operator that runs to the tracer."""

    def __init__(self, tracer: _Tracer):
        super().__init__()
        self._tracer = tracer

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self._tracer.record(func, args, kwargs or {}, result)
        return result


class _Tracer:
    """Writes the code of one trace."""

    def __init__(self, module: nn.Module | None, name: str):
        self._module = module
        self._name = name if name.isidentifier() else "traced"
        self._lines: list[str] = []
        self._names: dict[int, str] = {}
        self._state: dict[int, list[str]] = {}  # of parameters and buffers: the names on the way from the module
        self._kept: list[Any] = []  # ids are those of living objects
        self._constants: list[Tensor] = []
        self._classes: dict[int, str] = {}
        self._texts: dict[str, list[str]] = {}

    def run(self, func: Callable, arguments: tuple, named: dict[str, Any], strict: bool) -> ScriptModule:
        """The module of the trace."""
        import inspect

        arguments, named = _copied(arguments), _copied(named)
        target = func.forward if isinstance(func, nn.Module) else func
        try:
            names = list(inspect.signature(target).bind_partial(*arguments, **named).arguments)
        except (TypeError, ValueError):
            names = []
        values = [*arguments, *named.values()]
        if len(names) != len(values) or not all(one.isidentifier() for one in names):
            names = [f"argument_{number}" for number in range(1, len(values) + 1)]
        self._own_state()
        signature = ["self: __torch__." + self._class_of(self._module)]
        for one, value in zip(names, values):
            self._argument(f"{one}_" if one in ("torch", "ops", "self") else one, value, signature)
        with _Recorder(self):
            result = func(*arguments, **named)
        text, kind = self._result(result, strict)
        lines = [f"  def forward({', '.join(signature)}) -> {kind}:", *self._lines, f"    return {text}"]
        return self._made(lines)

    def _keep(self, value: Tensor, name: str) -> None:
        self._kept.append(value)
        self._names[id(value)] = name

    def _fresh(self) -> str:
        return f"_{len(self._kept)}"

    def _own_state(self) -> None:
        for owner, module in () if self._module is None else self._module.named_modules():
            for name, tensor in (*module._parameters.items(), *module._buffers.items()):
                if tensor is not None:
                    self._state.setdefault(id(tensor), [*filter(None, owner.split(".")), name])

    def _argument(self, name: str, value: Any, signature: list[str]) -> None:
        signature.append(f"{name}: {self._taken(name, value)}")

    def _taken(self, name: str, value: Any) -> str:
        """The type of an argument, whose tensors get their names."""
        if isinstance(value, Tensor):
            self._keep(value, name)
            return "Tensor"
        if isinstance(value, (tuple, list)) and value:
            parts = [self._fresh_part(one) for one in value]
            self._lines.append(f"    {', '.join(part for part, _ in parts)}, = {name}")
            kinds = [kind for _, kind in parts]
            return f"List[{kinds[0]}]" if isinstance(value, list) else f"Tuple[{', '.join(kinds)}]"
        if isinstance(value, dict) and value and all(type(key) is str for key in value):
            kinds = []
            for key, one in value.items():
                part = f"_{len(self._kept)}_{len(self._lines)}"
                self._lines.append(f"    {part} = {name}[{self._literal(key)}]")
                kinds.append(self._taken(part, one))
            return f"Dict[str, {kinds[0]}]"
        raise RuntimeError(
            f"Type '{type(value).__name__}' cannot be traced. Only Tensors and (possibly nested) Lists, Dicts, and Tuples of Tensors can be traced"
        )

    def _fresh_part(self, value: Any) -> tuple[str, str]:
        name = f"_{len(self._kept)}_{len(self._lines)}"
        return name, self._taken(name, value)

    # operators

    def record(self, func: Any, args: tuple, kwargs: dict[str, Any], result: Any) -> None:
        """Write the line of an operator, and name its results."""
        schema = func._schema
        shown = [self._shown(value, argument.real_type) for value, argument in zip(args, schema.arguments)]
        kinds = {argument.name: argument.real_type for argument in schema.arguments}
        shown += [f"{name}={self._shown(value, kinds.get(name, ''))}" for name, value in kwargs.items()]
        call = f"torch.{func._opname}({', '.join(shown)})"
        if isinstance(result, Tensor):
            if id(result) in self._names:
                self._lines.append(f"    {self._fresh()}_ = {call}")
                return
            name = self._fresh()
            self._keep(result, name)
        elif isinstance(result, (tuple, list)) and all(isinstance(one, Tensor) for one in result):
            for one in result:
                self._keep(one, self._fresh())
            name = ", ".join(self._names[id(one)] for one in result) + ","
        else:
            return  # a number, which is a constant of the trace
        self._lines.append(f"    {name} = {call}")

    def _shown(self, value: Any, word: str) -> str:
        if isinstance(value, Tensor):
            return self._tensor(value)
        if isinstance(value, (list, tuple)):
            inner = word.removeprefix("Optional[").removeprefix("List[").split("]")[0]
            parts = [self._shown(one, inner) for one in value]
            text = f"[{', '.join(parts)}]"
            if not value:
                return f"annotate(List[{'int' if 'nt' in inner else inner}], [])"
            return f"annotate(List[Optional[Tensor]], {text})" if "Optional[Tensor" in word else text
        if isinstance(value, (dtype, layout, memory_format)):
            return str(code_of(value))
        if isinstance(value, device):
            return f'torch.device("{value}")'
        if isinstance(value, int) and "float" in word and type(value) is int:
            value = float(value)
        return self._literal(value)

    def _literal(self, value: Any) -> str:
        if isinstance(value, float):
            text = repr(value)
            return text.removesuffix("0") if text.endswith(".0") else text
        if isinstance(value, str):
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
        if value is None or isinstance(value, (bool, int)):
            return str(value)
        raise RuntimeError(f"a {type(value).__name__} cannot be written in a trace")

    def _tensor(self, value: Tensor) -> str:
        name = self._names.get(id(value))
        if name is None:
            path = self._state.get(id(value))
            if path is None:
                name = f"CONSTANTS.c{len(self._constants)}"
                self._constants.append(value.detach().clone())
            else:
                name = self._loaded(path)
            self._keep(value, name)
        return name

    def _loaded(self, path: list[str]) -> str:
        """A variable with the tensor of a path below self, a line for each step."""
        owner = "self"
        for part in path:
            name = f"_{len(self._kept)}_{len(self._lines)}"
            step = f"{owner}.{part}" if part.isidentifier() else f"getattr({owner}, {self._literal(part)})"
            self._lines.append(f"    {name} = {step}")
            owner = name
        return owner

    def _result(self, value: Any, strict: bool) -> tuple[str, str]:
        if isinstance(value, Tensor):
            return self._tensor(value), "Tensor"
        if isinstance(value, (tuple, list)) and value:
            parts = [self._result(one, strict) for one in value]
            texts = ", ".join(text for text, _ in parts)
            if isinstance(value, list):
                return f"[{texts}]", f"List[{parts[0][1]}]"
            return f"({texts}{',' if len(parts) == 1 else ''})", f"Tuple[{', '.join(kind for _, kind in parts)}]"
        if isinstance(value, dict) and value and not strict and all(type(key) is str for key in value):
            parts = [(self._literal(key), *self._result(one, strict)) for key, one in value.items()]
            return "{" + ", ".join(f"{key}: {text}" for key, text, _ in parts) + "}", f"Dict[str, {parts[0][2]}]"
        if isinstance(value, dict):
            raise RuntimeError(
                "Encountering a dict at the output of the tracer might cause the trace to be incorrect, this is only valid if the container structure does "
                "not change based on the module's inputs. Consider using a constant container instead (e.g. for `list`, use a `tuple` instead. for `dict`, "
                "use a `NamedTuple` instead). If you absolutely need this and know the side effects, pass strict=False to trace() to allow this behavior."
            )
        raise RuntimeError(
            f"Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions, but got {type(value).__name__}"
        )

    # classes

    def _class_of(self, module: nn.Module | None) -> str:
        """The name of the class of a module of the trace, without `__torch__.`; each module has its own."""
        key = id(module)
        if key not in self._classes:
            home = "" if module is None else type(module).__module__.removeprefix("mindtorch_v2")
            place = ("torch" if home.startswith(".") else "") + home
            parts = [part for part in place.split(".") if part and part != "__main__"]
            if self._classes:
                parts.append(f"___torch_mangle_{len(self._classes) - 1}")
            name = "PlaceholderModule" if module is None else type(module).__name__
            self._classes[key] = ".".join([*parts, name])
        return self._classes[key]

    def _made(self, forward: list[str]) -> ScriptModule:
        self._declared(self._module, forward)
        texts = {f"code/{path}.py": ("\n".join(lines) + "\n").encode() for path, lines in self._texts.items()}
        library = Library(texts, tuple(self._constants))
        return self._module_of(self._module, library, {})

    def _declared(self, module: nn.Module | None, forward: list[str]) -> None:
        name = "__torch__." + self._class_of(module)
        home, _, own = name.rpartition(".")
        parameters = [] if module is None else [n for n, p in module._parameters.items() if p is not None]
        buffers = [] if module is None else [n for n, b in module._buffers.items() if b is not None]
        children = {} if module is None else {n: m for n, m in module._modules.items() if m is not None}
        lines = [f"class {own}(Module):"]
        for word, names in (("__parameters__", parameters), ("__buffers__", buffers)):
            lines.append(f"  {word} = [{''.join(f'{self._literal(n)}, ' for n in names)}]")
        fields = [*((n, "Tensor") for n in (*parameters, *buffers)), ("training", "bool")]
        fields += [(n, "__torch__." + self._class_of(child)) for n, child in children.items()]
        for field, kind in fields:
            lines.append(f"  {field} : {kind}" if field.isidentifier() else f'  __annotations__["{field}"] = {kind}')
        self._texts.setdefault(home.replace(".", "/"), []).extend([*lines, *forward])
        for child in children.values():
            if not any(
                f"class {self._class_of(child).rpartition('.')[2]}(Module):" == line for line in self._home_of(child)
            ):
                self._declared(child, [])

    def _home_of(self, module: nn.Module) -> list[str]:
        return self._texts.get(("__torch__." + self._class_of(module)).rpartition(".")[0].replace(".", "/"), [])

    def _module_of(self, module: nn.Module | None, library: Library, made: dict[int, ScriptModule]) -> ScriptModule:
        if id(module) in made:
            return made[id(module)]
        cls = library.class_of("__torch__." + self._class_of(module))
        assert cls is not None  # it was declared
        kind = TracedModule if made or module is None else TopLevelTracedModule
        script = made[id(module)] = kind._of(cls, library)
        if module is not None:
            script._parameters.update((n, p) for n, p in module._parameters.items() if p is not None)
            script._buffers.update((n, b) for n, b in module._buffers.items() if b is not None)
            for name, child in module._modules.items():
                if child is not None:
                    script._modules[name] = self._module_of(child, library, made)
            script.__dict__["training"] = module.training
        return script
