"""Calls at the edge of what kernels and rules take. What they give was checked against PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import mindtorch_v2 as torch


def _bytes(*values: int) -> Any:
    return torch.tensor(values, dtype=torch.uint8).reshape(2, 2)


def test_factors_of_products_wrap_around() -> None:
    u = _bytes(3, 4, 1, 6)
    assert torch.addmm(u, u, u, beta=2, alpha=-1).tolist() == [[249, 228], [249, 228]]
    assert torch.addmm(u, u, u, alpha=1.5).tolist() == torch.addmm(u, u, u).tolist()
    assert torch.addbmm(u, u[None], u[None], alpha=-1).tolist() == [[246, 224], [248, 222]]
    with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
        torch.addmm(u, u, u, alpha=300)


def test_index_reduce_without_dimensions() -> None:
    self, index, source = torch.tensor(-2.0), torch.tensor([0]), torch.tensor(-3.0)
    assert torch.index_reduce(self, 0, index, source, "prod", include_self=False).item() == -3.0
    assert torch.index_reduce(self, 0, index, source, "mean", include_self=True).item() == -2.5


def test_pivots_beyond_the_rows_do_not_count() -> None:
    factors = torch.tensor([[-2.75, 3.75, 0.0], [-3.5, -4.0, -1.75]])
    permutation, lower, upper = torch.lu_unpack(factors, torch.tensor([1, 2, 2], dtype=torch.int32))
    assert permutation.tolist() == [[1, 0], [0, 1]]
    assert lower.tolist() == [[1, 0], [-3.5, 1]]
    assert upper.tolist() == [[-2.75, 3.75, 0], [0, -4, -1.75]]


def test_pivots_out_of_range() -> None:
    with pytest.raises(RuntimeError, match=r"pivots passed to lu_unpack must be between 1 and LU.size\(-2\) inclusive"):
        torch.lu_unpack(torch.zeros(2, 3), torch.tensor([1, 7], dtype=torch.int32))


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_celu_does_not_divide_by_zero(device: str) -> None:
    with pytest.raises(RuntimeError, match="^ZeroDivisionError: alpha cannot be 0 for CELU$"):
        torch.celu(torch.ones(2, device=device), 0)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_strides_of_single_places_do_not_hinder_complex_views(device: str) -> None:
    pairs = torch.ones(4, device=device).as_strided((1, 2), (3, 1))
    assert torch.view_as_complex(pairs).shape == (1,)
    with pytest.raises(RuntimeError, match="stride divisible by 2"):
        torch.view_as_complex(torch.ones(5, device=device).as_strided((2, 2), (3, 1)))


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_pairs_of_half_are_complex_numbers() -> None:
    for device in ("cpu", "meta") if torch.complex32.np is not None else ("meta",):
        pairs = torch.ones(3, 2, dtype=torch.float16, device=device)
        assert torch.view_as_complex(pairs).dtype is torch.complex32 and torch.view_as_complex(pairs).shape == (3,)


@pytest.mark.parametrize("name", ["gelu", "silu", "sigmoid", "erf"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_last_digits_do_not_depend_on_layouts(name: str, dtype: Any) -> None:
    from mindtorch_v2._dispatch import ops

    function = getattr(ops, name)
    x = torch.linspace(-4, 4, 7 * 33, dtype=dtype).reshape(7, 33)
    expected = function(x)
    assert torch.equal(function(x.t().contiguous().t()), expected)
    wide = torch.empty(7, 66, dtype=dtype)[:, ::2]
    wide.copy_(x)
    assert torch.equal(function(wide), expected)
    assert torch.equal(function(x, out=torch.empty(33, 7, dtype=dtype).t()), expected)


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
def test_corrections_are_real(name: str, device: str) -> None:
    with pytest.raises(RuntimeError, match="^value cannot be converted to type double without overflow$"):
        getattr(torch, name)(torch.ones(3, dtype=torch.complex64, device=device), correction=1 + 2j)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_gradients_that_do_not_fit_are_refused(device: str) -> None:
    from mindtorch_v2._dispatch import ops

    x = torch.ones(2, 2, 2, device=device)
    with pytest.raises(RuntimeError, match=r"output.size\(3\) = 1 but got grad_output.size\(3\) = 3"):
        ops.upsample_bicubic2d_backward(torch.ones(1, 1, 1, 3, device=device), [1, 1], [1, 1, 2, 2], False)
    with pytest.raises(RuntimeError, match="expected scalar type Long but found Float"):
        ops.adaptive_max_pool2d_backward(x[:, :1, :1], x, x[:, :1, :1])
    with pytest.raises(RuntimeError, match=r"expected sizes \[2, 1, 1\] for `grad_output` but got sizes \[0, 1, 1\]"):
        ops.adaptive_max_pool2d_backward(x[:0, :1, :1], x, x[:, :1, :1].long())
    with pytest.raises(RuntimeError, match="diagonal dimensions cannot be identical"):
        ops.diagonal_backward(torch.ones(2, device=device), [2, 2], 0, -1, 1)


def test_tensors_on_two_devices_are_not_compared() -> None:
    with pytest.raises(RuntimeError, match="different devices. Got: meta and cpu"):
        torch.equal(torch.ones(0, device="meta"), torch.ones(2))
    with pytest.raises(RuntimeError, match="got tau on cpu and input on meta"):
        torch.orgqr(torch.ones(0, 0, device="meta"), torch.ones(0))


def test_tensors_without_dimensions_are_not_numbers() -> None:
    x, y = torch.tensor(-2.0, dtype=torch.float64), torch.tensor(3)
    assert torch.special.xlogy(x, y).dtype is torch.float64


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_no_dimension_to_roll_and_no_mean_of_bools(device: str) -> None:
    with pytest.raises(IndexError, match="^Dimension specified as 5 but tensor has no dimensions$"):
        torch.roll(torch.tensor(3.0, device=device), [1], [5])
    bools, index = torch.ones(2, dtype=torch.bool, device=device), torch.zeros(1, dtype=torch.int64, device=device)
    with pytest.raises(NotImplementedError, match="scatter_gather_tensor_cpu_reduce_mean"):
        torch.scatter_reduce(bools, 0, index, bools[:1], "mean")


def test_threshold_wraps_its_value() -> None:
    assert torch.threshold(torch.tensor([2, 3], dtype=torch.uint8), 2, -1).tolist() == [255, 3]
    assert torch.threshold(torch.tensor([1, 2], dtype=torch.uint8), 1.5, 1.5).tolist() == [1, 2]


def test_windows_far_larger_than_the_input():
    """As EfficientNet has them on small images: memory goes by the input, not by the window."""
    F = torch.nn.functional
    x = torch.arange(8.0).reshape(1, 2, 2, 2).requires_grad_()
    out = F.avg_pool2d(x, 1 << 20, ceil_mode=True)
    assert out.shape == (1, 2, 1, 1) and out.flatten().tolist() == [1.5, 5.5]
    out.sum().backward()
    assert x.grad.flatten().tolist() == [0.25] * 8
    assert F.avg_pool2d(x, (1 << 20, 1), ceil_mode=True).flatten().tolist() == [1, 2, 5, 6]
    assert F.max_pool2d(x, 1 << 20, ceil_mode=True).flatten().tolist() == [3, 7]
    values, indices = F.max_pool2d(x.detach().repeat(8, 1, 1, 1), (1, 1 << 20), ceil_mode=True, return_indices=True)
    assert values[5, 1].flatten().tolist() == [5, 7] and indices[5, 1].flatten().tolist() == [1, 3]
    with pytest.raises(
        RuntimeError, match=r"Given input size: \(2x2x2\). Calculated output size: \(2x0x0\). Output size is too small"
    ):
        F.avg_pool2d(x, 1 << 20)


def test_a_stride_of_none_is_the_window():
    x = torch.arange(16.0).reshape(1, 1, 4, 4)
    for pool in (torch.nn.functional.avg_pool2d, torch.max_pool2d, torch.nn.functional.max_pool2d):
        assert torch.equal(pool(x, 2, None), pool(x, 2)) and torch.equal(pool(x, 2, stride=None), pool(x, 2))
    with pytest.raises(
        TypeError, match=r"avg_pool2d\(\): argument 'padding' \(position 4\) must be tuple of ints, not NoneType"
    ):
        torch.nn.functional.avg_pool2d(x, 2, None, None)
