"""The meta rules agree with PyTorch's CPU on shapes, dtypes, strides, offsets and errors; their geometry holds for
any strides."""

from __future__ import annotations

import importlib
import inspect
import json
import math
import pathlib
import pkgutil
import sys
import types

import numpy as np
import pytest
from hypothesis import given, strategies as st

from mindtorch_v2 import _dtype as d, _rules
from mindtorch_v2._rules import geometry as g, spec as s

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER))

import rule_cases  # noqa: E402

rules = types.SimpleNamespace(
    **{
        name: function
        for found in pkgutil.iter_modules(_rules.__path__)
        for module in [importlib.import_module(f"{_rules.__name__}.{found.name}")]
        for name, function in vars(module).items()
        if inspect.isfunction(function) and function.__module__ == module.__name__
    }
)
RECORDS = json.loads((FOLDER / "data" / "rules.json").read_text())


class Storage:
    """What as_strided asks of a storage."""

    def __init__(self, nbytes):
        self._nbytes = nbytes

    def nbytes(self):
        return self._nbytes


class Duck:
    """What a rule reads of a tensor."""

    device = "cpu"

    def __init__(self, shape, dtype=d.float32, stride=None, offset=0):
        self.shape = tuple(shape)
        self.dtype = dtype
        self._stride = g.contiguous_strides(self.shape) if stride is None else tuple(stride)
        self._offset = offset

    def stride(self):
        return self._stride

    def dim(self):
        return len(self.shape)

    def numel(self):
        return math.prod(self.shape)

    def is_contiguous(self):
        return g.is_contiguous(self.shape, self._stride)

    def storage_offset(self):
        return self._offset

    def untyped_storage(self):
        last = sum((size - 1) * step for size, step in zip(self.shape, self._stride, strict=True))
        return Storage(0 if 0 in self.shape else (self._offset + last + 1) * self.dtype.itemsize)


def duck(text):
    name, shape, stride, offset = rule_cases.parse(text)
    return Duck(shape, d.DTYPES[name], stride, offset)


def call(case):
    tensors, expression, _ = rule_cases.split(case)
    scope = dict(vars(rules))
    scope.update({short: d.DTYPES[name] for short, name in rule_cases.DTYPES.items()})
    operands = dict(zip("abc", map(duck, tensors), strict=False))
    scope.update(operands)
    return eval(expression, scope), operands


def test_every_case_is_recorded():
    assert sorted(RECORDS) == sorted(rule_cases.CASES)


@pytest.mark.parametrize("case", rule_cases.CASES)
def test_a_rule_says_what_pytorch_says(case):
    record = RECORDS[case]
    if "error" in record:
        with pytest.raises((RuntimeError, IndexError, TypeError, ValueError)) as caught:
            call(case)
        assert (type(caught.value).__name__, str(caught.value)) == (record["error"], record["message"])
        return
    found, operands = call(case)
    specs = [found] if isinstance(found, (s.Spec, s.ViewSpec)) else found
    assert len(specs) == len(record["results"])
    for spec, (shape, stride, dtype, offset) in zip(specs, record["results"], strict=True):
        source = operands.get("a")
        own = source.dtype if isinstance(spec, s.ViewSpec) and spec.dtype is None else spec.dtype
        assert (list(spec.shape), list(spec.strides()), own.name) == (shape, stride, dtype)
        if isinstance(spec, s.ViewSpec) and source.numel():
            assert source.storage_offset() * source.dtype.itemsize // own.itemsize + spec.offset == offset


def test_halves_are_computed_in_float32():
    for half in (d.float16, d.bfloat16):
        spec = rules.elementwise(Duck((2,), half), 1.5)
        assert (spec.dtype, spec.compute) == (half, d.float32)
        assert rules.matmul(Duck((2, 2), half), Duck((2, 2), half)).compute is d.float32
        assert rules.cat([Duck((2,), half)]).compute is half
    assert rules.comparison(Duck((2,), d.bfloat16), 1).compute is d.bfloat16  # numbers are rounded to it
    assert rules.reduction(Duck((2,), d.float16)).compute is d.float32


@pytest.mark.parametrize(
    "expression",
    [
        "nonzero(Duck((2,)))",
        "masked_select(Duck((2,)), Duck((2,), d.bool))",
        "index(Duck((2, 3)), [Duck((2,), d.bool)])",
        "one_hot(Duck((2,), d.int64))",
    ],
)
def test_data_may_decide_the_shape(expression):
    spec = eval(f"rules.{expression}")
    assert spec.shape is None
    with pytest.raises(ValueError, match="depends on the data"):
        spec.strides()


def test_the_gradients_that_nobody_wants_are_none():
    x, w = Duck((2, 3, 8, 8)), Duck((5, 3, 3, 3))
    grads = rules.conv_backward(Duck((2, 5, 6, 6)), x, w, None, (True, False, True))
    assert [None if g is None else g.shape for g in grads] == [(2, 3, 8, 8), None, (5,)]
    assert rules.norm_backward(x, x, None, None, (False, True, True)) == (None, None, None)


def test_has_format():
    nhwc = Duck((2, 3, 4, 5), stride=(60, 1, 15, 3))
    assert rules.has_format(nhwc, "torch.channels_last") and not rules.has_format(nhwc)
    assert rules.has_format(Duck((2, 3)))


# --- geometry, for any strides ----------------------------------------------------------------------------------


@st.composite
def arrays(draw, most=4):
    """An array whose elements are all different, permuted, cut and sometimes broadcast."""
    shape = draw(st.lists(st.integers(1, 4), max_size=most))
    base = np.arange(math.prod(2 * size for size in shape), dtype=np.int64).reshape([2 * size for size in shape])
    cut = tuple(slice(draw(st.integers(0, 1)), None, draw(st.integers(1, 2))) for _ in shape)
    order = draw(st.permutations(range(len(shape))))
    array = base[cut].transpose(order)
    if shape and draw(st.booleans()):
        axis = draw(st.integers(0, len(shape) - 1))
        array = np.broadcast_to(array.take([0], axis), array.shape) if draw(st.booleans()) else array
    return array


def tensor_of(array):
    return Duck(array.shape, d.int64, [step // array.itemsize for step in array.strides])


def seen(array, view):
    """The elements that a ViewSpec shows."""
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    start = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    flat = root.reshape(-1) if root.flags.c_contiguous else root.ravel(order="K")
    at = start // array.itemsize + view.offset
    return np.lib.stride_tricks.as_strided(flat[at:], view.shape, [step * array.itemsize for step in view.stride])


def divisors(n):
    return [k for k in range(1, n + 1) if n % k == 0]


@given(arrays(), st.data())
def test_a_view_shows_the_elements_in_order_or_needs_a_copy(array, data):
    shape, rest = [], array.size
    while len(shape) < 4 and rest > 1:
        shape.append(data.draw(st.sampled_from(divisors(rest))))
        rest //= shape[-1]
    shape = data.draw(st.permutations([*shape, rest]))
    found = rules.reshape(tensor_of(array), shape)
    if isinstance(found, s.ViewSpec):
        assert np.array_equal(seen(array, found), array.reshape(shape))
    else:
        assert not np.shares_memory(array.reshape(shape), array)
        with pytest.raises(RuntimeError, match="view size is not compatible"):
            rules.view(tensor_of(array), shape)


@given(arrays(), st.data())
def test_parts_are_numpys(array, data):
    if not array.ndim:
        return
    x = tensor_of(array)
    axis = data.draw(st.integers(0, array.ndim - 1))
    length = array.shape[axis]
    index = data.draw(st.integers(-length, length - 1))
    assert np.array_equal(seen(array, rules.select(x, axis, index)), array.take(index, axis))
    start, end = data.draw(st.integers(-6, 6)), data.draw(st.integers(-6, 6) | st.none())
    step = data.draw(st.integers(1, 3))
    part = rules.slice(x, axis, start, end, step)
    expected = array[(slice(None),) * axis + (slice(start, end, step),)]
    assert part.shape == expected.shape
    if expected.size:
        assert np.array_equal(seen(array, part), expected)
    sections = data.draw(st.integers(1, 5))
    parts = rules.tensor_split(x, sections, axis)
    for view, wanted in zip(parts, np.array_split(array, sections, axis), strict=True):
        assert view.shape == wanted.shape
        if wanted.size:
            assert np.array_equal(seen(array, view), wanted)


@given(arrays(), st.data())
def test_reordered_dims_are_numpys(array, data):
    x = tensor_of(array)
    order = data.draw(st.permutations(range(array.ndim)))
    assert np.array_equal(seen(array, rules.permute(x, order)), array.transpose(order))
    axis = data.draw(st.integers(-array.ndim - 1, array.ndim))
    assert np.array_equal(seen(array, rules.unsqueeze(x, axis)), np.expand_dims(array, axis))
    assert np.array_equal(seen(array, rules.squeeze(x)), array.squeeze())
    if array.ndim > 1:
        first, second = data.draw(st.permutations(range(array.ndim)))[:2]
        offset = data.draw(st.integers(-4, 4))
        view, wanted = rules.diagonal(x, offset, first, second), array.diagonal(offset, first, second)
        assert view.shape == wanted.shape
        if wanted.size:
            assert np.array_equal(seen(array, view), wanted)
        source, target = data.draw(st.integers(0, array.ndim - 1)), data.draw(st.integers(0, array.ndim - 1))
        assert np.array_equal(seen(array, rules.movedim(x, source, target)), np.moveaxis(array, source, target))


@given(arrays())
def test_dense_strides_are_dense_and_keep_the_order(array):
    x = tensor_of(array)
    dense = g.infer_dense_strides(x.shape, x.stride())
    assert g.is_non_overlapping_and_dense(x.shape, dense)
    spec = rules.elementwise(x)
    assert g.is_non_overlapping_and_dense(spec.shape, spec.strides())
    steps = [(a, b) for a, b, size in zip(x.stride(), spec.strides(), x.shape, strict=True) if size > 1 and a]
    assert all((a1 < a2) == (b1 < b2) for a1, b1 in steps for a2, b2 in steps if a1 != a2)


@given(arrays(), arrays())
def test_broadcasting_is_numpys(a, b):
    x, y = tensor_of(a), tensor_of(b)
    try:
        expected = np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        with pytest.raises(RuntimeError, match=r"The size of tensor a \(\d+\) must match the size of tensor b \(\d+\)"):
            rules.elementwise(x, y)
        return
    assert rules.elementwise(x, y).shape == expected


@given(st.lists(st.integers(0, 4), max_size=5))
def test_contiguous_strides(shape):
    strides = g.contiguous_strides(shape)
    assert g.is_contiguous(shape, strides)
    if 0 not in shape:
        assert list(strides) == [step // 8 for step in np.empty(shape, np.int64).strides]
