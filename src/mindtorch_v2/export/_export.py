"""`torch.export.export`: a module and example arguments become a graph."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

from .. import nn
from .._compiling.refusals import UserError, UserErrorType
from .._device import device
from .._dtype import dtype
from .._layout import layout, memory_format
from .._script.module import ScriptModule
from .._tensor import Tensor
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..ops import OpOverload
from ..utils import _pytree as pytree
from ._building import Builder, named_leaves
from ._dynamic import Symbol, explored, ranges, symbols_of
from ._functional import functional
from ._program import Guard
from ._recording import Run, record
from .dynamic_shapes import AdditionalInputs, ShapesCollection, combined, of_leaves
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature

_BASIC = (Tensor, int, float, str, bool, complex, type(None), dtype, device, layout, memory_format)


def export(
    mod: nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """The operators that a module calls for example arguments, as a graph that takes its parameters and buffers as inputs.

    dynamic_shapes: for each argument, by name or in their order, which of its dimensions may have other sizes; all others are as in the example. The program runs at several
    sizes then, and is refused where its steps differ by more than integers that follow from these. strict changes nothing: no bytecode is read.

    Raises:
        GuardOnDataDependentSymNode: where the program decides by elements of tensors.
        UserError: for arguments and dynamic shapes that do not fit the program.
    """
    if not isinstance(mod, nn.Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if isinstance(mod, ScriptModule):
        raise ValueError(
            "Exporting a ScriptModule is not supported. Maybe try converting your ScriptModule to an ExportedProgram using "
            "`TS2EPConverter(mod, args, kwargs).convert()` instead."
        )
    if not isinstance(args, tuple):
        raise UserError(
            UserErrorType.INVALID_INPUT,
            f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}",
        )
    if preserve_module_call_signature:
        raise NotImplementedError("torch.export.export: signatures of submodules are not preserved")
    arguments = combined(mod, args, dict(kwargs or {}))
    positional, named = _names(mod, args, dict(kwargs or {}))
    leaves, in_spec = pytree.tree_flatten((args, named))
    for leaf in leaves:
        if not isinstance(leaf, _BASIC):
            raise ValueError(
                f"Unsupported input type {type(leaf)}. Export only supports pytree containers of basic types (Tensor, int, float, ...) as input. To register a custom "
                "dataclass, use torch.export.register_dataclass. To register a custom container type, use torch.utils._pytree.register_pytree_node. To register a "
                "constant input, use torch.utils._pytree.register_constant"
            )
    if isinstance(dynamic_shapes, (ShapesCollection, AdditionalInputs)):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, named)
    symbols: list[Symbol] = []
    if dynamic_shapes:
        said = of_leaves(dynamic_shapes, arguments)
        by_place = {place: said[id(leaf)] for place, leaf in enumerate(leaves) if id(leaf) in said}
        symbols = symbols_of(leaves, by_place, _sources(in_spec, positional, leaves))
    return _made(mod, (args, named), leaves, in_spec, positional, symbols)


def export_for_training(
    mod: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None, **options: Any
) -> ExportedProgram:
    """`export`, under the name that it had once."""
    return export(mod, args, kwargs, **options)


def _made(
    mod: nn.Module,
    example: tuple[tuple, dict[str, Any]],
    leaves: list[Any],
    in_spec: Any,
    positional: list[str],
    symbols: list[Symbol],
    whole: bool = True,
    values: bool = False,
    named: list[str] | None = None,
    lifted: Collection[str] = (),
) -> ExportedProgram:
    def trace(values: list[Any], without_data: bool = False) -> Run:
        return record(mod, values, in_spec, whole, without_data)

    run, symbols = explored(leaves, symbols, trace) if symbols else (trace(leaves), [])
    if run.met:
        _check_constants(run, trace(leaves))
    if values:
        run = functional(run)
    builder = Builder(run, mod, leaves, named or named_leaves(in_spec, positional, leaves), symbols, lifted)
    signature = builder.build()
    if values:
        builder.graph.eliminate_dead_code(_has_effect)
    names = [*positional, *example[1]]
    entry = ModuleCallEntry("", ModuleCallSignature([], [], in_spec, run.out_spec, names))
    root = {name: GraphModule({}, graph, name) for name, graph in builder.attributes.items()}
    state = dict(mod.state_dict(keep_vars=True))
    constants = dict(run.constants)
    others = {*signature.non_persistent_buffers, *lifted}
    constants.update({name: buffer for name, buffer in mod.named_buffers(remove_duplicate=False) if name in others})
    made = ExportedProgram(root, builder.graph, signature, state, ranges(symbols), [entry], example, constants)
    made._guards = _guards(leaves, _sources(in_spec, positional, leaves), symbols)
    made._symbols = symbols
    made._apart = taken_apart
    return made


def _check_constants(run: Run, again: Run) -> None:
    """Refuse tensors that no recorded operator has made and that another run does not have: they are no constants."""
    for name in run.met:
        if again.constants.get(name) is not run.constants[name]:
            raise NotImplementedError(
                f"torch.export: the program makes a tensor of shape {list(run.constants[name].shape)} by something that is not recorded; operators, layers and torch.tensor are"
            )


def taken_apart(program: ExportedProgram, table: dict[Any, Any] | None) -> ExportedProgram:
    """A program without composites, see `ExportedProgram.run_decompositions`."""
    from .decomp_utils import CustomDecompTable

    if table and not isinstance(table, CustomDecompTable):
        raise NotImplementedError("run_decompositions: operators are taken apart as the library does it, not by tables")
    if program.example_inputs is None:
        raise NotImplementedError("run_decompositions: the program has no example inputs")
    whole = table is not None and not isinstance(table, CustomDecompTable)
    args, kwargs = program.example_inputs
    leaves, in_spec = pytree.tree_flatten((args, kwargs))
    names = [spec.arg.name for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    signature = program.module_call_graph[0].signature
    positional = list(signature.forward_arg_names or [])[: len(args)] if signature is not None else []
    module = program.module(check_guards=False)
    lifted = program.graph_signature.lifted_tensor_constants
    made = _made(module, (args, kwargs), leaves, in_spec, positional, program._symbols, whole, True, names, lifted)
    if not _writes(made):
        made._dialect = "ATEN"
    return made


def _has_effect(node: Node) -> bool:
    """Whether a node must stay though nobody uses it: an operator that writes or draws numbers, and a graph below."""
    if node.op != "call_function":
        return node.op != "get_attr"
    if isinstance(node.target, OpOverload):
        drawn = any(tag.name == "nondeterministic_seeded" for tag in node.target.tags)
        return drawn or any(argument.is_write for argument in node.target._schema.arguments)
    return not getattr(node.target, "__module__", "").endswith("operator")


def _writes(program: ExportedProgram) -> bool:
    """Whether an operator of a program writes to a tensor."""
    graphs = [module.graph for module in program.graph_module.modules() if isinstance(module, GraphModule)]
    targets = [node.target for graph in graphs for node in graph.nodes if isinstance(node.target, OpOverload)]
    return any(argument.is_write for target in targets for argument in target._schema.arguments)


def _names(mod: nn.Module, args: tuple, kwargs: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """The names of the positional arguments, and the named ones in the order in which `forward` has them."""
    parameters = inspect.signature(mod.forward).parameters
    names = [name for name, one in parameters.items() if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    rest = next((name for name, one in parameters.items() if one.kind is one.VAR_POSITIONAL), "args")
    names = names[: len(args)] + [f"{rest}_{number}" for number in range(len(args) - len(names))]
    order = [name for name in parameters if name in kwargs]
    return names, {name: kwargs[name] for name in (*order, *(one for one in kwargs if one not in order))}


def _sources(in_spec: Any, positional: list[str], leaves: list[Any]) -> list[str]:
    """How a program would write the leaves: `d['a']`."""
    texts = []
    for path, _ in pytree.tree_flatten_with_path(pytree.tree_unflatten(leaves, in_spec))[0]:
        first: Any = path[1]
        name = positional[first.idx] if isinstance(first, pytree.SequenceKey) else str(first.key)
        texts.append(name + "".join(str(key) for key in path[2:]))
    return texts


def _guards(leaves: list[Any], texts: list[str], symbols: list[Symbol]) -> list[Guard]:
    """What the arguments are asked before the graph runs. texts: how the program would write the leaves."""
    dynamic = {place for one in symbols for place in one.places}
    guards: list[Guard] = []
    for place, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor):
            guards += _of_tensor(place, leaf, texts[place], {dim for at, dim in dynamic if at == place})
        elif isinstance(leaf, (int, float, str, bool, type(None))):
            guards.append(_of_constant(place, leaf, texts[place]))
    for one in symbols:
        guards += _of_symbol(one, texts)
    return guards


def _of_constant(place: int, value: Any, text: str) -> Guard:
    if value is None:
        return Guard(
            f"{text} is None", lambda names: f"{names[place]} is not None", lambda values: values[place] is None
        )
    return Guard(
        f"{text} == {value!r}",
        lambda names: f"{names[place]} != {value!r}",
        lambda values: bool(values[place] == value),
    )


def _of_tensor(place: int, leaf: Tensor, text: str, dynamic: set[int]) -> list[Guard]:
    shape = tuple(leaf.shape)
    guards = []
    for dim, size in enumerate(shape):
        if dim not in dynamic:
            source = None if not dynamic else _written(place, dim, f" != {size}")
            guards.append(Guard(f"{text}.size()[{dim}] == {size}", source, _size(place, dim, size), place))
    if not dynamic:
        whole = Guard("", lambda names: f"{names[place]}.shape != {shape!r}", lambda values: True, place)
        guards.append(whole)
    return guards


def _written(place: int, dim: int, rest: str) -> Callable[[list[str]], str]:
    return lambda names: f"{names[place]}.shape[{dim}]{rest}"


def _size(place: int, dim: int, size: int) -> Callable[[list[Any]], bool]:
    return lambda values: values[place].size()[dim] == size


def _of_symbol(one: Symbol, texts: list[str]) -> list[Guard]:
    guards = []
    items = list(one.places.items())
    (place, dim), (scale, plus) = items[0]
    shown = f"{texts[place]}.size()[{dim}]"

    def found(values: list[Any]) -> int:
        return values[place].size()[dim]

    if one.upper is not None:
        most = scale * one.upper + plus
        guards.append(
            Guard(f"{shown} <= {most}", _written(place, dim, f" > {most}"), lambda values: found(values) <= most, place)
        )
    if one.lower > 2:
        least = scale * one.lower + plus
        guards.append(
            Guard(
                f"{shown} >= {least}", _written(place, dim, f" < {least}"), lambda values: found(values) >= least, place
            )
        )
    if scale != 1:
        text = f"({shown} - {plus}) % {scale} == 0" if plus else f"{shown} % {scale} == 0"
        guards.append(
            Guard(
                text,
                lambda names: f"({names[place]}.shape[{dim}] - {plus}) % {scale}",
                lambda values: (found(values) - plus) % scale == 0,
                place,
            )
        )
    guards += [_tied((place, dim, scale, plus), (*at, *form), texts) for at, form in items[1:]]
    return guards


def _tied(first: tuple[int, int, int, int], second: tuple[int, int, int, int], texts: list[str]) -> Guard:
    """`second` is as large as `first` says: places, dimensions, and what their sizes are of the symbol."""
    place, dim, scale, plus = first
    at, axis, factor, more = second
    same = (scale, plus) == (factor, more)

    def sides(a: str, b: str, sign: str) -> str:
        return f"{b} {sign} {a}" if same else f"{_side(b, more, scale)} {sign} {_side(a, plus, factor)}"

    def holds(values: list[Any]) -> bool:
        return (values[at].size()[axis] - more) * scale == (values[place].size()[dim] - plus) * factor

    return Guard(
        sides(f"{texts[place]}.size()[{dim}]", f"{texts[at]}.size()[{axis}]", "=="),
        lambda names: sides(f"{names[place]}.shape[{dim}]", f"{names[at]}.shape[{axis}]", "!="),
        holds,
        at,
    )


def _side(text: str, less: int, times: int) -> str:
    text = f"({text} - {less})" if less else text
    return text if times == 1 else f"{text} * {times}"
