"""An exported program as a module.

Note [The short road]
The module's `forward` is written for speed: an overload of `torch.ops` binds its arguments in Python, so where a function or a method of the package means the same operator with
the same arguments in the same order, the source calls that. Sizes are looked at in one condition; where it does not hold, or where the arguments are not as many as they were, `_checked` finds out what is
wrong and raises PyTorch's error.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import nn
from .._generated import functions as _functions
from .._tensor import Tensor
from ..fx.graph import CodeGen, Graph, PythonCode, _attribute, _literal, _References
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..ops import OpOverload, _takes, member_of, ops
from ..utils import _pytree as pytree
from ._building import placeholder
from .graph_signature import InputKind, OutputKind

aten = ops.aten
_SPACES = ("torch", "nn", "special", "linalg", "fft")


class _Nothing:
    """What stands for an argument that was not given."""

    shape = None


NOTHING = _Nothing()


class Guard:
    """A condition on the arguments: what the error says, how its opposite is written as source for names of the leaves, and whether it holds for their values.

    place: of a leaf whose shape the source looks at first, so that what was not given is refused.
    """

    def __init__(
        self,
        text: str,
        source: Callable[[list[str]], str] | None,
        holds: Callable[[list[Any]], bool],
        place: int | None = None,
    ) -> None:
        self.text, self.source, self.holds, self.place = text, source, holds, place


class GuardsFn(nn.Module):
    """Checks the leaves of the arguments. AssertionError for those that the graph does not hold for."""

    def __init__(self, guards: list[Guard]) -> None:
        super().__init__()
        self._guards = guards

    def forward(self, *leaves: Any) -> None:
        """Raise for the first guard that does not hold."""
        for guard in self._guards:
            if not guard.holds(list(leaves)):
                raise AssertionError(f"Guard failed: {guard.text}")


class ExportedModule(GraphModule):
    """What `ExportedProgram.module()` gives."""

    def train(self, mode: bool = True) -> Any:
        """Raises NotImplementedError: the program is what it was in the mode in which it was exported."""
        raise NotImplementedError("Calling train() is not supported yet.")

    def eval(self) -> Any:
        """Raises NotImplementedError, as `train` does."""
        raise NotImplementedError("Calling eval() is not supported yet.")

    def __reduce__(self) -> tuple[Any, ...]:
        raise NotImplementedError("modules of exported programs are not pickled: save the state dict, and export again")

    def _flat(self, args: tuple, kwargs: dict[str, Any]) -> list[Any]:
        """The leaves of the arguments, without those that were not given. ValueError where they are not built as the example arguments were."""
        args = tuple(one for one in args if one is not NOTHING)
        kwargs = {name: one for name, one in kwargs.items() if one is not NOTHING}
        expected = self._in_spec
        names = expected.child(1).context
        if sorted(kwargs) != sorted(names):
            raise ValueError(
                f"Ran into a kwarg keyword mismatch: Got the following keywords {list(kwargs)} but expected {list(names)}"
            )
        leaves, spec = pytree.tree_flatten((args, {name: kwargs[name] for name in names}))
        if spec != expected:
            raise ValueError(
                f"Trying to flatten user inputs with exported input tree spec: \n{expected}\nbut actually got inputs with tree spec of: \n{spec}.\n"
                "Please check that the inputs have the same number and type of args and kwargs as the ones you used when tracing."
            )
        return leaves

    def _checked(self, args: tuple, kwargs: dict[str, Any]) -> None:
        """Raise PyTorch's error for arguments that do not fit; nothing for those that differ in what PyTorch does not look at."""
        leaves = self._flat(args, kwargs)
        guards = self._modules.get("_guards_fn")
        if guards is not None:
            guards(*leaves)


@functools.cache
def short_road(overload: OpOverload) -> tuple[str, Any]:
    """How source calls an overload's operator: `("function", f)`, `("method", name)`, or the overload's own function."""
    packet, schema = overload._overloadpacket, overload._schema
    own = ("function", overload._function)
    if packet._namespace != "aten" or any(a.is_out for a in schema.arguments):
        return own
    member = "to" if overload is aten.to.dtype else member_of(overload)
    if member is not None:
        return "method", member
    names = [a.name for a in schema.arguments]
    for exactly in (True, False):  # as the overload's own function is found
        for op in packet._operators:
            if not _takes(op, schema, exactly):
                continue
            if [p.name for p in op.params] != names:
                return own
            return _road(packet, op, schema) or own
    return own


def _road(packet: Any, op: Any, schema: Any) -> tuple[str, Any] | None:
    """The function or the method for an operator that has the overload's parameters in their order."""
    alone = not any(
        other is not op and "method" in other.variants and _takes(other, schema, exactly=False)
        for other in packet._operators
    )
    if packet._inplace or op.is_inplace:
        return ("method", packet._name) if alone and callable(getattr(Tensor, packet._name, None)) else None
    if "function" in op.variants and op.name == packet._name:
        for space in _SPACES:
            name = _functions.NAMESPACES[space].get(op.name.removeprefix(f"{space}_"))
            if name is not None:
                return "function", getattr(_functions, name)
    if "method" in op.variants and alone and callable(getattr(Tensor, op.name, None)):
        return "method", op.name
    return None


class ProgramCode(CodeGen):
    """Writes `forward` of an exported program."""

    def __init__(self, in_spec: Any, out_spec: Any, names: list[str], guards: list[Guard]) -> None:
        self._in_spec, self._out_spec = in_spec, out_spec
        self._names, self._guards = names, guards
        self.traces: dict[int, tuple[str, dict[str, Any]]] = {}  # by the line of the source: where its node is from

    def generate(self, graph: Graph, root_module: str) -> PythonCode:
        """The source, see Note [The short road]."""
        refer = _References(graph)
        count = self._in_spec.child(0).num_children
        flat = all(one.is_leaf() for half in self._in_spec.children() for one in half.children())
        leaves = [node.name for node in graph.nodes if node.op == "placeholder"]
        positional, named = (leaves if flat else self._names)[:count], self._names[count:]
        nothing = refer(NOTHING, "_nothing")
        parameters = ["self", *(f"{name}={nothing}" for name in positional), *(["/"] if count else []), "*_rest"]
        parameters += [f"{name}={nothing}" for name in named] + ["**_named"]
        args = f"({''.join(f'{name}, ' for name in positional)}*_rest,)"
        kwargs = "{" + "".join(f"{name!r}: {name}, " for name in named) + "**_named}"
        lines = []
        if not flat:
            taken = "".join(f"{name}, " for name in leaves)
            lines.append(f"{taken}{'= ' if taken else ''}self._flat({args}, {kwargs})")
        else:
            lines += [f"{leaf} = {name}" for leaf, name in zip(leaves[count:], named) if leaf != name]
        nodes = list(graph.nodes)
        reads = [node for node in nodes if node.op == "get_attr" and node.users]
        guarded = any(node.op == "call_module" and node.target == "_guards_fn" for node in nodes)
        wrong = ["_rest", "_named"] if flat else []
        if flat:
            seen = {guard.place for guard in self._guards} if guarded else set()
            wrong += [f"{name} is {nothing}" for place, name in enumerate(leaves) if place not in seen]
        if guarded:
            wrong += [guard.source(leaves) for guard in self._guards if guard.source is not None]
        if wrong:
            refused = f"self._checked({args}, {kwargs})" if flat else f"self._guards_fn({', '.join(leaves)})"
            lines += ["try:", f"    if {' or '.join(wrong)}:", f"        {refused}"]
            lines += ["except (AttributeError, IndexError, TypeError):", f"    {refused}", "    raise"]
        if reads:  # a parametrization, or another module in the place of one, is found by attributes
            lines.append("try:")
            lines += [f"    {node.name} = {_entry(node.target, node.meta['kind'])}" for node in reads]
            lines.append("except KeyError:")
            lines += [f"    {node.name} = {_attribute(root_module, node.target)}" for node in reads]
        for node in nodes:
            if node.op in ("placeholder", "get_attr") or (node.op == "call_module" and node.target == "_guards_fn"):
                continue
            if node.op == "output":
                lines.append(f"return {self._result(node.args[0], refer)}")
            elif node.op == "call_function" and not node.users and self._is_idle(node):
                continue
            else:
                lines.append(f"{node.name} = {self._call(node, root_module, refer)}")
                origin = node.meta.get("stack_trace", ""), node.meta.get("nn_module_stack", {})
                self.traces[len(lines) + 1] = origin
        body = "\n    ".join(lines)
        return PythonCode(f"def forward({', '.join(parameters)}):\n    {body}\n", refer.table)

    def _is_idle(self, node: Node) -> bool:
        return getattr(node.target, "__name__", "") == "getitem"

    def _call(self, node: Node, root: str, refer: Any) -> str:
        target = node.target
        if node.op != "call_function" or not isinstance(target, OpOverload):
            return self._expression(node, root, refer)
        given = [_literal(arg, refer) for arg in node.args]
        named = [f"{key} = {_literal(arg, refer)}" for key, arg in node.kwargs.items()]
        kind, found = short_road(target)
        if kind == "method" and isinstance(node.args[0], Node):
            return f"{given[0]}.{found}({', '.join(given[1:] + named)})"
        if kind == "method":
            found = target._function
        return f"{refer(found, target.__name__.replace('.', '_') + '_')}({', '.join(given + named)})"

    def _result(self, values: Any, refer: Any) -> str:
        texts = [_literal(value, refer) for value in values]
        source = _built(self._out_spec, iter(texts))
        if source is not None:
            return source
        return f"{refer(pytree.tree_unflatten, 'tree_unflatten')}([{', '.join(texts)}], self._out_spec)"


def _entry(target: str, kind: str) -> str:
    """The source that reads an entry of the tables of modules."""
    *parents, last = target.split(".")
    return "self" + "".join(f"._modules[{part!r}]" for part in parents) + f".{kind}[{last!r}]"


def _built(spec: Any, texts: Any) -> str | None:
    """The source of an object of tuples, lists and dicts; None where it has others."""
    if spec.is_leaf():
        return next(texts)
    children = [_built(child, texts) for child in spec.children()]
    if None in children:
        return None
    if spec.type is tuple:
        return f"({''.join(f'{child}, ' for child in children)})"
    if spec.type is list:
        return f"[{', '.join(children)}]"  # type: ignore[arg-type]
    if spec.type is dict and all(isinstance(key, str | int) for key in spec.context):
        return "{" + ", ".join(f"{key!r}: {child}" for key, child in zip(spec.context, children)) + "}"
    return None


def as_module(program: Any, check_guards: bool) -> ExportedModule:
    """The module of a program."""
    signature = program.graph_signature
    graph, nodes = Graph(), {}
    root: dict[str, Any] = {}
    for node in program.graph.nodes:
        if node.op == "placeholder":
            spec = next(one for one in signature.input_specs if one.arg.name == node.name)
            if spec.kind is InputKind.USER_INPUT:
                made = placeholder(graph, node.name)
            else:
                target = str(spec.target)
                root[target] = program.constants.get(target, program.state_dict.get(target))
                made = graph.create_node("get_attr", target, name=target.replace(".", "_"))
            made.meta = dict(node.meta)
            made.meta["kind"] = "_parameters" if isinstance(root.get(made.target), nn.Parameter) else "_buffers"
            nodes[node] = made
            continue
        if node.op == "get_attr":
            root[node.target] = getattr(program.graph_module, node.target)
            nodes[node] = graph.node_copy(node)
            nodes[node].meta["kind"] = "_modules"
            continue
        if node.op == "output":
            _write_back(graph, node, signature, nodes, inputs_of(signature, nodes))
            continue
        nodes[node] = graph.node_copy(node, lambda one: nodes[one])
    guards = program._guards
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    if check_guards:
        first = next(node for node in graph.nodes if node.op not in ("placeholder", "get_attr"))
        with graph.inserting_before(first):
            graph.call_module("_guards_fn", tuple(inputs))
        root["_guards_fn"] = GuardsFn(guards)
    spec = program.call_spec
    entry = program.module_call_graph[0].signature
    graph._codegen = ProgramCode(spec.in_spec, spec.out_spec, list(entry.forward_arg_names or []), guards)
    _unused_last(graph)
    made = ExportedModule.__new__(ExportedModule)
    nn.Module.__init__(made)
    made.__dict__["_in_spec"], made.__dict__["_out_spec"] = spec.in_spec, spec.out_spec
    _fill(made, root, program)
    made.__dict__["meta"] = {}
    type(made).__name__ = "GraphModule"
    made.graph = graph
    return made


def inputs_of(signature: Any, nodes: dict[Node, Node]) -> dict[str, Node]:
    """The nodes of what outputs may be written to: buffers by their names, arguments by those of their nodes."""
    by_name = {node.name: made for node, made in nodes.items() if node.op == "placeholder"}
    return {
        spec.arg.name if spec.kind is InputKind.USER_INPUT else str(spec.target): by_name[spec.arg.name]
        for spec in signature.input_specs
    }


def _write_back(graph: Graph, output: Node, signature: Any, nodes: dict[Node, Node], targets: dict[str, Node]) -> None:
    """Write the outputs that are no results to what they are of, and give the others."""
    results = []
    for value, spec in zip(output.args[0], signature.output_specs):
        made = nodes[value] if isinstance(value, Node) else value
        if spec.kind is OutputKind.USER_OUTPUT:
            results.append(made)
        else:
            graph.call_function(aten.copy_.default, (targets[spec.target], made))
    graph.output(tuple(results))


def _unused_last(graph: Graph) -> None:
    """Take out what reads parameters that nobody uses."""
    for node in list(graph.nodes):
        if node.op == "get_attr" and not node.users:
            graph.erase_node(node)


def _fill(module: nn.Module, root: dict[str, Any], program: Any) -> None:
    """Give the module its parameters, buffers, constants and graphs, by their names."""
    signature = program.graph_signature
    others = {*signature.non_persistent_buffers, *signature.lifted_tensor_constants}
    for target, value in root.items():
        owner: Any = module
        *parents, last = target.split(".")
        for part in parents:
            if part not in owner._modules:
                owner.add_module(part, nn.Module())
            owner = owner._modules[part]
        if isinstance(value, nn.Parameter):
            owner.register_parameter(last, value)
        elif isinstance(value, Tensor):
            owner.register_buffer(last, value, persistent=target not in others)
        else:
            owner.add_module(last, value)
