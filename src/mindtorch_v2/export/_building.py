"""The graph of a run, and its signature."""

from __future__ import annotations

import keyword
import operator
import re
from collections.abc import Collection
from typing import Any

from .. import empty, empty_strided, nn, ops
from .._state import TLS
from .._tensor import Tensor
from ..fx.graph import Graph
from ..fx.node import Node
from ..utils import _pytree as pytree
from ._dynamic import Symbol
from ._recording import Described, Run, Step, Value
from ._regions import Region, regions
from ._sizes import Size, symbol
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)

_KINDS = {
    "parameter": ("p", InputKind.PARAMETER),
    "buffer": ("b", InputKind.BUFFER),
    "constant": ("c", InputKind.CONSTANT_TENSOR),
}


def persistent(mod: nn.Module, name: str) -> bool:
    """Whether a buffer is in the state dict."""
    owner, _, last = name.rpartition(".")
    return last not in mod.get_submodule(owner)._non_persistent_buffers_set


def named_leaves(in_spec: Any, names: list[str], leaves: list[Any]) -> list[str]:
    """The names of the leaves of `(args, kwargs)`: of the argument, and of the keys on the way. names: of the positional arguments."""
    given = []
    for path, _ in pytree.tree_flatten_with_path(pytree.tree_unflatten(leaves, in_spec))[0]:
        keys = [str(getattr(key, "idx", getattr(key, "key", getattr(key, "name", "")))) for key in path]
        keys = [names[int(keys[1])], *keys[2:]] if isinstance(path[1], pytree.SequenceKey) else keys[1:]
        given.append(_identifier("_".join(keys)))
    return given


def _identifier(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9]", "_", name).lower()


def placeholder(graph: Graph, name: str) -> Node:
    """A placeholder whose node has the name of its input, even where that is one of Python's functions."""
    node = graph.create_node("placeholder", name, name=name)
    if not keyword.iskeyword(name):
        graph._names.used.add(name)
        node.name = name
    node.target = node.name
    return node


class Builder:
    """Makes the graph of a run. names: of the leaves, which their nodes have where these are free. constants: buffers that hold constants of a program."""

    def __init__(
        self,
        run: Run,
        mod: nn.Module,
        leaves: list[Any],
        names: list[str],
        symbols: list[Symbol],
        constants: Collection[str] = (),
    ) -> None:
        self._run = run
        self._mod = mod
        self._leaves = leaves
        self._names = names
        self._symbols = symbols
        self._constants = constants
        self._nodes: dict[Value, Node] = {}
        self._sizes: dict[str, Node] = {}
        self.graph = Graph()
        self.attributes: dict[str, Any] = {}  # graphs below this one

    def build(self) -> ExportGraphSignature:
        """Fill the graph."""
        inputs = self._inputs()
        for one in self._symbols:
            if self._is_used(one.name):
                self._sizes[one.name] = self._symbol(one)
        for one in regions(self._run):
            if isinstance(one, Region):
                self._region(one)
            else:
                self._add(*one)
        results = [self._argument(one, {}) for one in self._run.outputs]
        written = [(self._nodes[root], root, self._nodes[now]) for root, now in self._run.written]
        self.graph.output((*(now for _, _, now in written), *results))
        outputs = [_mutation(node, root, now) for node, root, now in written]
        for one in results:
            if isinstance(one, Node):
                kind: Any = SymIntArgument if one in self._sizes.values() else TensorArgument
                outputs.append(OutputSpec(OutputKind.USER_OUTPUT, kind(one.name), None))
            else:
                outputs.append(OutputSpec(OutputKind.USER_OUTPUT, ConstantArgument("", one), None))
        return ExportGraphSignature(inputs, outputs)

    def _symbol(self, one: Symbol) -> Node:
        """The value of a symbol, of the size that says it most plainly."""
        (place, dim), (scale, plus) = min(one.places.items(), key=lambda item: item[1] != (1, 0))
        node = self._call(ops.ops.aten.sym_size.int, (self._nodes[Value("input", place)], dim), "sym_size_int_1")
        node.meta["val"] = Size(((scale, (one.name,)),), plus)
        if plus:
            node = self._call(operator.sub, (node, plus), "sub")
            node.meta["val"] = Size(((scale, (one.name,)),))
        if scale != 1:
            node = self._call(operator.floordiv, (node, scale), "floordiv")
            node.meta["val"] = symbol(one.name)
        return node

    def _is_used(self, name: str) -> bool:
        found = pytree.tree_leaves(
            ([(step.args, step.kwargs) for step in self._run.steps], self._run.outputs),
            is_leaf=lambda one: isinstance(one, (Size, Value)),
        )
        return any(isinstance(one, Size) and any(name in names for _, names in one.terms) for one in found)

    def _inputs(self) -> list[InputSpec]:
        specs = []
        own = [("parameter", name) for name, _ in self._mod.named_parameters(remove_duplicate=False)]
        own += [("buffer", name) for name, _ in self._mod.named_buffers(remove_duplicate=False)]
        own += [("constant", name) for name in self._run.constants]
        aliases = self._aliases()
        for kind, name in own:
            prefix, what = _KINDS["constant" if name in self._constants else kind]
            node = self._placeholder(f"{prefix}_{_identifier(name.removeprefix('self_'))}")
            value = Value(kind, name)
            described = self._run.described[aliases.get(value, value)]
            node.meta["val"] = _meta(described)
            node.meta["sizes"] = described.sizes
            self._nodes[value] = node
            kept = persistent(self._mod, name) if what is InputKind.BUFFER else None
            specs.append(InputSpec(what, TensorArgument(node.name), name, kept))
        for place, (name, leaf) in enumerate(zip(self._names, self._leaves)):
            node = self._placeholder(name)
            value = Value("input", place)
            self._nodes[value] = node
            if isinstance(leaf, Tensor):
                node.meta["val"] = _meta(self._run.described[value])
                node.meta["sizes"] = self._run.described[value].sizes
                specs.append(InputSpec(InputKind.USER_INPUT, TensorArgument(node.name), None))
            else:
                node.meta["val"] = leaf
                specs.append(InputSpec(InputKind.USER_INPUT, ConstantArgument(node.name, leaf), None))
        return specs

    def _aliases(self) -> dict[Value, Value]:
        """For names of tensors that have several, the last one, under which the run knows it."""
        found: dict[int, Value] = {}
        pairs = [
            *((Value("parameter", n), p) for n, p in self._mod.named_parameters(remove_duplicate=False)),
            *((Value("buffer", n), b) for n, b in self._mod.named_buffers(remove_duplicate=False)),
        ]
        for value, tensor in pairs:
            found[id(tensor)] = value
        return {value: found[id(tensor)] for value, tensor in pairs}

    def _placeholder(self, wish: str) -> Node:
        used = self.graph._names.used
        name, number = wish, 0
        while name in used:
            number += 1
            name = f"{wish}_{number}"
        return placeholder(self.graph, name)

    # steps

    def _argument(self, value: Any, origin: dict[str, Any]) -> Any:
        if isinstance(value, Value):
            return self._nodes[value]
        if isinstance(value, Size):
            return self._size(value, origin)
        if isinstance(value, (list, tuple)):
            return [self._argument(one, origin) for one in value]
        return value

    def _size(self, size: Size, origin: dict[str, Any]) -> Node:
        text = str(size)
        if text in self._sizes:
            return self._sizes[text]

        def call(function: Any, first: Any, second: Any) -> Node:
            made = self._call(function, (first, second), function.__name__)
            whole = self._sizes_of(function, first, second)
            made.meta["val"] = whole
            made.meta.update(origin)
            return self._sizes.setdefault(f"{function.__name__} {first} {second}", made)

        node = size.made_of(lambda name: self._sizes[name], call)
        node.meta["val"] = size
        self._sizes[text] = node
        return node

    def _sizes_of(self, function: Any, first: Any, second: Any) -> str:
        shown = [str(one.meta["val"]) if isinstance(one, Node) else str(one) for one in (first, second)]
        return f" {'*' if function.__name__ == 'mul' else '+' if function.__name__ == 'add' else '//'} ".join(shown)

    def _call(self, target: Any, args: tuple, name: str) -> Node:
        return self.graph.create_node("call_function", target, args, {}, name)

    def _add(self, number: int, step: Step) -> None:
        origin = _origin(step)
        args = tuple(self._argument(one, origin) for one in step.args)
        kwargs = {name: self._argument(one, origin) for name, one in step.kwargs.items()}
        node = self.graph.create_node("call_function", step.target, args, kwargs, _name(step.target))
        self._described(node, step, Value("step", number))
        if step.count is None:
            self._nodes[Value("step", number)] = node
            return
        values = [Value("step", number, place) for place in range(step.count)]
        node.meta["val"] = tuple(
            _meta(self._run.described[value]) if value in self._run.described else None for value in values
        )
        for place, value in enumerate(values):
            if value in self._run.described:
                self._nodes[value] = self._item(node, place, self._run.described[value])
                self._nodes[value].meta.update(_origin(step))

    def _item(self, node: Node, place: int, described: Described) -> Node:
        made = self._call(operator.getitem, (node, place), "getitem")
        made.meta["val"] = _meta(described)
        made.meta["sizes"] = described.sizes
        return made

    def _described(self, node: Node, step: Step, value: Value) -> None:
        node.meta.update(_origin(step))
        if value in self._run.described:
            node.meta["val"] = _meta(self._run.described[value])
            node.meta["sizes"] = self._run.described[value].sizes

    def _region(self, region: Region) -> None:
        """A graph below this one for steps that record gradients where the others do not, or the other way round."""
        inner = Builder(self._run, self._mod, self._leaves, self._names, [])
        outer = []
        for value in region.inputs:
            node = self._nodes[value]
            own = inner._placeholder(node.name)
            own.meta = dict(node.meta)
            inner._nodes[value] = own
            outer.append(node)
        sizes = {text: node for text, node in self._sizes.items() if text in region.sizes}
        for text, node in sizes.items():
            own = inner._placeholder(node.name)
            own.meta = dict(node.meta)
            inner._sizes[text] = own
            outer.append(node)
        for number, step in region.steps:
            inner._add(number, step)
        inner.graph.output(tuple(inner._nodes[value] for value in region.outputs))
        name = f"submod_{len(self.attributes) + 1}"
        self.attributes[name] = inner.graph
        submodule = self.graph.create_node("get_attr", name, name=name)
        call = self._call(region.operator, (region.grad, submodule, *outer), region.operator.__name__)
        for place, value in enumerate(region.outputs):
            self._nodes[value] = self._item(call, place, self._run.described[value])


def _mutation(node: Node, root: Value, now: Node) -> OutputSpec:
    """An output that is written to a buffer or an argument."""
    if root.kind == "buffer":
        return OutputSpec(OutputKind.BUFFER_MUTATION, TensorArgument(now.name), root.key)
    return OutputSpec(OutputKind.USER_INPUT_MUTATION, TensorArgument(now.name), node.name)


def _name(target: Any) -> str:
    """What the node of an operator is called: `numpy_t`."""
    return re.sub(r"(?<!^)(?<!_)(?=[A-Z])", "_", target._opname).lower()


def _origin(step: Step) -> dict[str, Any]:
    return {"stack_trace": step.trace, "nn_module_stack": step.modules} if step.trace else {}


def _meta(described: Described) -> Tensor:
    """A tensor of the meta device of the geometry."""
    grad, TLS.grad_enabled = TLS.grad_enabled, False
    try:
        if len(described.stride) != len(described.shape):  # of a sparse tensor
            return empty(described.shape, dtype=described.dtype, device="meta")
        return empty_strided(described.shape, described.stride, dtype=described.dtype, device="meta")
    finally:
        TLS.grad_enabled = grad
