"""`torch.export` with dynamic shapes: sizes in graphs, ranges, guards and refusals, as PyTorch 2.13 has them where it is said."""

from __future__ import annotations

import re

import pytest
from _exported import Function

import mindtorch_v2 as torch
from mindtorch_v2 import export as exporting, nn
from mindtorch_v2._compiling.refusals import ConstraintViolationError, UserError
from mindtorch_v2.export import Dim, export


def exported(function, args, dynamic_shapes, **parts):
    return export(Function(function, **parts), args, dynamic_shapes=dynamic_shapes)


def test_sizes_are_read_and_calculated_with():
    program = exported(
        lambda self, x: (self.l(x).view(x.shape[0] * 3), torch.zeros(x.shape[0] + 1)),
        (torch.randn(5, 4),),
        ({0: Dim("batch", min=2, max=64)}, None)[:1],
        l=nn.Linear(4, 3),
    )
    lines = [line.strip() for line in str(program).splitlines() if "sym_size" in line or "s0" in line]
    assert lines[1:7] == [
        'sym_size_int_1: "Sym(s0)" = torch.ops.aten.sym_size.int(x, 0)',
        'linear: "f32[s0, 3]" = torch.ops.aten.linear.default(x, p_l_weight, p_l_bias);  x = p_l_weight = p_l_bias = None',
        'mul: "Sym(3*s0)" = sym_size_int_1 * 3',
        'view: "f32[3*s0]" = torch.ops.aten.view.default(linear, [mul]);  linear = mul = None',
        'add: "Sym(s0 + 1)" = sym_size_int_1 + 1;  sym_size_int_1 = None',
        "zeros: \"f32[s0 + 1]\" = torch.ops.aten.zeros.default([add], device = device(type='cpu'), pin_memory = False);  add = None",
    ]
    assert str(program.range_constraints) == "{s0: VR[2, 64]}"
    made = program.module()
    assert [one.shape for one in made(torch.randn(7, 4))] == [(21,), (8,)]
    with pytest.raises(AssertionError, match=r"Guard failed: x.size\(\)\[0\] <= 64"):
        made(torch.randn(65, 4))
    with pytest.raises(AssertionError, match=r"Guard failed: x.size\(\)\[1\] == 4"):
        made(torch.randn(7, 5))


@pytest.mark.parametrize(
    ("function", "shape", "dynamic", "other"),
    [
        (lambda self, x: x[: x.shape[0] // 2], (4, 3), {0: Dim("b")}, (31, 3)),
        (lambda self, x: x + torch.full((x.shape[0], 1), 2.0), (4, 3), {0: Dim("b")}, (9, 3)),
        (lambda self, x: x * x.shape[0] + x.shape[1], (4, 3), {0: Dim("b"), 1: Dim("c")}, (9, 8)),
        (lambda self, x: x.reshape(x.shape[0] * x.shape[1], -1), (4, 3, 2), {0: Dim("b"), 1: Dim("c")}, (9, 8, 2)),
        (lambda self, x: x.view(x.shape[0] // 2, 2, 3), (4, 3), {0: 2 * Dim("half")}, (10, 3)),
        (
            lambda self, x: x.new_zeros(x.shape[0] - x.shape[1] + 40),
            (4, 3),
            {0: Dim("b", max=30), 1: Dim("c", max=30)},
            (20, 9),
        ),
        (lambda self, x: x + torch.arange(x.size(1)), (2, 5), {1: Dim("t")}, (2, 13)),
    ],
)
def test_expressions_of_sizes(function, shape, dynamic, other):
    program = exported(function, (torch.randn(shape),), (dynamic,))
    x = torch.randn(other)
    torch.testing.assert_close(program.module()(x), function(None, x), rtol=0, atol=0)


def test_layers_at_other_sizes():
    layers = nn.Sequential(
        nn.Conv2d(3, 4, 3, 2, 1), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)
    ).eval()
    sizes = {0: Dim("n"), 2: Dim("h", min=3), 3: Dim("w", min=3)}
    made = export(layers, (torch.randn(2, 3, 9, 9),), dynamic_shapes=(sizes,)).module()
    x = torch.randn(5, 3, 12, 7)
    torch.testing.assert_close(made(x), layers(x), rtol=0, atol=0)
    block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
    made = export(block, (torch.randn(3, 5, 8),), dynamic_shapes={"src": {0: Dim("n"), 1: Dim("t")}}).module()
    x = torch.randn(2, 9, 8)
    torch.testing.assert_close(made(x), block(x), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda self, x: x.view(4, 3), "The program does not run where b = 7"),
        (lambda self, x: x * 2 if x.shape[0] > 6 else x, "calls other operators at other sizes"),
        (lambda self, x: x * 2 if x.shape[0] > 1000 else x, "calls other operators where b = 4049"),
        (lambda self, x: x.new_zeros(x.shape[0] // 512 + 1), "calls other operators where b = 4049"),
        (lambda self, x: x + torch.tensor([x.shape[0]]), "makes tensors of numbers that depend on sizes"),
        (lambda self, x: x / (x.shape[0] ** 0.5), "follows from them in no way that a graph can say"),
        (lambda self, x: sum(x[i] for i in range(x.shape[0])), "calls other operators at other sizes"),
    ],
)
def test_programs_that_hold_for_one_size_are_refused(function, why):
    with pytest.raises(
        UserError, match=r"You marked b as dynamic but your code specialized it to be a constant \(4\)"
    ) as caught:
        exported(function, (torch.randn(4, 3),), ({0: Dim("b")},))
    assert why in str(caught.value)
    assert "Constraints violated (b)!" in str(caught.value)
    assert "Suggested fixes:\n  b = 4" in str(caught.value)


def test_composites_taken_apart_at_other_sizes():
    layers = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU(inplace=True))
    program = export(layers, (torch.randn(5, 4),), dynamic_shapes=({0: Dim("b")},)).run_decompositions()
    assert program.dialect == "ATEN"
    assert str(program.range_constraints) == "{s0: VR[2, int_oo]}"
    x = torch.randn(9, 4)
    torch.testing.assert_close(program.module()(x), layers(x), rtol=1e-6, atol=1e-6)


def test_equal_sizes():
    b = Dim("b")
    args = torch.randn(5, 4), torch.randn(5, 4)
    made = exported(lambda self, x, y: x + y, args, ({0: b}, (b, 4))).module()
    with pytest.raises(AssertionError, match=r"Guard failed: y.size\(\)\[0\] == x.size\(\)\[0\]"):
        made(torch.randn(6, 4), torch.randn(7, 4))
    with pytest.raises(
        UserError, match=r"The values of c = L\['y'\].size\(\)\[0\] and b = L\['x'\].size\(\)\[0\] must always be equal"
    ):
        exported(lambda self, x, y: x + y, args, ({0: b}, {0: Dim("c")}))
    with pytest.raises(UserError, match=r"L\['y'\].size\(\)\[0\] = 6 is not equal to L\['x'\].size\(\)\[0\] = 5"):
        exported(lambda self, x, y: x.sum() + y.sum(), (torch.randn(5), torch.randn(6)), ({0: b}, {0: b}))


def test_hints():
    both = {0: Dim.AUTO, 1: Dim.AUTO}
    program = export(nn.Linear(4, 2), (torch.randn(3, 4),), dynamic_shapes=(both,))
    assert str(program.range_constraints) == "{s0: VR[2, int_oo]}"
    program = exported(lambda self, x, y: x + y, (torch.randn(3, 4), torch.randn(3, 4)), (both, both))
    assert len(program.range_constraints) == 2
    assert program.module()(torch.ones(7, 9), torch.ones(7, 9)).shape == (7, 9)
    with pytest.raises(AssertionError, match=r"y.size\(\)\[0\] == x.size"):
        program.module()(torch.ones(7, 9), torch.ones(8, 9))
    static = exported(lambda self, x: x.view(5, 4), (torch.randn(5, 4),), ({0: Dim.AUTO},))
    assert static.range_constraints == {}
    with pytest.raises(
        UserError,
        match=r"You marked L\['x'\].size\(\)\[0\] as dynamic but your code specialized it to be a constant \(5\)",
    ):
        exported(lambda self, x: x.view(5, 4), (torch.randn(5, 4),), ({0: Dim.DYNAMIC},))


def test_hints_become_ranges_of_what_was_tried():
    program = exported(lambda self, x: x * 2 if x.shape[0] > 1000 else x, (torch.ones(4, 3),), ({0: Dim.AUTO},))
    assert str(program.range_constraints) == "{s0: VR[2, 19]}"
    with pytest.raises(AssertionError, match=r"Guard failed: x.size\(\)\[0\] <= 19"):
        program.module()(torch.ones(2000, 3))


def test_dims():
    batch = Dim("batch", min=2, max=64)
    assert repr(batch) == "Dim('batch', max=64)"
    assert repr(2 * batch + 1) == "2*batch + 1"
    assert repr(exporting.dims("a", "b", min=3)) == "(Dim('a', min=3), Dim('b', min=3))"
    assert repr(Dim.DYNAMIC(min=2)) == "DimHint(DYNAMIC, min=2)"
    with pytest.raises(AssertionError, match="Cannot create Dim with inconsistent min=3, max=2"):
        Dim("x", min=3, max=2)
    with pytest.raises(AssertionError, match="Dim name must be a valid identifier, got 1x"):
        Dim("1x")
    with pytest.raises(NotImplementedError, match="Attempted to negate"):
        1 - batch


@pytest.mark.parametrize(
    ("dynamic", "error", "text"),
    [
        ({"z": {0: Dim("b")}}, UserError, "its top-level keys must be the arg names"),
        (({0: Dim("b")}, {0: Dim("b")}), UserError, "`inputs` has 1 elements, but `dynamic_shapes` has 2 elements"),
        (({0: "x"},), UserError, "Unexpected dimension mapped to index 0"),
        (({5: Dim("b")},), IndexError, "list assignment index out of range"),
        (({0: Dim("b", max=3)},), ConstraintViolationError, r"5 not in range \[2, 3\]"),
        (({0: 4},), UserError, "Static shape constraint of 4 does not match input size of 5"),
        (((None,),), UserError, "to have the same length as the actual tensor shape"),
    ],
)
def test_dynamic_shapes_that_do_not_fit(dynamic, error, text):
    with pytest.raises(error, match=text):
        exported(lambda self, x: x + 1, (torch.randn(5, 4),), dynamic)


def test_dynamic_shapes_of_nested_arguments_that_do_not_fit():
    def total(self, pair):
        return pair[0] + pair[1]

    pair = (torch.randn(5, 4), torch.randn(5, 4))
    for dynamic, text in (
        ((({0: Dim("b")},),), "`inputs[0]` has 2 elements, but `dynamic_shapes[0]` has 1 elements"),
        ({"x": ({0: Dim("b")},)}, "`inputs['x']` has 2 elements, but `dynamic_shapes['x']` has 1 elements"),
        (({0: Dim("b")},), "`inputs[0]` is a <class 'tuple'>, but `dynamic_shapes[0]` is a <class 'dict'>"),
    ):
        with pytest.raises(UserError, match=re.escape(text)):
            exported(total, (pair,), dynamic)


def test_collections_of_shapes():
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    shapes = exporting.ShapesCollection()
    shapes[x] = {0: Dim("b")}
    shapes[y] = {0: shapes[x][0]}
    program = exported(lambda self, x, y: x + y, (x, y), shapes)
    assert program.module()(torch.ones(9, 4), torch.ones(9, 4)).shape == (9, 4)
    more = exporting.AdditionalInputs()
    more.add((torch.randn(5, 4), torch.randn(5, 4)))
    program = exported(lambda self, x, y: x + y, (x, y), more)
    more.verify(program)
    assert len(program.range_constraints) == 1
