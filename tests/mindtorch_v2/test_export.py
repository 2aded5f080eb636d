"""`torch.export`: graphs, signatures, guards and refusals as PyTorch 2.13 has them, and programs that give what the modules give."""

from __future__ import annotations

import copy
import operator
import textwrap
from collections import namedtuple

import pytest
from _exported import Function

import mindtorch_v2 as torch
from mindtorch_v2 import export as exporting, nn
from mindtorch_v2.export import export
from mindtorch_v2.nn import functional as F
from mindtorch_v2.utils import _pytree as pytree

aten = torch.ops.ops.aten


def calls(program):
    """The operators of a program, in their order."""
    return [
        str(node.target)
        for node in program.graph.nodes
        if node.op == "call_function" and node.target is not operator.getitem
    ]


def code(program):
    """What a program prints, without the lines that say where the module's source is."""
    return [line for line in str(program).splitlines() if line.strip() and "# File" not in line]


def expected(text):
    return [line for line in textwrap.dedent(text).splitlines() if line.strip()]


def run_alike(module, args, kwargs=None, fresh=None, **options):
    """The program of a module, after a look at whether it does what the module does: results, their grad modes, and what becomes of buffers."""
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    other = copy.deepcopy(module)
    program = export(module, args, kwargs, **options)
    for name, tensor in module.state_dict().items():
        assert torch.equal(tensor, before[name]), f"the export has changed {name}"
    made = program.module()
    for _ in range(2):
        given, named = (fresh or args, kwargs or {})
        given, named = pytree.tree_map(
            lambda one: torch.randn_like(one) if isinstance(one, torch.Tensor) and one.is_floating_point() else one,
            (given, named),
        )
        torch.manual_seed(3)
        wanted, spec = pytree.tree_flatten(other(*copy.deepcopy(given), **copy.deepcopy(named)))
        torch.manual_seed(3)
        found, found_spec = pytree.tree_flatten(made(*copy.deepcopy(given), **copy.deepcopy(named)))
        assert spec == found_spec
        for a, b in zip(wanted, found, strict=True):
            if isinstance(a, torch.Tensor):
                torch.testing.assert_close(b, a, rtol=0, atol=0, equal_nan=True)
                assert a.requires_grad == b.requires_grad
            else:
                assert a == b
    for name, tensor in other.state_dict().items():
        torch.testing.assert_close(made.state_dict()[name], tensor, rtol=0, atol=0)
    return program


# ------------------------------------------------------------------------------------------------ graphs


def test_a_program_prints_as_in_pytorch():
    program = export(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8)).eval(), (torch.randn(4, 16),))
    assert code(program) == expected("""
        ExportedProgram:
            class GraphModule(torch.nn.Module):
                def forward(self, p_0_weight: "f32[32, 16]", p_0_bias: "f32[32]", p_2_weight: "f32[8, 32]", p_2_bias: "f32[8]", input: "f32[4, 16]"):
                    input_1 = input
                    linear: "f32[4, 32]" = torch.ops.aten.linear.default(input_1, p_0_weight, p_0_bias);  input_1 = p_0_weight = p_0_bias = None
                    relu: "f32[4, 32]" = torch.ops.aten.relu.default(linear);  linear = None
                    linear_1: "f32[4, 8]" = torch.ops.aten.linear.default(relu, p_2_weight, p_2_bias);  relu = p_2_weight = p_2_bias = None
                    return (linear_1,)
        Graph signature:\x20
            # inputs
            p_0_weight: PARAMETER target='0.weight'
            p_0_bias: PARAMETER target='0.bias'
            p_2_weight: PARAMETER target='2.weight'
            p_2_bias: PARAMETER target='2.bias'
            input: USER_INPUT
            # outputs
            linear_1: USER_OUTPUT
        Range constraints: {}
    """)
    assert program.graph_module.print_readable(print_output=False).startswith(
        "class GraphModule(torch.nn.Module):\n    def forward(self, p_0_weight"
    )
    comments = [line.strip() for line in str(program).splitlines() if "# File" in line]
    assert len(comments) == 3
    assert comments[0].endswith("in forward, code: return F.linear(input, self.weight, self.bias)")


class Buffers(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("np", torch.ones(3), persistent=False)
        self.w = nn.Parameter(torch.ones(3))
        self.k = torch.arange(3.0)

    def forward(self, x):
        self.count.add_(1)
        self.np.mul_(2)
        return x * self.w + self.count + self.k + torch.tensor([1.0, 2.0, 3.0])


def test_buffers_and_constants_are_inputs():
    program = run_alike(Buffers(), (torch.randn(3),))
    assert [line.strip() for line in code(program)[2:11]] == [
        'def forward(self, p_w: "f32[3]", b_count: "f32[]", b_np: "f32[3]", c_k: "f32[3]", c_lifted_tensor_0: "f32[3]", x: "f32[3]"):',
        'add_: "f32[]" = torch.ops.aten.add_.Tensor(b_count, 1);  b_count = None',
        'mul_: "f32[3]" = torch.ops.aten.mul_.Tensor(b_np, 2);  b_np = mul_ = None',
        'mul: "f32[3]" = torch.ops.aten.mul.Tensor(x, p_w);  x = p_w = None',
        'add: "f32[3]" = torch.ops.aten.add.Tensor(mul, add_);  mul = add_ = None',
        'add_1: "f32[3]" = torch.ops.aten.add.Tensor(add, c_k);  add = c_k = None',
        'lift_fresh_copy: "f32[3]" = torch.ops.aten.lift_fresh_copy.default(c_lifted_tensor_0);  c_lifted_tensor_0 = None',
        'detach_: "f32[3]" = torch.ops.aten.detach_.default(lift_fresh_copy);  lift_fresh_copy = None',
        'add_2: "f32[3]" = torch.ops.aten.add.Tensor(add_1, detach_);  add_1 = detach_ = None',
    ]
    signature = program.graph_signature
    assert signature.buffers == ("count", "np")
    assert signature.non_persistent_buffers == ("np",)
    assert signature.lifted_tensor_constants == ("k", "lifted_tensor_0")
    assert signature.inputs_to_parameters == {"p_w": "w"}
    assert list(program.state_dict) == ["w", "count"]
    assert set(program.constants) == {"np", "k", "lifted_tensor_0"}
    assert [name for name, _ in program.named_buffers()] == ["count", "np"]


class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.register_buffer("count", torch.zeros(3))
        self.register_buffer("scale", torch.ones(3), persistent=False)
        self.constant = torch.ones(3)

    def forward(self, x, n):
        self.count.add_(1)
        return x * self.weight * self.scale + self.constant * n


def test_signatures_stay_when_operators_are_taken_apart():
    for program in (export(Counted(), (torch.ones(3), 2)), export(Counted(), (torch.ones(3), 2)).run_decompositions()):
        signature = program.graph_signature
        assert signature.parameters == ("weight",) and signature.buffers == ("count", "scale")
        assert signature.non_persistent_buffers == ("scale",)
        assert signature.lifted_tensor_constants == ("constant",)
        assert signature.inputs_to_parameters == {"p_weight": "weight"}
        assert signature.inputs_to_buffers == {"b_count": "count", "b_scale": "scale"}
        assert signature.inputs_to_lifted_tensor_constants == {"c_constant": "constant"}
        assert signature.user_inputs == ("x", 2)
        assert set(program.constants) == {"scale", "constant"} and list(program.state_dict) == ["weight", "count"]
        assert program.module()(torch.ones(3), 2).tolist() == [3, 3, 3]
    assert signature.buffers_to_mutate == {"add": "count"} and signature.user_outputs == ("add_1",)


class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.Self_x = nn.Parameter(torch.ones(1))
        self.self_y = nn.Linear(1, 1)
        self.a = nn.Linear(1, 1, False)
        self.a_weight = nn.Parameter(torch.ones(1))
        self._u = nn.Parameter(torch.ones(1))
        self.self_self_z = nn.Parameter(torch.ones(1))
        self.sub = nn.Identity()
        self.sub.Q = torch.ones(1)

    def forward(self, X, self_b, add, *rest, **kw):
        return X + self.self_y.weight + self.sub.Q + rest[0] + kw["Foo"]["a-b"]


def test_names():
    one = torch.ones(1)
    program = export(Named(), (one, one.clone(), one.clone(), one.clone()), {"Foo": {"a-b": one.clone()}})
    assert [node.name for node in program.graph.nodes] == [
        *("p_self_x", "p_a_weight", "p__u", "p_self_z", "p_y_weight", "p_y_bias", "p_a_weight_1", "c_sub_q"),
        *("x", "self_b", "add", "rest_0", "foo_a_b", "add_1", "add_2", "add_3", "add_4", "output"),
    ]
    assert program.module_call_graph[0].signature.forward_arg_names == ["X", "self_b", "add", "rest_0", "Foo"]
    assert program.module()(one, one, one, one, Foo={"a-b": one}).item() == pytest.approx(
        4 + program.state_dict["self_y.weight"].item()
    )


class Containers(nn.Module):
    def forward(self, d, t, *, scale):
        return {"a": d["x"] + t[0], "b": (d["y"] * scale).sum(), "c": [t[1][0].view(-1), 3, None]}


def test_containers_and_numbers():
    args = {"x": torch.randn(3), "y": torch.randn(2, 2)}, (torch.randn(3), [torch.randn(2, 2)])
    program = run_alike(Containers(), args, {"scale": torch.tensor(2.0)})
    assert program.graph_signature.user_inputs == ("d_x", "d_y", "t_0", "t_1_0", "scale")
    assert program.graph_signature.user_outputs == ("add", "sum_1", "view", 3, None)
    made = program.module()
    with pytest.raises(ValueError, match="Trying to flatten user inputs with exported input tree spec"):
        made({"x": args[0]["x"]}, args[1], scale=torch.tensor(2.0))
    with pytest.raises(ValueError, match=r"keyword mismatch: Got the following keywords \[\] but expected \['scale'\]"):
        made(*args)


def test_tied_weights_are_one():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.e = nn.Embedding(10, 4)
            self.l = nn.Linear(4, 10, bias=False)
            self.l.weight = self.e.weight

        def forward(self, x):
            return self.l(self.e(x))

    program = export(Tied(), (torch.tensor([[1, 2, 3]]),))
    assert program.graph_signature.parameters == ("e.weight", "l.weight")
    made = program.module()
    assert made.e.weight is made.l.weight is program.state_dict["e.weight"]
    assert calls(program) == ["aten.embedding.default", "aten.linear.default"]


class Block(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.down = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += self.down(x)
        return self.relu(y)


def setting(self, x):
    y = x.clone()
    y[x > 0] = 0
    y[:, 0] = 1.0
    y[1] += 2
    y *= 3
    return y


def without_gradients(self, x):
    with torch.no_grad():
        y = x * 2
        y.add_(1)
        with torch.enable_grad():
            z = y * 3
    return y + z + x, y


def decaying(self, x):
    with torch.no_grad():
        self.w.mul_(0.9)
    return x * self.w


def accumulating(self, x):
    total = torch.tensor([0.0, 0.0, 0.0])
    total += x
    zeros = torch.zeros(3)
    zeros.copy_(x)
    return total, zeros


def assigning(self, x):
    self.running = self.running + x
    return x + 1


def casting(self, x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = self.l(x)
        return y, y.softmax(-1)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]


def buffered(function):
    module = Function(function)
    module.register_buffer("running", torch.zeros(3))
    return module


MODULES = {
    "a residual block": (lambda: Block(4, 8, 2).eval(), lambda: (torch.randn(1, 4, 8, 8),)),
    "batch norm in training": (
        lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(True), nn.Dropout(0.5)),
        lambda: (torch.randn(2, 3, 8, 8),),
    ),
    "attention": (lambda: nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), lambda: (torch.randn(2, 5, 16),)),
    "an LSTM": (lambda: nn.LSTM(4, 6, 2, batch_first=True), lambda: (torch.randn(2, 5, 4),)),
    "a GRU": (lambda: nn.GRU(4, 6, bidirectional=True), lambda: (torch.randn(5, 2, 4),)),
    "weight norm": (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(3, 4)), lambda: (torch.randn(2, 3),)),
    "assignment to parts": (lambda: Function(setting), lambda: (torch.randn(3, 2),)),
    "parts without gradients": (lambda: Function(without_gradients), lambda: (torch.randn(3).requires_grad_(),)),
    "a parameter that is written to": (
        lambda: Function(decaying, w=nn.Parameter(torch.ones(3))),
        lambda: (torch.randn(3),),
    ),
    "a constant that is written to": (lambda: Function(accumulating), lambda: (torch.randn(3),)),
    "a buffer that is assigned": (lambda: buffered(assigning), lambda: (torch.randn(3),)),
    "autocast": (lambda: Function(casting, l=nn.Linear(3, 3)), lambda: (torch.randn(2, 3),)),
    "an argument that is written to": (lambda: Function(lambda self, x: (x.add_(1), x * 2)), lambda: (torch.randn(3),)),
    "a function with a derivative of its own": (
        lambda: Function(lambda self, x: Square.apply(x) + 1),
        lambda: (torch.randn(3),),
    ),
    "a batched function": (
        lambda: Function(lambda self, x: torch.func.vmap(lambda row: (row * 2).sum())(x)),
        lambda: (torch.randn(3, 2),),
    ),
    "memory that is shared past operators": (lambda: Function(lambda self, x: x.data * 2), lambda: (torch.randn(3),)),
    "losses": (
        lambda: Function(lambda self, x, y: (F.mse_loss(x, y), F.cross_entropy(x, torch.tensor([0, 1, 2])))),
        lambda: (torch.randn(3, 4), torch.randn(3, 4)),
    ),
}


@pytest.mark.parametrize("name", MODULES)
def test_programs_do_what_modules_do(name):
    torch.manual_seed(0)
    module, arguments = MODULES[name]
    run_alike(module(), arguments())


@pytest.mark.parametrize(
    ("name", "operators"),
    [
        (
            "a residual block",
            "conv2d.default batch_norm.default relu_.default conv2d.default batch_norm.default conv2d.default batch_norm.default add_.Tensor relu_.default",
        ),
        ("batch norm in training", "conv2d.default add_.Tensor batch_norm.default relu_.default dropout.default"),
        ("an LSTM", "zeros.default zeros.default lstm.input"),
        ("a GRU", "zeros.default gru.input"),
        ("a function with a derivative of its own", "mul.Tensor add.Tensor"),
        ("a buffer that is assigned", "add.Tensor add.Tensor copy_.default"),
        (
            "losses",
            "broadcast_tensors.default mse_loss.default lift_fresh_copy.default detach_.default cross_entropy_loss.default",
        ),
    ],
)
def test_operators_are_those_of_pytorchs_graphs(name, operators):
    module, arguments = MODULES[name]
    assert calls(export(module(), arguments())) == [f"aten.{one}" for one in operators.split()]


def test_a_part_without_gradients_is_a_graph_of_its_own():
    program = export(Function(without_gradients), (torch.randn(3),))
    call = next(node for node in program.graph.nodes if node.op == "call_function")
    assert call.target.__name__ == "wrap_with_set_grad_enabled"
    assert call.args[0] is False
    inner = program.graph_module.submod_1
    assert [str(node.target) for node in inner.graph.nodes if node.op == "call_function"] == [
        "aten.mul.Tensor",
        "aten.add_.Tensor",
    ]


def test_results_by_class():
    Pair = namedtuple("Pair", "first second")
    program = run_alike(Function(lambda self, x: Pair(x + 1, [x])), (torch.randn(2),))
    assert type(program.module()(torch.ones(2))).__name__ == "Pair"


# ------------------------------------------------------------------------------------------------ the module


def test_guards():
    class Options(nn.Module):
        def forward(self, x, flag=True, n=2, t="s", f=1.5):
            return x * n

    made = export(Options(), (torch.ones(2), True, 2, "s"), {"f": 1.5}).module()
    assert made(torch.ones(2), True, 2, "s", f=1.5).tolist() == [2, 2]
    for given, text in (
        ((torch.ones(3), True, 2, "s"), r"x.size\(\)\[0\] == 2"),
        ((torch.ones(2), False, 2, "s"), "flag == True"),
        ((torch.ones(2), True, 3, "s"), "n == 2"),
        ((torch.ones(2), True, 2, "t"), "t == 's'"),
    ):
        with pytest.raises(AssertionError, match=f"Guard failed: {text}"):
            made(*given, f=1.5)
    with pytest.raises(AttributeError, match="'int' object has no attribute 'size'"):
        made(3, True, 2, "s", f=1.5)
    with pytest.raises(ValueError, match="Trying to flatten user inputs"):
        made(torch.ones(2), f=1.5)
    with pytest.raises(ValueError, match="keyword mismatch"):
        made(torch.ones(2), True, 2, "s", f=1.5, g=1)


def test_modules_share_parameters_and_keep_their_mode():
    model = nn.Linear(2, 2)
    program = export(model, (torch.ones(1, 2),))
    made = program.module()
    assert made.weight is model.weight
    assert list(made.state_dict()) == ["weight", "bias"]
    made(torch.ones(1, 2)).sum().backward()
    assert model.weight.grad.tolist() == [[1, 1], [1, 1]]
    made.weight = nn.Parameter(torch.zeros(2, 2))
    assert made(torch.ones(1, 2)).tolist() == [model.bias.tolist()]
    other = copy.deepcopy(made)
    assert other(torch.ones(1, 2)).tolist() == [model.bias.tolist()]
    assert other.bias is not made.bias
    for change in (made.train, made.eval):
        with pytest.raises(NotImplementedError, match="is not supported yet"):
            change()
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
        program(torch.ones(1, 2))


@pytest.mark.parametrize(
    "call",
    [
        lambda self, x: x.view(6) > 0.5,
        lambda self, x: (x.view(torch.int32), x.to(torch.float64), x.clamp(0, 1), x.clamp_min(0)),
        lambda self, x: (1 - x, x**2, x % 2, x.lerp(x + 1, 0.3), x.fill_(3)),
        lambda self, x: (torch.linalg.vector_norm(x), torch.linalg.qr(x)[1], torch.fft.rfft(x).abs(), x[0, 1:]),
    ],
)
def test_the_source_calls_functions_and_methods(call):
    program = run_alike(Function(call), (torch.randn(2, 3),))
    functions = program.module().forward.__func__.__globals__
    slow = [name for name, value in functions.items() if getattr(value, "__qualname__", "").endswith("<locals>.caller")]
    assert slow == [], "overloads that bind their arguments in Python"


def test_copies_of_programs():
    program = copy.deepcopy(export(nn.Linear(3, 2), (torch.ones(3),)))
    assert [node.name for node in program.graph.nodes] == ["p_weight", "p_bias", "input", "linear", "output"]
    assert program.module()(torch.ones(3)).shape == (2,)


def test_graphs_can_be_changed():
    made = export(Function(lambda self, x: torch.relu(x) + 1), (torch.ones(2),)).module()
    node = next(node for node in made.graph.nodes if node.target is aten.relu.default)
    node.target = aten.neg.default
    made.recompile()
    assert made(torch.ones(2)).tolist() == [0, 0]


def test_parametrizations_of_the_module_are_seen():
    made = export(nn.Linear(2, 2, bias=False), (torch.ones(1, 2),)).module()

    class Zero(nn.Module):
        def forward(self, weight):
            return weight * 0

    nn.utils.parametrize.register_parametrization(made, "weight", Zero())
    assert made(torch.ones(1, 2)).tolist() == [[0, 0]]


# ------------------------------------------------------------------------------------------------ composites


def test_composites_taken_apart():
    program = export(nn.Sequential(nn.BatchNorm1d(4), nn.ReLU(inplace=True)), (torch.randn(3, 4),))
    assert calls(program) == ["aten.add_.Tensor", "aten.batch_norm.default", "aten.relu_.default"]
    assert program.dialect == "TRAINING"
    apart = program.run_decompositions()
    assert calls(apart) == ["aten.add.Tensor", "aten._native_batch_norm_legit_functional.default", "aten.relu.default"]
    assert apart.dialect == "ATEN"
    assert {
        node.meta["stack_trace"].splitlines()[1].strip() for node in apart.graph.nodes if node.name in ("add", "relu")
    } == {
        node.meta["stack_trace"].splitlines()[1].strip()
        for node in program.graph.nodes
        if node.name in ("add_", "relu_")
    }
    assert apart.graph_signature.input_specs == program.graph_signature.input_specs
    assert [str(one) for one in apart.graph_signature.output_specs] == [
        "getitem_3: BUFFER_MUTATION target='0.running_mean'",
        "getitem_4: BUFFER_MUTATION target='0.running_var'",
        "add: BUFFER_MUTATION target='0.num_batches_tracked'",
        "relu: USER_OUTPUT",
    ]
    assert [node.name for node in apart.graph.nodes][6:-1] == [
        *("add", "_native_batch_norm_legit_functional", "getitem", "getitem_3", "getitem_4", "relu"),
    ]
    for table in (exporting.default_decompositions(), {}):
        assert calls(program.run_decompositions(table)) == calls(apart)
    with pytest.raises(NotImplementedError, match="not by tables"):
        program.run_decompositions({aten.relu.default: torch.relu})


@pytest.mark.parametrize("name", MODULES)
def test_values_in_the_place_of_writes(name):
    torch.manual_seed(0)
    make, arguments = MODULES[name]
    module, args = make(), arguments()
    apart = export(module, args).run_decompositions()
    apart.validate()
    if name != "a parameter that is written to":  # which stays as it is
        assert apart.dialect == "ATEN"
        assert not any(one.endswith("_") for one in " ".join(calls(apart)).replace(".", " ").split())
    made, other = apart.module(), copy.deepcopy(module)
    for _ in range(2):
        ours, theirs = copy.deepcopy(args), copy.deepcopy(args)
        torch.manual_seed(3)
        wanted = other(*theirs)
        torch.manual_seed(3)
        found = made(*ours)
        for a, b in zip(pytree.tree_leaves((wanted, theirs)), pytree.tree_leaves((found, ours)), strict=True):
            torch.testing.assert_close(b, a, rtol=1e-6, atol=1e-6)
            assert a.requires_grad == b.requires_grad
    for name, tensor in other.state_dict().items():
        torch.testing.assert_close(made.state_dict()[name], tensor, rtol=1e-6, atol=1e-6)


def test_writes_to_parts_are_values_of_the_whole():
    def function(self, x, y):
        x.add_(1)
        x[0] = y
        column = x.view(2, 2)[:, 1]
        column.mul_(3)
        return x + 1, column

    program = export(Function(function), (torch.zeros(4), torch.tensor(5.0))).run_decompositions()
    assert program.dialect == "ATEN"
    assert list(program.graph_signature.user_inputs_to_mutate.values()) == ["x"]
    x = torch.tensor([1.0, 2.0, 3.0, 4.0])
    whole, column = program.module()(x, torch.tensor(7.0))
    assert x.tolist() == [7, 9, 4, 15]
    assert whole.tolist() == [8, 10, 5, 16]
    assert column.tolist() == [9, 15]


def test_composites_that_look_at_elements_stay():
    program = export(Function(lambda self, x: torch.linalg.inv(x)), (torch.eye(2) * 2,))
    made = program.run_decompositions().module()
    assert made(torch.eye(2) * 4).tolist() == [[0.25, 0], [0, 0.25]]
