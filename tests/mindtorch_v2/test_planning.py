"""Plans: costs per operator and module, live memory, known values, and that nothing of the program is touched."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2._generated.flops import FORMULAS
from mindtorch_v2._planning import costs, measure

F32 = 4


def flops(function, *args, **kwargs) -> int:
    return torch.plan(function, *args, **kwargs).flops


def meta(*shape: int, dtype=torch.float32):
    return torch.empty(shape, dtype=dtype, device="meta")


# FLOPs


@pytest.mark.parametrize(
    ("function", "shapes", "expected"),
    [
        (torch.mm, [(3, 4), (4, 5)], 2 * 3 * 4 * 5),
        (torch.bmm, [(2, 3, 4), (2, 4, 5)], 2 * 2 * 3 * 4 * 5),
        (torch.matmul, [(7, 3, 4), (4, 5)], 2 * 7 * 3 * 4 * 5),
        (torch.addmm, [(5,), (3, 4), (4, 5)], 2 * 3 * 4 * 5),
        (torch.mv, [(3, 4), (4,)], 2 * 3 * 4),
        (torch.dot, [(4,), (4,)], 8),
        (nn.functional.linear, [(2, 3, 4), (5, 4), (5,)], 2 * 2 * 3 * 4 * 5),
        (nn.functional.conv1d, [(2, 3, 10), (6, 3, 3)], 2 * 2 * 6 * 8 * 3 * 3),
        (nn.functional.conv2d, [(2, 3, 8, 8), (6, 3, 3, 3)], 2 * 2 * 6 * 6 * 6 * 3 * 9),
        (nn.functional.conv_transpose2d, [(2, 3, 8, 8), (3, 6, 3, 3)], 2 * 2 * 3 * 64 * 6 * 9),
        (nn.functional.scaled_dot_product_attention, [(2, 4, 7, 8), (2, 4, 9, 8), (2, 4, 9, 8)], 4 * 2 * 4 * 7 * 9 * 8),
        (torch.add, [(3, 4), (4,)], 12),
        (torch.exp, [(3, 4)], 12),
        (torch.sum, [(3, 4)], 12),
        (torch.t, [(3, 4)], 0),
        (torch.clone, [(3, 4)], 0),
        (torch.linalg.cholesky, [(2, 3, 3)], 2 * 27 // 3),
    ],
)  # fmt: skip
def test_flops(function, shapes, expected: int) -> None:
    assert flops(function, *(meta(*shape) for shape in shapes)) == expected


def test_a_grouped_convolution_meets_fewer_channels() -> None:
    whole = flops(lambda x, w: nn.functional.conv2d(x, w), meta(1, 8, 6, 6), meta(8, 8, 3, 3))
    grouped = flops(lambda x, w: nn.functional.conv2d(x, w, groups=4), meta(1, 8, 6, 6), meta(8, 2, 3, 3))
    assert grouped * 4 == whole


def test_every_formula_reads_what_it_is_given() -> None:
    """The lambdas take the result and the operator's arguments, by number: no name of a formula is free."""
    public = {name for name in vars(costs) if not name.startswith("_")}
    for name, formula in FORMULAS.items():
        free = set(formula.__code__.co_names) - public - {"shape", "min", "max", "len", "int"}
        assert not free, f"{name}: {free}"


def test_backward_costs_twice_the_products() -> None:
    model = nn.Sequential(nn.Linear(16, 32, bias=False), nn.Linear(32, 8, bias=False))
    plan = torch.plan(model, torch.zeros(4, 16), backward=True)
    assert plan.flops == 2 * 4 * (16 * 32 + 32 * 8)
    # Both weights' gradients and that of the hidden activation; the input wants none.
    products = [o for o in plan.operations if o.phase == "backward" and o.name in ("mm", "matmul")]
    assert sum(o.flops for o in products) == 2 * 4 * (16 * 32 + 2 * 32 * 8)


def test_an_operator_from_outside_has_no_formula() -> None:
    @torch.library.custom_op("planning::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @twice.register_fake
    def _(x):
        return torch.empty_like(x)

    plan = torch.plan(twice, torch.zeros(3))
    assert plan.outputs == [((3,), "torch.float32")]


# Traffic and memory


def test_bytes_count_what_exists() -> None:
    plan = torch.plan(lambda x, y: x + y, meta(1, 4).expand(3, 4), meta(3, 4))
    assert (plan.read, plan.written) == ((4 + 12) * F32, 12 * F32)


def test_views_move_nothing_and_copies_do() -> None:
    plan = torch.plan(lambda x: x.t().reshape(-1), meta(3, 4))
    view, copy = plan.operations
    assert (view.read, view.written) == (0, 0)
    assert (copy.read, copy.written) == (12 * F32, 12 * F32)


def test_a_lookup_reads_its_rows() -> None:
    plan = torch.plan(nn.Embedding(1000, 8), torch.tensor([1, 2, 3]))
    assert plan.read == 3 * 8 * F32 + 3 * 8


def test_the_peak_and_what_holds_it() -> None:
    def program(x):
        a = x + 1  # x, a
        b = a.mul(2)  # x, a, b
        del a
        c = b[:1].sum()
        return b.add_(c)

    plan = torch.plan(program, meta(100))
    assert plan.peak == 3 * 100 * F32
    assert [(h.kind, h.nbytes) for h in plan.held] == [("argument", 400), ("add", 400), ("mul", 400)]
    assert plan.peak_at.name == "mul"
    assert plan.operations[-1].live == 2 * 100 * F32 + F32


def test_what_is_saved_for_backward_stays_alive() -> None:
    model = nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(6)))
    x = meta(50, 8)
    with torch.no_grad():
        inference = torch.plan(model, x)
    training = torch.plan(model, x)
    assert inference.peak == inference.parameter_bytes + 4 * 50 * 8 * F32  # both inputs of nested modules, two results
    assert training.peak == training.parameter_bytes + (1 + 6 + 1) * 50 * 8 * F32


@pytest.mark.parametrize("backward", [False, True])
def test_a_plan_is_what_a_real_run_holds(backward: bool) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(8 * 16, 10),
    )
    x = torch.randn(4, 3, 8, 8)
    planned, real = torch.plan(model, x, backward=backward), measure(model, x, backward=backward)
    assert [(o.name, o.outputs, o.flops) for o in planned.operations] == [
        (o.name, o.outputs, o.flops) for o in real.operations
    ]
    # A real run may let go of an array a moment earlier than the plan says, never later.
    assert real.peak <= 1.02 * planned.peak and planned.peak <= 1.1 * real.peak
    assert (planned.flops, planned.backward_flops) == (real.flops, real.backward_flops)


# Modules


def test_modules_count_what_is_inside_of_them() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(4, 4)
            self.second = nn.Linear(4, 4)

        def forward(self, x):
            return self.second(self.first(x).relu())

    plan = torch.plan(nn.Sequential(Block(), Block()), torch.zeros(2, 4))
    found = {m.name: m for m in plan.modules}
    assert list(found) == ["", "0", "0.first", "0.second", "1", "1.first", "1.second"]
    linear = 2 * 2 * 4 * 4
    assert (
        found["0.first"].flops == linear
        and found["0"].flops == 2 * linear + 8
        and found[""].flops == 2 * found["1"].flops
    )
    assert found["0"].outputs == [((2, 4), "torch.float32")] and found["0"].parameters == 40
    assert plan.parameters == 80 and plan.parameter_bytes == 320


def test_backward_counts_for_the_module_that_ran_forward() -> None:
    plan = torch.plan(nn.Sequential(nn.Linear(4, 4), nn.Tanh()), torch.zeros(2, 4), backward=True)
    by_module = {m.name: m.backward_flops for m in plan.modules}
    assert by_module["1"] >= 2 * 8 and by_module["0"] >= 2 * 2 * 4 * 4


def test_shared_parameters_count_once() -> None:
    model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False))
    model[1].weight = model[0].weight
    assert torch.plan(model, torch.zeros(1, 4)).parameters == 16


# Stand-ins and known values


def test_the_program_is_left_as_it_was() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    x = torch.randn(3, 4, requires_grad=True)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    torch.plan(model, x, backward=True)
    assert x.grad is None and all(p.grad is None for p in model.parameters())
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name
    assert model(x).device.type == "cpu"


def test_captured_tensors_and_devices_stand_for_meta() -> None:
    weight = torch.randn(4, 5)

    def program(x):
        return (x.to("cpu") @ weight) + torch.arange(5, device="cpu") + torch.tensor([1.0])

    plan = torch.plan(program, meta(3, 4))
    assert plan.outputs == [((3, 5), "torch.float32")]
    assert {h.kind for h in plan.held} >= {"captured", "argument"}


def test_programs_may_look_at_masks() -> None:
    def program(mask, x):
        if bool((mask == 1).all()):
            return x.exp()
        return x.masked_fill(mask == 0, 0.0)

    full, partial = torch.ones(2, 3, dtype=torch.int64), torch.tensor([[1, 1, 0], [1, 0, 0]])
    assert torch.plan(program, full, meta(2, 3)).operations[-1].name == "exp"
    assert torch.plan(program, partial, meta(2, 3)).operations[-1].name == "masked_fill"


def test_shapes_may_depend_on_known_values() -> None:
    def program(mask, x):
        rows = mask.nonzero().squeeze(1)
        return x[rows], int(mask.sum().item())

    plan = torch.plan(program, torch.tensor([True, False, True]), meta(3, 4))
    assert plan.outputs == [((2, 4), "torch.float32")]


def test_known_values_follow_views_and_writes() -> None:
    seen = []

    def program():
        x = torch.zeros(2, 3, dtype=torch.int64)
        x[0, 1:] = 7
        x.t()[0].add_(1)
        seen.append(x.tolist())
        return x

    torch.plan(program)
    assert seen == [[[1, 7, 7], [1, 0, 0]]]


def test_unknown_writes_are_forgotten() -> None:
    def program(unknown):
        x = torch.zeros(2, dtype=torch.int64)
        view = x[:1]
        view.copy_(unknown)
        return x.tolist()

    with pytest.raises(RuntimeError, match="values that a plan does not know"):
        torch.plan(program, meta(1, dtype=torch.int64))


def test_few_random_numbers_are_drawn_and_the_generator_stays() -> None:
    def program():
        return torch.ones(3 if torch.rand([]).uniform_() < 2 else 4), torch.randint(0, 5, (1,)).item()

    before = torch.get_rng_state()
    first, second = torch.plan(program), torch.plan(program)
    assert first.outputs == second.outputs == [((3,), "torch.float32")]
    assert torch.equal(torch.get_rng_state(), before)


def test_a_generator_of_the_program_is_left_alone() -> None:
    generator = torch.Generator().manual_seed(3)
    before = generator.get_state()
    with pytest.raises(RuntimeError, match=r"Tensor\.item\(\): the program asks for values that a plan does not know"):
        torch.plan(lambda: torch.rand(1, generator=generator).item())
    assert torch.equal(generator.get_state(), before)


def test_errors_are_those_of_the_call() -> None:
    with pytest.raises(RuntimeError, match=r"mat1 and mat2 shapes cannot be multiplied \(3x4 and 3x4\)"):
        torch.plan(torch.mm, torch.zeros(3, 4), torch.zeros(3, 4))
    assert torch.ones(2).sum().item() == 2  # no plan is left behind


def test_nothing_to_differentiate() -> None:
    with pytest.raises(ValueError, match="no result requires grad"):
        torch.plan(torch.exp, torch.zeros(3), backward=True)


def test_plans_do_not_nest() -> None:
    with pytest.raises(RuntimeError, match="being made in this thread already"):
        torch.plan(lambda: torch.plan(torch.exp, torch.zeros(3)))


# Text


def test_tables_and_json() -> None:
    plan = torch.plan(nn.Sequential(nn.Linear(4, 8), nn.ReLU()), torch.zeros(2, 4))
    text = str(plan)
    assert "parameters" in text and "(root)" in text and "Sequential" in text and "peak of live memory" in text
    assert repr(plan) == "<Plan of Sequential: 144 FLOPs, peak 320 B>"
    data = json.loads(plan.to_json(operations=True))
    assert data["flops"] == 2 * 2 * 4 * 8 + 16 and len(data["operations"]) == 2
    assert data["modules"][1]["outputs"] == [[[2, 8], "torch.float32"]]
    assert "operations" not in json.loads(plan.to_json())


# The command


needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed beside the project"
)


def command(*arguments: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    line = [sys.executable, "-m", "mindtorch_v2", "plan", *arguments]
    return subprocess.run(line, capture_output=True, text=True, timeout=300, env=environment)


@needs_transformers
@pytest.mark.parametrize(
    ("options", "parameters", "forward", "backward"),
    [
        (("--model", "BertConfig", "--batch", "8", "--seq", "128"), 109482240, 178787450880, 0),
        (("--model", "BertConfig", "--batch", "8", "--seq", "128", "--backward"), 109482240, 178787450880, 357574901760),
    ],
)  # fmt: skip
def test_bert_base(options: tuple, parameters: int, forward: int, backward: int) -> None:
    """FLOPs as torch.utils.flop_counter of PyTorch 2.13 counts them with eager attention (it leaves out the CPU's fused attention), which counts products only."""
    done = command(*options, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["parameters"] == parameters
    assert found["flops"] == pytest.approx(forward, rel=0.01)
    assert found["backward_flops"] == pytest.approx(backward, rel=0.01)


@needs_transformers
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--model", "BurtConfig"), "transformers has no configuration class 'BurtConfig'"),
        (("--model", "BertConfig", "--head", "Nothing"), "transformers has no AutoModelForNothing"),
        (("--model", "BertConfig", "--set", "hidden=3"), "'hidden=3' is no NAME=VALUE of BertConfig"),
        (("--model", "BertConfig", "--dtype", "int8"), "'int8' is no floating-point dtype"),
        (("--model", "missing.json"), "no file 'missing.json'"),
        (("--model", "MixtralConfig", "--set", "num_hidden_layers=1"), "the shape of the result depends on the data"),
        (("--model", "ViTConfig", "--head", "CausalLM"), "AutoModelForCausalLM takes no ViTConfig"),
    ],
)
def test_mistakes_of_the_command(arguments: tuple, message: str) -> None:
    done = command(*arguments)
    assert done.returncode == 1
    assert message in done.stderr and "Traceback" not in done.stderr
