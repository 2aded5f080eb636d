"""Fourier transforms of many lines and of long ones, against numpy's in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import native

pytestmark = [
    pytest.mark.skipif(native.extension is None, reason="needs the extension"),
    pytest.mark.usefixtures("vectors"),
]

KINDS = {"float32": (np.float32, np.complex64, 2.0**-23), "float64": (np.float64, np.complex128, 2.0**-52)}
POINTS = [2, 3, 7, 16, 30, 31, 37, 64, 93, 128, 200, 243, 512, 625, 1000, 1001, 2048]
LINES = [1, 3, 16, 17, 40]
LONG = [4096, 5000, 6144, 8193, 16384, 65536, 99999, 100000, 131072]


def compare(found: Any, wanted: np.ndarray, kind: str) -> None:
    found = found.resolve_conj().numpy()
    real, number, eps = KINDS[kind]
    assert found.shape == wanted.shape
    assert found.dtype == (number if wanted.dtype.kind == "c" else real)
    assert np.abs(found - wanted).max() <= 8 * eps * np.abs(wanted).max()


def check(x: np.ndarray, numbers: np.ndarray, n: int, dim: int, kind: str) -> None:
    """x: reals; numbers: of the same shape."""
    wide, real = numbers.astype(np.complex128), x.astype(np.float64)
    given, reals = torch.from_numpy(numbers), torch.from_numpy(x)
    compare(torch.fft.fft(given, dim=dim), np.fft.fft(wide, axis=dim), kind)
    compare(torch.fft.ifft(given, dim=dim, norm="ortho"), np.fft.ifft(wide, axis=dim, norm="ortho"), kind)
    compare(torch.fft.fft(reals, dim=dim), np.fft.fft(real, axis=dim), kind)
    compare(torch.fft.rfft(reals, dim=dim, norm="forward"), np.fft.rfft(real, axis=dim, norm="forward"), kind)
    half = np.ascontiguousarray(np.take(numbers, range(n // 2 + 1), axis=dim))
    compare(
        torch.fft.irfft(torch.from_numpy(half), n, dim=dim), np.fft.irfft(half.astype(np.complex128), n, axis=dim), kind
    )
    compare(
        torch.fft.hfft(torch.from_numpy(half), n, dim=dim), np.fft.hfft(half.astype(np.complex128), n, axis=dim), kind
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", POINTS)
@pytest.mark.parametrize("lines", LINES)
def test_lines(lines: int, n: int, kind: str) -> None:
    rng = np.random.default_rng(n)
    real, number, _ = KINDS[kind]
    x = rng.standard_normal((2, lines, n)).astype(real)
    numbers = (x + 1j * rng.standard_normal(x.shape)).astype(number)
    check(x, numbers, n, -1, kind)
    check(np.ascontiguousarray(x.swapaxes(1, 2)), np.ascontiguousarray(numbers.swapaxes(1, 2)), n, 1, kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", LONG)
def test_long_lines(n: int, kind: str) -> None:
    rng = np.random.default_rng(n)
    real, number, _ = KINDS[kind]
    x = rng.standard_normal((2, n)).astype(real)
    check(x, (x + 1j * rng.standard_normal(x.shape)).astype(number), n, -1, kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(64, 64), (5, 40, 36), (33, 93), (3, 4, 130), (500, 18)])
def test_several_dimensions(shape: tuple, kind: str) -> None:
    rng = np.random.default_rng(len(shape))
    real, number, _ = KINDS[kind]
    x = rng.standard_normal(shape).astype(real)
    numbers = (x + 1j * rng.standard_normal(shape)).astype(number)
    wide = numbers.astype(np.complex128)
    compare(torch.fft.fftn(torch.from_numpy(numbers)), np.fft.fftn(wide), kind)
    compare(torch.fft.ifft2(torch.from_numpy(numbers)), np.fft.ifft2(wide), kind)
    compare(torch.fft.fftn(torch.from_numpy(numbers), dim=(1, 0)), np.fft.fftn(wide, axes=(1, 0)), kind)
    compare(torch.fft.rfftn(torch.from_numpy(x)), np.fft.rfftn(x.astype(np.float64)), kind)
    half = np.ascontiguousarray(numbers[..., : shape[-1] // 2 + 1])
    kept = half.copy()
    compare(torch.fft.irfftn(torch.from_numpy(half), shape), np.fft.irfftn(half.astype(np.complex128), shape), kind)
    assert np.array_equal(half, kept)
    # Other layouts are copied first.
    compare(torch.fft.fft2(torch.from_numpy(numbers).transpose(0, 1)), np.fft.fft2(wide.swapaxes(0, 1)), kind)


def test_more_tables_than_are_kept() -> None:
    rng = np.random.default_rng(1)
    for n in [*range(32, 96, 2), *range(32, 96, 2)]:
        x = rng.standard_normal((40, n))
        compare(torch.fft.rfft(torch.from_numpy(x)), np.fft.rfft(x), "float64")
