"""Numbers rounded to half types, the order in which calls are refused, and warnings: values and sentences are PyTorch's."""

import functools
import math
import warnings

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._generated import functions
from mindtorch_v2.nn import functional as F

HALVES = (torch.float16, torch.bfloat16)


def refused(call, *words):
    with pytest.raises(Exception) as caught:
        call()
    for word in words:
        assert word in str(caught.value)
    return type(caught.value)


def warned(call):
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            call()
    finally:
        torch.set_warn_always(False)
    return [str(one.message) for one in found]


@pytest.mark.parametrize("kind", HALVES)
def test_numbers_are_rounded_before_they_are_compared(kind):
    x = torch.tensor([0.3, 0.7, math.nan], dtype=kind)
    for number in (0.3, torch.tensor(0.3), torch.tensor(0.3, dtype=torch.float64)):
        assert (x == number).tolist() == [True, False, False]
        assert (x > number).tolist() == [False, True, False]
        assert (x <= number).tolist() == [True, False, False]


@pytest.mark.parametrize("kind, least, most, after", [
    (torch.float16, 2.0**-24, 65504.0, 1.0009765625),
    (torch.bfloat16, 2.0**-133, 3.3895313892515355e38, 1.0078125),
])  # fmt: skip
def test_nextafter_steps_in_the_dtype(kind, least, most, after):
    x = torch.tensor([0.0, 0.0, math.inf, 1.0, 10.0], dtype=kind)
    y = torch.tensor([math.inf, -math.inf, 0.0, 2.0, 10.0], dtype=kind)
    assert torch.nextafter(x, y).tolist() == [least, -least, most, after, 10.0]


@pytest.mark.parametrize("kind", HALVES)
def test_hardshrink_rounds_its_bound(kind):
    x = torch.tensor([0.3, -0.3, 0.5], dtype=kind, requires_grad=True)
    y = F.hardshrink(x, 0.3)
    assert y.tolist() == [0.0, 0.0, 0.5]
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 1.0]
    assert F.hardshrink(x, math.nan).tolist() == x.tolist()


def test_sums_of_complex_exponentials_at_infinity():
    def sums(*values):
        return torch.logcumsumexp(torch.tensor(values, dtype=torch.complex128), 0).tolist()

    assert sums(complex(-math.inf, 5), 1 + 1j)[0] == complex(-math.inf, 0)
    first, second = sums(complex(math.nan, 1), 1 + 1j)
    assert math.isnan(first.real) and math.isnan(first.imag) and math.isnan(second.imag)
    assert sums(complex(math.inf, 0), complex(math.inf, 1))[1] == complex(math.inf, math.pi / 4)


def test_overlap_is_refused_before_the_dtype():
    x = torch.ones(4)
    assert refused(lambda: x[:1].expand(3).bitwise_not_(), "single memory location") is RuntimeError
    refused(lambda: torch.bitwise_not(x[:-1], out=x[1:]), "single memory location")
    refused(lambda: x[1:].__ilshift__(x[:-1]), "single memory location")
    refused(lambda: torch.ones(1, dtype=torch.int32).expand(3).exp_(), "single memory location")
    assert refused(lambda: x.bitwise_not_(), "bitwise_not_cpu") is NotImplementedError
    assert F.threshold(x[:1].expand(3), 2.0, 5.0, inplace=True).tolist() == [5.0] * 3


def test_resizing_keeps_strides_of_the_same_shape():
    x = torch.empty(2, 3).t()
    assert x.resize_(3, 2).stride() == x.resize_as_(torch.empty(3, 2)).stride() == (1, 3)
    y = torch.empty(0).resize_((2, 3, 4, 5), memory_format=torch.channels_last)
    assert y.stride() == (60, 1, 15, 3)
    assert y.resize_as_(torch.empty(2, 3, 4, 5)).stride() == (60, 1, 15, 3)
    assert y.resize_as_(torch.empty(1, 2, 3, 4), memory_format=torch.preserve_format).stride() == (24, 12, 4, 1)
    z = torch.arange(120.0)
    before = z.data_ptr()
    assert z.resize_((2, 3, 4, 5), memory_format=torch.channels_last).data_ptr() == before and z[1, 2, 3, 4] == 119
    refused(lambda: y.resize_([2**62, 2**62]), "numel: integer multiplication overflow")
    refused(lambda: y.resize_([-1, 2]), "numel: integer multiplication overflow")


def test_pools_want_elements_in_every_dimension_but_the_batch():
    for dims in (1, 2, 3):
        pool = getattr(F, f"adaptive_max_pool{dims}d")
        words = f"adaptive_max_pool{dims}d(): Expected input to have non-zero size for non-batch dimensions"
        refused(functools.partial(pool, torch.ones(1, 0, *[5] * dims), 3), words)
        assert pool(torch.ones(0, 2, *[5] * dims), 3).shape == (0, 2, *[3] * dims)
    assert F.adaptive_avg_pool1d(torch.ones(1, 0, 5), 3).shape == (1, 0, 3)
    refused(lambda: F.fractional_max_pool2d(torch.ones(1, 1, 7, 7), (), output_size=3), "kernel_size must either be")
    refused(lambda: F.fractional_max_pool3d(torch.ones(1, 1, 7, 7, 7), 2, output_size=(3, 3)), "tuple of three Ints")


def test_sparse_gradients_of_embeddings():
    table = torch.nn.Embedding(10, 0, sparse=True)
    table(torch.tensor([[0, 2], [4, 3]])).sum().backward()
    assert table.weight.grad.shape == (10, 0) and table.weight.grad._nnz() == 0
    values = torch.ones(3, 1).expand(3, 3)  # as the gradient of a sum is: nothing is summed then
    a = torch.sparse_coo_tensor([[7, 1, 3]], values, (10, 3))
    assert (a + a)._indices().tolist() == [[7, 1, 3, 7, 1, 3]]


def test_dtypes_of_buffers():
    half, wide = torch.tensor([1.0, 2.0], dtype=torch.float16), torch.empty(2)
    refused(lambda: half.float_power_(2.0), "the base given to float_power_ has dtype Half", "requires dtype Double")
    refused(lambda: torch.float_power(half, 2.0, out=wide), "the output given to float_power has dtype Float")
    complex_, real, whole = torch.ones(2, dtype=torch.complex64), torch.ones(2), torch.ones(2, dtype=torch.int64)
    refused(lambda: torch.heaviside(real, real, out=complex_), "heaviside is not yet implemented for complex tensors.")
    refused(lambda: torch.heaviside(real, real, out=whole), "tensors with different dtypes.")
    refused(
        lambda: torch.complex(real, real, out=real),
        "Expected object of scalar type ComplexFloat but got scalar type Float",
    )
    refused(lambda: torch.quantile(real, 0.5, out=whole), "quantile() out tensor must be same dtype")
    refused(lambda: torch.nonzero(real, out=real), "nonzero: Expected out tensor to have scalar type Long")
    refused(lambda: torch.frexp(real, out=(whole, whole)), "torch.frexp() expects mantissa to have dtype float")
    assert torch.abs(complex_, out=torch.empty(2, dtype=torch.complex64)).tolist() == [1, 1]
    refused(lambda: torch.abs(complex_, out=whole), "result type Float can't be cast")


def test_warnings_that_pytorch_gives():
    assert "degrees of freedom is <= 0" in warned(lambda: torch.var(torch.ones(1, 2, 1, 1), correction=20))[0]
    assert warned(lambda: torch.std(torch.ones(1, 2, 1, 1), correction=2))[0].startswith("std(): degrees")
    assert (
        "boundary tensor is non-contiguous" in warned(lambda: torch.searchsorted(torch.ones(26)[::2], torch.ones(7)))[0]
    )
    assert "A window was not provided" in warned(lambda: torch.stft(torch.ones(30), 10, return_complex=True))[0]
    assert warned(lambda: torch.zeros(3, out=torch.empty(2))) == []
    assert (
        "does not match the computed number of elements 10" in warned(lambda: torch.arange(10, out=torch.empty(3)))[0]
    )
    assert "torch.range is deprecated" in warned(lambda: torch.range(0, 17))[0]


def test_what_stands_in_indices_is_said_before_the_dtype():
    x, mask = torch.arange(4), torch.ones(4, dtype=torch.bool)
    refused(lambda: x.index_put_((mask,), torch.ones(3)), "shape mismatch: value tensor of shape [3]")
    refused(lambda: x.index_put_((mask,), torch.ones(4)), "source and destination dtypes match")
    refused(
        lambda: torch.searchsorted(torch.ones(3), torch.ones(2), sorter=torch.tensor([0, 1, 3])).tolist(),
        "sorter index out of range",
    )


def test_constructors():
    assert torch.cat([torch.ones(0), torch.ones(0)], dim=3).shape == (0,)
    items = [0]
    items.append(items)
    refused(lambda: torch.tensor(items), "self-referential lists are incompatible")
    refused(lambda: torch.tensor([np.ones((3, 3)), np.ones((3, 0))]), "expected sequence of length 3 at dim 2 (got 0)")
    refused(lambda: torch.FloatTensor((2.0,), device="meta"), "legacy constructor expects device type: cpu")
    refused(
        lambda: torch.arange(3).new_full((2,), 1, requires_grad=True),
        "Only Tensors of floating point and complex dtype",
    )


def test_private_operators():
    a = torch.tensor([-3.0, 2.0])
    assert torch._add_relu(a, 1, alpha=2).tolist() == [0, 4]
    x = torch.randint(-5, 5, (4, 3), dtype=torch.int8)
    assert torch._int_mm(x, x.t()).equal(x.int() @ x.t().int())
    refused(lambda: torch._int_mm(x.int(), x.t()), "Expected self dtype to be int8 or uint8")
    assert torch._addmm_activation(torch.ones(2), -torch.ones(2, 3), torch.ones(3, 2)).tolist() == [[0, 0], [0, 0]]
    mask = torch.tensor([[True, False, True]])
    assert torch._masked_softmax(torch.ones(1, 3), mask).tolist() == [[0, 1, 0]]
    assert torch._masked_softmax(torch.ones(1, 3), torch.ones_like(mask)).isnan().all()
    assert functions.slow_conv3d(torch.ones(1, 1, 3, 3, 3), torch.ones(2, 1, 2, 2, 2), 2).shape == (1, 2, 2, 2, 2)


def test_lu_solve_looks_at_pivots():
    lu, pivots = torch.linalg.lu_factor(torch.eye(2) + 1)
    refused(lambda: torch.linalg.lu_solve(lu, pivots * 0, torch.ones(2, 1)), "must all be greater or equal to 1")
    refused(lambda: torch.linalg.lu_solve(lu, pivots + 3, torch.ones(2, 1)), "smaller or equal to LU.size(-2)")
    refused(lambda: torch.linalg.pinv(torch.eye(2), rtol=torch.tensor(1j)), "rtol tensor of complex type")


def test_lists_of_tensors():
    one = [torch.ones(1)]
    refused(lambda: torch._foreach_div([], one), "got 0 and 1")
    refused(lambda: torch._foreach_div([], []), "at least one tensor")


def test_uninitialized_buffers_are_copied():
    from mindtorch_v2.nn.parameter import UninitializedBuffer

    first = UninitializedBuffer()
    assert first.copy_(UninitializedBuffer()) is first
