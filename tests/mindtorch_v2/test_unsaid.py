"""Numbers, states and refusals that nobody would miss if they were wrong: each with PyTorch's outcome."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2.utils.checkpoint import checkpoint

T = torch.tensor


def leaf(*values: float) -> torch.Tensor:
    return T(list(map(float, values)), requires_grad=True)


# Gradients


@pytest.mark.parametrize(
    "convolve", [F.conv1d, F.conv2d, F.conv3d, F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d]
)
def test_gradients_of_complex_convolutions_are_conjugated(convolve):
    dims = int(convolve.__name__[-2])
    x = torch.full((1, 1, *[2] * dims), 1 + 2j, requires_grad=True)
    w = torch.full((1, 1, *[1] * dims), 1j, requires_grad=True)
    out = convolve(x, w)
    (of_x, of_w) = torch.autograd.grad(out, (x, w), torch.ones_like(out), create_graph=True)
    assert of_x.flatten()[0].item() == -1j
    assert of_w.item() == 2**dims * (1 - 2j)
    (second,) = torch.autograd.grad(of_w, x, torch.full_like(of_w, 1j))
    assert second.flatten()[0].item() == -1j


@pytest.mark.parametrize(
    ("reduce", "include", "of_self", "of_source"),
    [
        ("prod", True, [2.0, 1, 1], [1.0]),
        ("prod", False, [0.0, 1, 1], [1.0]),
        ("mean", True, [0.5, 1, 1], [0.5]),
        ("amax", True, [0.0, 1, 1], [1.0]),
        ("amin", True, [1.0, 1, 1], [0.0]),
    ],
)
def test_index_reduce_is_differentiable(reduce, include, of_self, of_source):
    x, source = leaf(1, 1, 1), leaf(2)
    x.index_reduce(0, T([0]), source, reduce, include_self=include).sum().backward()
    assert x.grad.tolist() == of_self
    assert source.grad.tolist() == of_source


@pytest.mark.parametrize("order", ["nuc", 2, -2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_gradients_of_matrix_norms_at_equal_singular_values(order, dtype):
    for matrix in (torch.zeros(2, 2, dtype=dtype), torch.eye(2, dtype=dtype)):
        x = matrix.requires_grad_()
        torch.linalg.norm(x, order).backward()
        share = 1 if order == "nuc" else 0.5
        assert torch.allclose(x.grad, share * torch.eye(2, dtype=dtype))


def test_gradients_of_equal_eigenvalues():
    x = torch.eye(2, requires_grad=True)
    torch.linalg.eigvalsh(x).sum().backward()
    assert x.grad.tolist() == [[1, 0], [0, 1]]


def test_cdist_of_equal_coordinates():
    x = T([[1.0, 0.0]], requires_grad=True)
    torch.cdist(x, T([[1.0, 2.0]]), p=0.5).sum().backward()
    assert x.grad.tolist() == [[0, pytest.approx(-1, rel=1e-6)]]


def test_incomplete_gamma_and_zeta_have_a_gradient():
    x = leaf(1.5)
    torch.igamma(T([0.5]), x).backward()
    density = 1.5**-0.5 * np.exp(-1.5) / np.sqrt(np.pi)
    assert x.grad.item() == pytest.approx(density, rel=1e-5)
    y = leaf(1.5)
    torch.igammac(T([0.5]), y).backward()
    assert y.grad.item() == pytest.approx(-density, rel=1e-5)
    z = leaf(1.0)
    torch.special.zeta(2.0, z).backward()
    assert z.grad.item() == pytest.approx(-2 * 1.2020569, rel=1e-5)


@pytest.mark.parametrize(
    ("compute", "error", "words"),
    [
        (lambda x: x.scatter(0, T([0]), T([1.0]), reduce="add"), RuntimeError, "derivative for aten::scatter is"),
        (lambda x: torch.heaviside(x, T([1.0])), RuntimeError, "derivative for aten::heaviside is"),
        (lambda x: torch.bincount(T([0, 1, 2]), x), RuntimeError, "derivative for aten::bincount is"),
        (lambda x: torch.histogram(x, 3)[0], RuntimeError, "derivative for aten::histogram is"),
        (lambda x: torch.unique(x), NotImplementedError, "the derivative for '_unique2' is"),
        (lambda x: torch.unique(x, dim=0), NotImplementedError, "the derivative for 'unique_dim' is"),
        (lambda x: torch.igamma(x, x.detach()), NotImplementedError, "the derivative for 'igamma: input' is"),
    ],
)
def test_a_derivative_that_is_missing_says_so(compute, error, words):
    result = compute(leaf(0.5, 1.5, 2.5))
    assert result.requires_grad
    with pytest.raises(error, match=words):
        result.sum().backward()


@pytest.mark.parametrize(
    ("name", "argument", "compute"),
    [
        ("nll_loss_forward", "weight", lambda w: F.cross_entropy(torch.ones(3, 3), T([0, 1, 2]), w)),
        ("binary_cross_entropy", "weight", lambda w: F.binary_cross_entropy(w.detach(), w.detach(), w)),
        (
            "binary_cross_entropy_with_logits",
            "pos_weight",
            lambda w: F.binary_cross_entropy_with_logits(w.detach(), w.detach(), pos_weight=w),
        ),
        ("native_batch_norm", "running_mean", lambda w: F.batch_norm(torch.ones(3, 3), w, torch.ones(3))),
        ("multi_margin_loss", "weight", lambda w: F.multi_margin_loss(torch.ones(3, 3), T([0, 1, 2]), weight=w)),
    ],
)
def test_an_argument_without_a_derivative_may_not_require_grad(name, argument, compute):
    weight = leaf(0.1, 0.2, 0.3)
    with pytest.raises(RuntimeError, match=f"'{name}' is not differentiable with respect to argument '{argument}'"):
        compute(weight)
    with torch.no_grad():
        compute(weight)


# Histories


def test_unpacked_tensors_stand_in_the_graph():
    x = T(0.5, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda a: a.detach(), lambda a: a):
        y = x.sin() * x
        z = x.exp()  # saves its result
    (first,) = torch.autograd.grad(y + z, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    assert second.item() == pytest.approx(2 * np.cos(0.5) - 0.5 * np.sin(0.5) + np.exp(0.5), rel=1e-6)


def test_second_order_through_a_checkpoint():
    x = T(0.5, requires_grad=True)
    y = checkpoint(lambda v: v.sin() * v, x, use_reentrant=False)
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    assert second.item() == pytest.approx(2 * np.cos(0.5) - 0.5 * np.sin(0.5), rel=1e-6)


def test_hooks_of_saved_tensors_are_checked():
    x = leaf(1, 2)
    hooks = torch.autograd.graph.saved_tensors_hooks
    with hooks(lambda a: a.mul_(2), lambda a: a), pytest.raises(RuntimeError, match="modifying its input in place"):
        x * x
    with hooks(lambda a: 1, lambda a: a):
        y = (x * x).sum()
    with pytest.raises(TypeError, match="expected to be a Tensor but got result of type int"):
        y.backward()


class ViewOf(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad * 7


class PartOfCopy(ViewOf):
    @staticmethod
    def forward(ctx, x):
        return x.clone()[:2]

    @staticmethod
    def backward(ctx, grad):
        return torch.cat([grad * 7, torch.zeros(1)])


@pytest.mark.parametrize("function", [ViewOf, PartOfCopy])
def test_a_view_of_a_function_may_not_be_changed(function):
    x = leaf(1, 2, 3)
    y = function.apply(x * 1)
    assert y._is_view()
    with pytest.raises(RuntimeError, match="This view was created inside a custom Function"):
        y.mul_(2)
    with pytest.raises(RuntimeError, match="This view was created inside a custom Function"):
        y[0].mul_(2)
    (y * 2)[:2].sum().backward()
    assert x.grad.tolist() == [14, 14, 0]


def test_a_tensor_that_keeps_its_gradient_is_changed():
    a = leaf(1, 1) * 1
    a.retain_grad()
    a.mul_(2).mul_(3)
    (a * 7).sum().backward()
    assert a.retains_grad is True
    assert a.grad.tolist() == [7, 7]
    b = leaf(1, 1) * 1
    b.retain_grad()
    b[:1].mul_(3)
    b.sum().backward()
    assert b.grad.tolist() == [1, 1]


# numpy


def test_arrays_are_compared_element_by_element():
    same = torch.arange(3) == np.arange(3)
    assert isinstance(same, torch.Tensor)
    assert same.tolist() == [True] * 3
    assert (np.array([0, 5, 2]) == torch.arange(3)).tolist() == [True, False, True]
    assert (torch.arange(3) == np.array(["a", "b", "c"])) is False
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        assert torch.arange(3) == np.arange(2)


def test_an_array_and_its_tensor_are_two_objects():
    x = torch.ones(4)
    array = x.numpy()
    array.shape = (2, 2)
    array.setflags(write=False)
    assert tuple(x.shape) == (4,)
    x.add_(1)
    assert array.tolist() == [[2, 2], [2, 2]]
    for make in (torch.from_numpy, torch.asarray, torch.as_tensor):
        given = np.ones(4, np.float32)
        y = make(given)
        given.shape = (2, 2)
        given.dtype = np.int32
        assert (tuple(y.shape), y.dtype) == ((4,), torch.float32)
        given[...] = 0
        assert y.tolist() == [0] * 4


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        ([T(1, dtype=torch.int8)], torch.int8),
        ([T(1, dtype=torch.int8), T(1, dtype=torch.uint8)], torch.int16),
        ([T(1, dtype=torch.int8), 2], torch.int64),
        ([T(1.0, dtype=torch.float16), T(1)], torch.float16),
        ([1.5, T(1, dtype=torch.float64)], torch.float64),
        ([[np.int8(1)], [np.int16(2)]], torch.int16),
        ([np.float16(1), np.float32(1)], torch.float32),
        ([True, 2.5], torch.float32),
        ([1, 2j], torch.complex64),
        ([[], []], torch.float32),
    ],
)
def test_a_list_has_the_dtype_of_its_items(data, dtype):
    assert torch.tensor(data).dtype is dtype


@pytest.mark.parametrize(
    ("kind", "dtype"), [(int, torch.int64), (float, torch.float64), (bool, torch.bool), (complex, torch.complex128)]
)
def test_python_types_are_dtypes(kind, dtype):
    for made in (
        torch.tensor([1], dtype=kind),
        torch.as_tensor([1], dtype=kind),
        torch.asarray([1], dtype=kind),
        torch.ones(1).new_tensor([1], dtype=kind),
        torch.frombuffer(bytearray(16), dtype=kind),
    ):
        assert made.dtype is dtype
    with pytest.raises(TypeError, match="argument 'dtype' must be torch.dtype, not str"):
        torch.tensor([1], dtype="int64")


# Values


def test_small_complex_numbers_keep_their_logarithm():
    x = T([1e-30, 1e-20 + 1e-20j, -2e-9, 1e-9 + 1e-3j, -1], dtype=torch.complex128)
    expected = [1e-30, 1e-20 + 1e-20j, -2e-9, 5.00999750e-7 + 1e-3j, -np.inf]
    got = torch.log1p(x)
    assert np.allclose(got.real.numpy(), np.real(expected), rtol=1e-6, atol=0)
    assert torch.log1p(T(1e-30 + 0j)).item() == pytest.approx(1e-30)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_infinities_become_the_largest_number_of_the_dtype(dtype):
    x = T([float("inf"), -float("inf"), float("nan"), 1.5], dtype=dtype)
    top = torch.finfo(dtype).max
    for got in (torch.nan_to_num(x), x.clone().nan_to_num_(), torch.nan_to_num(x, out=torch.empty(4, dtype=dtype))):
        assert got.tolist() == [top, -top, 0, 1.5]


def test_counts_stay_in_their_bins():
    assert torch.histc(T([0.1, 0.2, 0.3, 0.7, 0.9, 1.0, 0.6]), 10, 0, 1).tolist() == [0, 1, 1, 1, 0, 0, 1, 1, 0, 2]
    assert torch.histc(torch.linspace(0, 1, 11), 10, 0, 1).tolist() == [1] * 9 + [2]


# Memory


@pytest.mark.parametrize(
    ("make", "values"),
    [
        (lambda out: torch.arange(4, out=out), [0, 1, 2, 3]),
        (lambda out: torch.arange(1, 9, 2, out=out), [1, 3, 5, 7]),
        (lambda out: torch.linspace(0, 3, 4, out=out), [0, 1, 2, 3]),
        (lambda out: torch.logspace(0, 3, 4, 2, out=out), [1, 2, 4, 8]),
    ],
)
def test_a_range_is_written_into_a_buffer_of_any_shape(make, values):
    x = torch.zeros(2, 3)
    out = x.narrow(1, 1, 2)
    assert make(out) is out
    a, b, c, d = values
    assert x.tolist() == [[0, a, b], [0, c, d]]


def test_numbers_fill_expanded_memory():
    def expanded() -> torch.Tensor:
        return torch.zeros(1).expand(3)

    mask, index = T([True, False, True]), T([0, 1])
    assert expanded().fill_(2).tolist() == [2, 2, 2]
    assert torch.ones(1).expand(3).zero_().tolist() == [0, 0, 0]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert expanded().masked_fill_(mask, 2).tolist() == [2, 2, 2]
        assert expanded().index_fill_(0, index, 2.0).tolist() == [2, 2, 2]
        x = expanded()
        x[mask] = 1
        assert x.tolist() == [1, 1, 1]
    words = ["masked_fill_", "index_fill_", "index_put_"]
    assert [str(w.message).split()[2] for w in caught] == words
    for write in (lambda x: x.add_(1), lambda x: x.copy_(torch.ones(3)), lambda x: x.scatter_(0, index, 1.0)):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            write(expanded())


@pytest.mark.parametrize(
    "write",
    [
        lambda x, i: x[1:4].scatter_(0, i, x[:3]),
        lambda x, i: x[1:4].scatter_add_(0, i, x[:3]),
        lambda x, i: x[1:4].scatter_reduce_(0, i, x[:3], "sum"),
        lambda x, i: x[1:4].index_add_(0, i, x[:3]),
        lambda x, i: x[1:4].index_copy_(0, i, x[:3]),
        lambda x, i: x[1:4].index_reduce_(0, i, x[:3], "prod"),
        lambda x, i: x[1:4].put_(i, x[:3]),
        lambda x, i: x[1:4].index_put_((i,), x[:3]),
        lambda x, i: x[1:4].copy_(x[:3]),
        lambda x, i: x[1:4].__setitem__(slice(None), x[:3]),
        lambda x, i: x.scatter_(0, torch.arange(6), x),
        lambda x, i: torch.cumsum(x[:3], 0, out=x[1:4]),
    ],
)
def test_what_is_written_may_not_be_read(write):
    x = torch.arange(6.0)
    with pytest.raises(
        RuntimeError, match="some elements of the input tensor and the written-to tensor refer to a single"
    ):
        write(x, T([0, 1, 2]))
    assert x.tolist() == [0, 1, 2, 3, 4, 5]


def test_memory_that_cannot_be_had():
    for make in (lambda: torch.empty(1 << 60), lambda: torch.zeros(1).expand(1 << 50) + 1, lambda: torch.rand(1 << 50)):
        with pytest.raises(RuntimeError, match="can't allocate memory: you tried to allocate"):
            make()
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed with sizes="):
        torch.empty(1 << 31, 1 << 31, 4)


def test_a_stream_that_begins_anew_when_it_is_asked_for_its_iterator():
    class Numbers(torch.utils.data.IterableDataset):
        def __iter__(self):
            self.i = 0
            return self

        def __next__(self):
            self.i += 1
            if self.i > 3:
                raise StopIteration
            return self.i

    batches = [batch.tolist() for batch, _ in zip(torch.utils.data.DataLoader(Numbers(), batch_size=2), range(5))]
    assert batches == [[1, 2], [3]]
