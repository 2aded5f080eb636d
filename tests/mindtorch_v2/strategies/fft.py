"""Signals for Fourier transforms."""

from __future__ import annotations

from typing import Any

from .cases import strategy
from .generic import complete
from .operands import draw_dtype, draw_operand, draw_shape
from .picking import Picker
from .table import Row

_ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
_REAL = ("rfft", "ihfft", "r2c")


def _signal(pick: Picker, row: Row, least: int) -> Any:
    real = any(word in row.rule for word in _REAL)
    shape = tuple(max(n, 2) for n in draw_shape(pick, least, 3))
    wanted = ("float64" if pick.gradient else "float32") if real else ("complex128" if pick.gradient else "complex64")
    if not pick.gradient and pick.wrong(6):
        wanted = draw_dtype(pick)
    return draw_operand(pick, shape, wanted)


@strategy("fft_c2c", "fft_r2c", "fft_c2r")
def transform(pick: Picker, row: Row) -> dict[str, Any]:
    """One or two dimensions."""
    made = _signal(pick, row, 1)
    ndim = len(made.shape)
    dims = list(range(ndim))[-pick.integer(1, min(2, ndim)) :]
    given: dict[str, Any] = {"self": made, "dim": dims, "normalization": pick.integer(0, 2)}
    if row.parameter("onesided") is not None:
        given["onesided"] = pick.boolean()
    if row.parameter("forward") is not None:
        given["forward"] = pick.boolean()
    if row.parameter("last_dim_size") is not None:
        given["last_dim_size"] = 2 * (made.shape[dims[-1]] - 1) + pick.integer(0, 1)
    return given


@strategy(*(f"fft.{name}" for name in _ONE))
def one(pick: Picker, row: Row) -> dict[str, Any]:
    """A signal, a number of points, a dimension, a normalization."""
    made = _signal(pick, row, 1)
    return complete(
        pick,
        row,
        {
            "self": made,
            "n": 0 if pick.wrong(10) else pick.choice((None, 3, 5)),
            "dim": pick.choice((-1, 0)),
            "norm": "other" if pick.wrong(12) else pick.choice((None, "ortho", "forward", "backward")),
        },
    )


@strategy(*(f"fft.{name}{count}" for name in _ONE for count in ("2", "n")))
def several(pick: Picker, row: Row) -> dict[str, Any]:
    """A signal of two or three dimensions."""
    made = _signal(pick, row, 2)
    given: dict[str, Any] = {"self": made, "s": pick.choice((None, (3, 4))), "norm": pick.choice((None, "ortho"))}
    given["dim"] = (-2, -1) if row.rule.endswith("2") else pick.choice((None, (0, 1)))
    return complete(pick, row, given)


@strategy("fft.fftfreq", "fft.rfftfreq")
def frequencies(pick: Picker, row: Row) -> dict[str, Any]:
    """A number of points and their distance."""
    return complete(pick, row, {"n": pick.integer(0, 6), "d": pick.choice((1.0, 0.5)), "dtype": None})


@strategy("fft.fftshift", "fft.ifftshift")
def shift(pick: Picker, row: Row) -> dict[str, Any]:
    """A tensor, and dimensions."""
    return {"self": draw_operand(pick, draw_shape(pick, 1, 3)), "dim": pick.choice((None, (0,), (-1,)))}


@strategy("spectral.stft", "spectral.stft_center", "spectral.istft")
def spectral(pick: Picker, row: Row) -> dict[str, Any]:
    """A signal, or the transforms of its frames."""
    double = pick.gradient
    lead = [2] if pick.boolean() else []
    given: dict[str, Any] = {"n_fft": 4, "hop_length": pick.choice((None, 1, 2)), "win_length": None, "window": None}
    if row.rule == "spectral.istft":
        given["self"] = draw_operand(pick, (*lead, 3, 4), "complex128" if double else "complex64")
    else:
        given["self"] = draw_operand(pick, (*lead, 2 if pick.wrong(8) else 9), "float64" if double else "float32")
        given |= {"return_complex": True, "onesided": pick.choice((None, True, False)), "align_to_window": None}
    if row.parameter("pad_mode") is not None:
        given["pad_mode"] = "reflect"
    if row.parameter("length") is not None:
        given |= {"length": None, "onesided": None, "return_complex": False}
    return complete(pick, row, given)
