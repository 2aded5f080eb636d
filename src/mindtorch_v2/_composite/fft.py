"""`torch.fft`: what its functions do around the three transforms that have kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mindtorch_v2 import _dtype
from mindtorch_v2._generated import functions as F
from mindtorch_v2._rules._common import wrap_dim, wrap_existing_dim
from mindtorch_v2._tensor import Tensor

Dims = Sequence[int] | None
_MODES = {None: (0, 2), "backward": (0, 2), "ortho": (1, 1), "forward": (2, 0)}


def _mode(norm: str | None, forward: bool) -> int:
    """How to scale: 0 not, 1 by the root of the number of points, 2 by the number."""
    if norm not in _MODES:
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    return _MODES[norm][0 if forward else 1]


def _promoted(x: Tensor, complex: bool) -> Tensor:
    """x in the floating (or complex) dtype in which it is transformed."""
    kind = x.dtype
    if kind.category < _dtype.CATEGORY_FLOATING:
        kind = _dtype.get_default_dtype()
    if kind in (_dtype.float16, _dtype.bfloat16) or kind in _dtype.FLOAT8:
        raise RuntimeError(f"Unsupported dtype {kind.cpp}")
    if complex:
        kind = kind.to_complex()
    return x if kind is x.dtype else F._to_copy(x, dtype=kind)


def _resized(x: Tensor, dims: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """x cut, or filled up with zeros, to the sizes along the dims; -1 keeps one."""
    padding = [0] * (2 * x.dim())
    grows = False
    for dim, size in zip(dims, sizes, strict=True):
        if size == -1:
            continue
        have = x.shape[dim]
        if size < have:
            x = F.slice(x, dim, 0, size)
        elif size > have:
            grows = True
            padding[2 * (x.dim() - 1 - dim) + 1] = size - have
    return F.constant_pad_nd(x, padding, 0) if grows else x


def _check_points(count: int) -> None:
    if count < 1:
        raise RuntimeError(f"Invalid number of data points ({count}) specified")


def _one_dim(x: Tensor, n: int | None, dim: int) -> tuple[Tensor, int]:
    """(the input of n points, the dimension)."""
    if not x.dim():
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    at = wrap_dim(dim, x.dim())
    count = x.shape[at] if n is None else n
    _check_points(count)
    return (x if n is None else _resized(x, [at], [n])), at


# One dimension


def _c2c(x: Tensor, n: int | None, dim: int, norm: str | None, forward: bool) -> Tensor:
    mode = _mode(norm, forward)
    if not x.dtype.is_complex and forward:
        x, at = _one_dim(_promoted(x, False), n, dim)
        return F._fft_r2c(x, [at], mode, False)
    x = _promoted(x, True)
    x, at = _one_dim(x, n, dim)
    return F._fft_c2c(x, [at], mode, forward)


def fft(self: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The transform."""
    return _c2c(self, n, dim, norm, True)


def ifft(self: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse transform."""
    if self.dtype.is_complex:
        return _c2c(self, n, dim, norm, False)
    x, at = _one_dim(_promoted(self, False), n, dim)
    return F.conj(F._fft_r2c(x, [at], _mode(norm, False), False))


def _r2c(name: str, x: Tensor, n: int | None, dim: int, mode: int) -> Tensor:
    if x.dtype.is_complex:
        raise RuntimeError(f"{name} expects a real input tensor, but got {x.dtype.cpp}")
    x, at = _one_dim(_promoted(x, False), n, dim)
    return F._fft_r2c(x, [at], mode, True)


def rfft(self: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The first half of the transform of real numbers."""
    return _r2c("rfft", self, n, dim, _mode(norm, True))


def ihfft(self: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The first half of the inverse transform of real numbers."""
    return F.conj(_r2c("ihfft", self, n, dim, _mode(norm, False)))


def _c2r(x: Tensor, n: int | None, dim: int, mode: int, conjugate: bool) -> Tensor:
    x = _promoted(x, True)
    if not x.dim():
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    at = wrap_dim(dim, x.dim())
    count = 2 * (x.shape[at] - 1) if n is None else n
    _check_points(count)
    if n is not None:
        x = _resized(x, [at], [n // 2 + 1])
    return F._fft_c2r(F.conj(x) if conjugate else x, [at], mode, count)


def irfft(self: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `rfft`."""
    return _c2r(self, n, dim, _mode(norm, False), False)


def hfft(self: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The real transform of a half that is Hermitian."""
    return _c2r(self, n, dim, _mode(norm, True), True)


# Several dimensions


def _shape_and_dims(x: Tensor, s: Dims, dim: Dims) -> tuple[list[int], list[int]]:
    """(sizes, dims) of a transform of several dimensions; a size is -1 where the input's stays."""
    if dim is not None:
        if not x.dim() and len(dim):
            raise IndexError(f"Dimension specified as {dim[0]} but tensor has no dimensions")
        dims = [wrap_dim(d, x.dim()) for d in dim]
        if len(set(dims)) < len(dims):
            raise RuntimeError("FFT dims must be unique")
        if s is not None and len(s) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    elif s is not None:
        if len(s) > x.dim():
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {x.dim()} dimensions.")
        dims = list(range(x.dim() - len(s), x.dim()))
    else:
        dims = list(range(x.dim()))
    sizes = [x.shape[d] for d in dims]
    if s is not None:
        sizes = [have if want == -1 else want for want, have in zip(s, sizes, strict=True)]
    for size in sizes:
        _check_points(size)
    return sizes, dims


def fftn(self: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The transform of several dimensions."""
    return _c2c_n(self, s, dim, norm, True)


def ifftn(self: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The inverse transform of several dimensions."""
    return _c2c_n(self, s, dim, norm, False)


def _c2c_n(x: Tensor, s: Dims, dim: Dims, norm: str | None, forward: bool) -> Tensor:
    x = _promoted(x, True)
    sizes, dims = _shape_and_dims(x, s, dim)
    return F._fft_c2c(_resized(x, dims, sizes), dims, _mode(norm, forward), forward)


def _real_input(name: str, text: str, x: Tensor) -> Tensor:
    if x.dtype.is_complex:
        raise RuntimeError(text)
    return _promoted(x, False)


def rfftn(self: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The transform of real numbers, of whose last dimension the first half is kept."""
    text = f"rfftn expects a real-valued input tensor, but got {self.dtype.cpp}"
    x = _real_input("rfftn", text, self)
    sizes, dims = _shape_and_dims(x, s, dim)
    if not dims:
        raise RuntimeError("rfftn must transform at least one axis")
    return F._fft_r2c(_resized(x, dims, sizes), dims, _mode(norm, True), True)


def ihfftn(self: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The inverse transform of real numbers, of whose last dimension the first half is kept."""
    x = _real_input("ihfftn", f"Only supports floating-point dtypes, but found: {self.dtype.cpp}", self)
    sizes, dims = _shape_and_dims(x, s, dim)
    if not dims:
        raise RuntimeError("ihfftn must transform at least one axis")
    mode = _mode(norm, False)
    half = F.conj(F._fft_r2c(_resized(x, dims, sizes), dims[-1:], mode, True))
    return half if len(dims) == 1 else F._fft_c2c(half, dims[:-1], mode, False)


def _half_shape(name: str, x: Tensor, s: Dims, dim: Dims) -> tuple[Tensor, list[int], int]:
    """(the input, the dims, the size of the last one) of a transform from a half to real numbers."""
    dims = [wrap_dim(d, x.dim()) for d in dim] if dim is not None else None
    if dims is None:
        count = x.dim() if s is None else len(s)
        if count > x.dim():
            raise RuntimeError(f"Got shape with {count} values but input tensor only has {x.dim()} dimensions.")
        dims = list(range(x.dim() - count, x.dim()))
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    sizes, dims = _shape_and_dims(x, s, dims)
    last = 2 * (x.shape[dims[-1]] - 1) if s is None or s[-1] == -1 else s[-1]
    _check_points(last)
    sizes[-1] = last // 2 + 1
    return _resized(x, dims, sizes), dims, last


def irfftn(self: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The inverse of `rfftn`."""
    x, dims, last = _half_shape("irfftn", _promoted(self, True), s, dim)
    return F._fft_c2r(x, dims, _mode(norm, False), last)


def hfftn(self: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The real transform of what is Hermitian, of whose last dimension the first half is given."""
    x, dims, last = _half_shape("hfftn", _promoted(self, True), s, dim)
    mode = _mode(norm, True)
    if len(dims) > 1:
        x = F._fft_c2c(x, dims[:-1], mode, True)
    return F._fft_c2r(F.conj(x), dims[-1:], mode, last)


def fft2(self: Tensor, s: Dims = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """`fftn` of two dimensions."""
    return fftn(self, s, dim, norm)


def ifft2(self: Tensor, s: Dims = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """`ifftn` of two dimensions."""
    return ifftn(self, s, dim, norm)


def rfft2(self: Tensor, s: Dims = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """`rfftn` of two dimensions."""
    return rfftn(self, s, dim, norm)


def irfft2(self: Tensor, s: Dims = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """`irfftn` of two dimensions."""
    return irfftn(self, s, dim, norm)


def hfft2(self: Tensor, s: Dims = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """`hfftn` of two dimensions."""
    return hfftn(self, s, dim, norm)


def ihfft2(self: Tensor, s: Dims = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """`ihfftn` of two dimensions."""
    return ihfftn(self, s, dim, norm)


# Frequencies and shifts


def _frequency_options(name: str, dtype: Any) -> Any:
    kind = _dtype.get_default_dtype() if dtype is None else dtype
    if kind.category < _dtype.CATEGORY_FLOATING:
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    return kind


def _step(n: int, d: float) -> float:
    return math.inf if n * d == 0 else 1.0 / (n * d)


def fftfreq(
    n: int, d: float = 1.0, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool | None = None
) -> Tensor:
    """The frequencies of the n points of a transform whose samples are d apart."""
    kind = _frequency_options("fftfreq", dtype)
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    first = F.arange((n + 1) // 2, dtype=kind, device=device)
    second = F.arange(-(n // 2), 0, dtype=kind, device=device)
    return F.mul(F.cat([first, second]), _step(n, d))


def rfftfreq(
    n: int, d: float = 1.0, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool | None = None
) -> Tensor:
    """The frequencies of what `rfft` keeps."""
    kind = _frequency_options("rfftfreq", dtype)
    return F.mul(F.arange(n // 2 + 1, dtype=kind, device=device), _step(n, d))


def _shifted(x: Tensor, dim: Dims, more: int) -> Tensor:
    dims = list(range(x.dim())) if dim is None else [wrap_existing_dim(d, x.dim()) for d in dim]
    return F.roll(x, [(x.shape[d] + more) // 2 for d in dims], dims)


def fftshift(self: Tensor, dim: Dims = None) -> Tensor:
    """Frequency 0 in the middle."""
    return _shifted(self, dim, 0)


def ifftshift(self: Tensor, dim: Dims = None) -> Tensor:
    """The inverse of `fftshift`."""
    return _shifted(self, dim, 1)
