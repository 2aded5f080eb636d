"""`torch.signal.windows`: windows of `M` points, as scipy.signal defines them.

`sym` makes a window for filters, symmetric; without it the window is one period of a periodic one, for spectra. Results have the shape (M,) and
`dtype`, float32 or float64 (the default dtype unless said); ValueError for another dtype, a layout that is not strided and a negative `M`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .. import _dtype
from .._generated import functions as F
from .._layout import strided
from .._tensor import Tensor

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]

_OPTIONS = dict[str, Any]


def _options(
    name: str, M: int, dtype: Any, layout: Any, device: Any, requires_grad: bool
) -> tuple[_OPTIONS, Tensor | None]:
    """What the points of a window are made with; the window itself where it has no shape to speak of."""
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    kind = _dtype.get_default_dtype() if dtype is None else dtype
    if kind not in (_dtype.float32, _dtype.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {kind}")
    options = {"dtype": kind, "layout": layout, "device": device, "requires_grad": requires_grad}
    if M == 0:
        return options, F.empty([0], **options)
    return options, F.ones([1], **options) if M == 1 else None


def _points(first: float, step: float, M: int, options: _OPTIONS) -> Tensor:
    return F.linspace(first, first + (M - 1) * step, M, **options)


def _period(M: int, sym: bool) -> int:
    return M - 1 if sym else M


def general_cosine(
    M: int,
    *,
    a: Iterable[float],
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """The sum of cosines `a[i] (-1)^i cos(2 pi i n / N)`. TypeError for `a` that is no list, ValueError for an empty one."""
    options, done = _options("general_cosine", M, dtype, layout, device, requires_grad)
    if done is not None:
        return done
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    factors = list(a)
    if not factors:
        raise ValueError("Coefficients cannot be empty")
    angles = _points(0.0, 2 * math.pi / _period(M, sym), M, options)
    window = F.full_like(angles, factors[0])
    for i, factor in enumerate(factors[1:], 1):
        window = F.add(window, F.cos(F.mul(angles, i)), alpha=factor if i % 2 == 0 else -factor)
    return window


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any) -> Tensor:
    """`alpha - (1 - alpha) cos(2 pi n / N)`. Further options as in `general_cosine`."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, **options)


def hamming(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """`general_hamming` with alpha 0.54."""
    return general_hamming(M, sym=sym, **options)


def hann(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """`general_hamming` with alpha 0.5."""
    return general_hamming(M, alpha=0.5, sym=sym, **options)


def nuttall(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """The sum of four cosines whose side lobes are lowest."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **options)


def blackman(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """The sum of cosines with the factors 0.42, 0.5 and 0.08."""
    options, _ = _options("blackman", M, dtype, layout, device, requires_grad)
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **options)


def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A triangle: 0 at its ends, 1 in the middle."""
    options, done = _options("bartlett", M, dtype, layout, device, requires_grad)
    if done is not None:
        return done
    return F.rsub(F.abs(_points(-1.0, 2 / _period(M, sym), M, options)), 1)


def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Half a wave of the sine."""
    options, done = _options("cosine", M, dtype, layout, device, requires_grad)
    if done is not None:
        return done
    step = math.pi / (M if sym else M + 1)
    return F.sin(_points(0.5 * step, step, M, options))


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """`exp(-|n - center| / tau)`. ValueError for a `tau` that is not positive, and for a `center` with `sym`."""
    options, done = _options("exponential", M, dtype, layout, device, requires_grad)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if done is not None:
        return done
    middle = _period(M, sym) / 2 if center is None else center
    return F.exp(F.neg(F.abs(_points(-middle / tau, 1 / tau, M, options))))


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """`exp(-(n / std)^2 / 2)` around the middle. ValueError for a `std` that is not positive."""
    options, done = _options("gaussian", M, dtype, layout, device, requires_grad)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if done is not None:
        return done
    step = 1 / (std * math.sqrt(2))
    points = _points(-_period(M, sym) / 2 * step, step, M, options)
    return F.exp(F.neg(F.mul(points, points)))


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Bessel's I0 over a half circle of the radius `beta`, 1 in the middle. ValueError for a negative `beta`."""
    options, done = _options("kaiser", M, dtype, layout, device, requires_grad)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if done is not None:
        return done
    if beta == 0:
        return F.ones([M], **options)
    step = 2.0 * beta / _period(M, sym)
    points = F.linspace(-beta, min(beta, -beta + (M - 1) * step), M, **options)
    height = F.i0(F.full([], beta, dtype=options["dtype"], device=device))
    return F.div(F.i0(F.sqrt(F.sub(beta * beta, F.mul(points, points)))), height)
