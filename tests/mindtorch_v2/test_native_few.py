"""Kernels in C that serve few elements: Fourier transforms, shifts, triangles, traces, complex numbers, zeta, masks with values of tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._backends.cpu.ops import fft as kernels
from mindtorch_v2._dispatch import native

SIZES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 30, 49, 64]


@pytest.mark.skipif(native.extension is None, reason="compares the extension with Python")
@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("normalization", [0, 1, 2])
def test_transforms_are_those_of_numpy(kind: str, normalization: int) -> None:
    made = np.random.default_rng(1)
    close: dict[str, Any] = {"rtol": 2e-5, "atol": 2e-5} if kind == "float32" else {"rtol": 1e-12, "atol": 1e-12}
    for n in SIZES:
        for shape, dims in (((n,), (0,)), ((2, n), (-1,)), ((n, 3), (0,)), ((3, n), (0, 1)), ((2, n, 2), (0, 2, 1))):
            x = made.standard_normal(shape).astype(kind)
            z = (x + 1j * made.standard_normal(shape)).astype(np.result_type(x, np.complex64))
            last = shape[dims[-1]]
            half = np.delete(z, range(last // 2 + 1, last), axis=dims[-1])
            for kernel, args in (
                (kernels.fft_c2c, (z, dims, normalization, True)),
                (kernels.fft_c2c, (z, dims, normalization, False)),
                (kernels.fft_r2c, (x, dims, normalization, True)),
                (kernels.fft_r2c, (x, dims, normalization, False)),
                (kernels.fft_c2r, (half, dims, normalization, last)),
            ):
                ours, theirs = kernel(*args), kernel.__wrapped__(*args)
                assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, (kernel, shape, dims)
                np.testing.assert_allclose(ours, theirs, **close, err_msg=f"{kernel} {shape} {dims}")


def test_transforms_of_units_are_exact() -> None:
    for n in (4, 8):
        made = torch.fft.fft(torch.tensor([0.0, 1.0] + [0.0] * (n - 2)))
        assert made[n // 4].tolist() == -1j and made[n // 2].tolist() == -1.0 and made[0].tolist() == 1.0


@pytest.mark.parametrize("kind", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8])
def test_shifts(kind: torch.dtype) -> None:
    bits, signed = 8 * kind.itemsize, kind is not torch.uint8
    values = [0, 1, 5, 100, 127] + ([-1, -100, -128] if signed else [200])
    x = torch.tensor(values, dtype=kind)

    def wrap(value: int) -> int:
        value %= 1 << bits
        return value - (1 << bits) if signed and value >> (bits - 1) else value

    for _ in range(3):
        for by in (0, 1, 3, bits - 1, bits, bits + 1) + ((-1,) if signed else ()):
            outside = by < 0 or by >= bits
            left = [0 if outside else wrap(v << by) for v in values]
            right = [v >> (bits - 1 if signed else bits) if outside else v >> by for v in values]
            each = torch.full_like(x, by)
            assert (x << by).tolist() == (x << each).tolist() == left
            assert (x >> by).tolist() == (x >> each).tolist() == right
            assert x.clone().__ilshift__(by).tolist() == left
            assert torch.bitwise_right_shift(x, each, out=torch.empty_like(x)).tolist() == right


@pytest.mark.parametrize(
    ("row", "column", "offset"), [(3, 4, 0), (4, 2, 1), (2, 5, -1), (3, 3, 9), (3, 3, -9), (0, 3, 0)]
)
def test_indices_of_triangles(row: int, column: int, offset: int) -> None:
    places = [(i, j) for i in range(row) for j in range(column)]
    for _ in range(3):
        lower, upper = torch.tril_indices(row, column, offset), torch.triu_indices(row, column, offset)
        assert list(zip(*lower.tolist())) == [(i, j) for i, j in places if j - i <= offset]
        assert list(zip(*upper.tolist())) == [(i, j) for i, j in places if j - i >= offset]
        assert lower.dtype is torch.int64 and lower.shape[0] == 2
    assert torch.tril_indices(2, 2, dtype=torch.int32).dtype is torch.int32


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.int64, torch.int32])
def test_traces(kind: torch.dtype) -> None:
    x = (torch.arange(12) % 7).view(3, 4).to(kind)
    for _ in range(3):
        for y in (x, x.t(), x[:, ::2], x[:0], x[1:]):
            wanted = sum(row[i] for i, row in enumerate(y.tolist()) if i < len(row))
            assert torch.trace(y).tolist() == wanted and torch.trace(y).dtype is (
                kind if kind.is_floating_point else torch.int64
            )


def test_complex_numbers_of_parts() -> None:
    a, b = torch.tensor([[1.0, -2.0], [math.inf, 0.0]]), torch.tensor([[3.0, 4.0], [5.0, -0.0]])
    for kind in (torch.float32, torch.float64):
        for _ in range(3):
            z = torch.complex(a.to(kind), b.to(kind))
            assert torch.equal(z.real, a.to(kind)) and torch.equal(z.imag, b.to(kind)) and z.is_contiguous()
            assert torch.complex(a.to(kind).t(), b.to(kind)).imag.tolist() == b.tolist()
            assert torch.complex(a.to(kind), b.to(kind)[0]).imag.tolist() == [[3.0, 4.0], [3.0, 4.0]]


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_zeta_and_polygamma(kind: torch.dtype) -> None:
    tolerance = 1e-6 if kind is torch.float32 else 1e-13
    x = torch.tensor([1.0, 0.5, 2.0, -0.5, 0.0, math.inf, math.nan], dtype=kind)
    wanted = {
        1: [math.pi**2 / 6, math.pi**2 / 2, math.pi**2 / 6 - 1, math.pi**2 / 2 + 4, math.inf, 0.0, math.nan],
        2: [
            -2.4041138063191885,
            -16.828796644234319,
            -0.4041138063191885,
            -0.8287966442343199,
            -math.inf,
            -0.0,
            math.nan,
        ],
    }
    for _ in range(3):
        for n, values in wanted.items():
            for made, value in zip(torch.polygamma(n, x).tolist(), values):
                assert made == pytest.approx(value, rel=tolerance, nan_ok=True)
        made = torch.special.zeta(
            torch.tensor([2.0, 4.0, 1.0, 0.5, 3.0], dtype=kind), torch.tensor([1.0, 1.0, 2.0, 2.0, -1.0], dtype=kind)
        )
        assert made.tolist() == pytest.approx(
            [math.pi**2 / 6, math.pi**4 / 90, math.inf, math.nan, math.inf], rel=tolerance, nan_ok=True
        )


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.int64, torch.bool, torch.bfloat16])
def test_masks_with_values_of_tensors(kind: torch.dtype) -> None:
    x = torch.tensor([[0, 1, 0], [1, 0, 1]]).to(kind)
    mask = torch.tensor([[True, False, True], [False, False, True]])
    one = torch.tensor(1)
    for _ in range(3):
        assert (
            x.masked_fill(mask, one.to(kind)).tolist()
            == x.clone().masked_fill_(mask, one).tolist()
            == [[1, 1, 1], [1, 0, 1]]
        )
        assert x.masked_fill(mask[0], one).tolist() == [[1, 1, 1], [1, 0, 1]]
        source = torch.tensor([1, 1, 0, 1]).to(kind)
        made = x.masked_scatter(mask, source)
        assert made.tolist() == [[1, 1, 1], [1, 0, 0]] and made.dtype is kind
        y = x.clone()
        assert y.masked_scatter_(mask, source) is y and y.tolist() == made.tolist()
        assert x.t().masked_scatter(mask.t(), source).tolist() == [[1, 1], [1, 0], [1, 0]]
        with pytest.raises(
            RuntimeError, match="masked_scatter: expected self and source to have same number of elements"
        ):
            x.masked_scatter(mask, source[:2]).tolist()


def test_masked_fill_with_a_tensor_has_gradients() -> None:
    x, value = torch.ones(3, requires_grad=True), torch.tensor(2.0, requires_grad=True)
    mask = torch.tensor([True, False, True])
    for _ in range(3):
        x.grad = value.grad = None
        (x.masked_fill(mask, value) * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
        assert x.grad.tolist() == [0.0, 2.0, 0.0] and value.grad.item() == 4.0  # type: ignore[attr-defined]


def test_polygamma_of_an_order_beyond_all_factorials_ends() -> None:
    assert torch.polygamma(1000, torch.tensor([0.5, 1.0])).tolist() == [-float("inf")] * 2
    assert torch.polygamma(2**62, torch.ones(2)).shape == (2,)
