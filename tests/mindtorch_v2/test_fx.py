"""Graphs of functions and modules: recording, running, changing, pickling. Listings as PyTorch 2.13 gives them."""

from __future__ import annotations

import copy
import math
import pickle

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import fx


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)
        self.seq = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(4, 2))
        self.p = torch.nn.Parameter(torch.ones(4))
        self.register_buffer("b", torch.ones(4) * 2)

    def forward(self, x, scale=2.0):
        y = self.lin(x + self.p) * scale
        y = torch.relu(y).clamp(min=0.1) - self.b
        z = torch.cat([y[:, :2], y[:, 2:]], dim=-1)
        return self.seq(z), {"k": z.mean(dim=1), "s": z.shape[0]}


@pytest.fixture
def traced():
    torch.manual_seed(0)
    model = Model()
    return model, fx.symbolic_trace(model), torch.randn(3, 4)


def same(a, b):
    return torch.equal(a[0], b[0]) and torch.equal(a[1]["k"], b[1]["k"]) and a[1]["s"] == b[1]["s"]


def test_nodes(traced):
    _, module, _ = traced
    module.graph.lint()
    listed = [(n.op, n.name, n.target if isinstance(n.target, str) else n.target.__name__) for n in module.graph.nodes]
    assert listed[:9] == [
        ("placeholder", "x", "x"),
        ("placeholder", "scale", "scale"),
        ("get_attr", "p", "p"),
        ("call_function", "add", "add"),
        ("call_module", "lin", "lin"),
        ("call_function", "mul", "mul"),
        ("call_function", "relu", "relu"),
        ("call_method", "clamp", "clamp"),
        ("get_attr", "b", "b"),
    ]
    assert [name for op, name, _ in listed if op == "call_module"] == ["lin", "seq_0", "seq_1"]
    lines = str(module.graph).splitlines()
    assert (
        lines[0] == "graph():" and lines[2].strip() == "%scale : [num_users=1] = placeholder[target=scale](default=2.0)"
    )
    assert (
        lines[8].strip() == "%clamp : [num_users=1] = call_method[target=clamp](args = (%relu,), kwargs = {min: 0.1})"
    )


def test_runs_like_the_module(traced):
    model, module, x = traced
    expected = model(x)
    assert same(module(x), expected) and same(module(x, scale=2.0), expected)
    assert same(fx.Interpreter(module).run(x), expected)
    assert same(fx.Transformer(module).transform()(x), expected)
    assert same(copy.deepcopy(module)(x), expected)
    assert same(pickle.loads(pickle.dumps(module))(x), expected)
    assert type(module).__name__ == "Model"
    assert [name for name, _ in module.named_parameters()] == [
        "p",
        "lin.weight",
        "lin.bias",
        "seq.1.weight",
        "seq.1.bias",
    ]


def test_gradients(traced):
    model, module, x = traced
    model(x)[0].sum().backward()
    assert module.lin.weight is model.lin.weight
    expected = model.lin.weight.grad.clone()
    model.zero_grad()
    module(x)[0].sum().backward()
    assert torch.equal(model.lin.weight.grad, expected)


def test_change(traced):
    _, module, x = traced
    for node in module.graph.find_nodes(op="call_function", target=torch.relu):
        with module.graph.inserting_after(node):
            replacement = module.graph.call_function(torch.sigmoid, node.args)
        node.replace_all_uses_with(replacement)
        module.graph.erase_node(node)
    module.recompile()
    module.graph.lint()
    assert "torch.sigmoid" in module.code and "torch.relu" not in module.code
    assert same(module(x), fx.Interpreter(module).run(x))


def test_dead_code():
    module = fx.symbolic_trace(lambda x: (x + 1, torch.relu(x))[0])
    assert module.graph.eliminate_dead_code()
    module.recompile()
    assert [node.name for node in module.graph.nodes] == ["x", "add", "output"]
    with pytest.raises(RuntimeError, match="Tried to erase Node x but it still had 1 users in the graph"):
        module.graph.erase_node(next(iter(module.graph.nodes)))


def test_what_cannot_be_recorded():
    with pytest.raises(ValueError, match="symbolically traced variables cannot be used as inputs to control flow"):
        fx.symbolic_trace(lambda x: x + 1 if x > 0 else x)
    with pytest.raises(ValueError, match="Proxy object cannot be iterated"):
        fx.symbolic_trace(lambda x: [a for a in x])
    with pytest.raises(RuntimeError, match="'len' is not supported in symbolic tracing by default"):
        fx.symbolic_trace(lambda x: len(x))


def test_tracing_leaves_nothing_behind(traced):
    before = vars(torch.nn.Module)["__call__"], vars(torch.nn.Module)["__getattr__"], math.sqrt
    with pytest.raises(ValueError):
        fx.symbolic_trace(lambda x: bool(x))
    assert (vars(torch.nn.Module)["__call__"], vars(torch.nn.Module)["__getattr__"], math.sqrt) == before
    assert not fx._symbolic_trace.is_fx_tracing()


def unpacked(x):
    a, b = x
    return a - b


def with_math(x):
    return math.sqrt(x) + abs(x) - 2 * x


def variable(x, *args, scale=2, **kwargs):
    return (x + args[0]) * scale


def specialised(x, y=3, flag=False):
    return x * y if flag else x


def test_functions():
    assert fx.symbolic_trace(unpacked)((5, 3)) == 2
    assert fx.symbolic_trace(with_math)(4.0) == -2.0
    assert fx.symbolic_trace(variable)(1, 2) == 6
    module = fx.symbolic_trace(specialised, concrete_args={"flag": True})
    assert [node.target for node in module.graph.nodes if node.op == "placeholder"] == ["x", "y", "flag_1"]
    assert module(2, 3, True) == 6
    with pytest.raises(AssertionError, match="flag has been specialized to have value True"):
        module(2, 3, False)


def test_tensor_constants():
    module = fx.symbolic_trace(lambda x: x + torch.ones(2))
    assert torch.equal(module(torch.zeros(2)), torch.ones(2)) and "_tensor_constant0" in module.code


def test_own_tracer():
    class Whole(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return isinstance(m, torch.nn.Sequential) or super().is_leaf_module(m, module_qualified_name)

    model = Model()
    graph = Whole().trace(model)
    assert [node.target for node in graph.nodes if node.op == "call_module"] == ["lin", "seq"]
    x = torch.randn(2, 4)
    assert same(fx.GraphModule(model, graph)(x), model(x))


def test_submodules(traced):
    _, module, _ = traced
    assert module.add_submodule("extra.inner", torch.nn.ReLU())
    module.delete_all_unused_submodules()
    assert not hasattr(module, "extra") and hasattr(module, "lin")
    with pytest.raises(RuntimeError, match="that are not provided in `root`"):
        fx.GraphModule({}, module.graph)


def test_points_of_insertion_last_without_with():
    graph = fx.Graph()
    first = graph.placeholder("a")
    graph.inserting_after(first)
    graph.call_function(torch.sin, (first,))
    graph.call_function(torch.cos, (first,))
    assert [node.name for node in graph.nodes] == ["a", "cos", "sin"]
    with graph.inserting_before(first):
        graph.placeholder("b")
    graph.call_function(torch.tan, (first,))
    assert [node.name for node in graph.nodes] == ["b", "a", "tan", "cos", "sin"]


def test_tracers_of_others_use_the_private_parts():
    import mindtorch_v2.fx._symbolic_trace as parts

    class Tracer(fx.Tracer):
        @parts.compatibility(is_backward_compatible=True)
        def trace(self, root, concrete_args=None):
            self.root, self.graph = root, fx.Graph(tracer_cls=type(self))
            self.submodule_paths = {module: name for name, module in root.named_modules()}
            self.tensor_attrs = {root.constant: "constant"}
            function, arguments = self.create_args_for_root(type(root).forward, True, concrete_args)
            assert isinstance(function, parts.FunctionType) and not isinstance(root, parts.ScriptObject)

            @parts.functools.wraps(parts._orig_module_call)
            def call(module, *args, **kwargs):
                return self.call_module(module, lambda *a: parts._orig_module_call(module, *a), args, kwargs)

            with parts._Patcher() as patcher:
                patcher.patch_method(torch.nn.Module, "__call__", call, deduplicate=False)
                parts._patch_wrapped_functions(patcher)
                parts._autowrap_check(patcher, function.__globals__, self._autowrap_function_ids)
                self.create_node("output", "output", (self.create_arg(function(*arguments)),), {})
            return self.graph

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = torch.nn.Linear(2, 2)
            self.constant = torch.ones(2)

        def forward(self, x):
            return self.lin(x) + self.constant

    model = Model()
    graph = Tracer().trace(model)
    assert [(node.op, str(node.target)) for node in graph.nodes][:3] == [
        ("placeholder", "x"),
        ("call_module", "lin"),
        ("get_attr", "constant"),
    ]
    assert torch.nn.Module.__call__ is parts._orig_module_call
    assert torch.equal(fx.GraphModule(model, graph)(torch.ones(2)), model(torch.ones(2)))
