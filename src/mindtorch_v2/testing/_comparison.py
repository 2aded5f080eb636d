"""`assert_close`: values, shapes, dtypes and devices of tensors (and of structures of them) compared with tolerances by dtype."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np

from .._pending import settled
from .._tensor import Tensor

_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex32": (1e-3, 1e-5),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


def default_tolerances(*inputs: Any) -> tuple[float, float]:
    """The widest (rtol, atol) of the dtypes of tensors or of dtypes; exact for integers."""
    found = [_TOLERANCES.get(str(getattr(i, "dtype", i)).rpartition(".")[2], (0.0, 0.0)) for i in inputs]
    return max(r for r, _ in found), max(a for _, a in found)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere, and shape, dtype and device agree.

    Sequences and mappings are compared item by item. ValueError when only one of rtol and atol is given.
    """
    if (rtol is None) != (atol is None):
        raise ValueError(
            f"rtol and atol must both be specified or both be unspecified, but got no {'rtol' if rtol is None else 'atol'}."
        )
    options = (rtol, atol, equal_nan, check_device, check_dtype, check_stride)
    problem = _problem(actual, expected, options, "")
    if problem is None:
        return
    if msg is not None:
        problem = msg(problem) if callable(msg) else msg
    raise AssertionError(problem)


def _problem(actual: Any, expected: Any, options: tuple, where: str) -> str | None:
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if set(actual) != set(expected):
            return f"The keys of the mappings do not match:\nMissing keys in the actual mapping: {sorted(set(expected) - set(actual))}\nAdditional keys in the actual mapping: {sorted(set(actual) - set(expected))}"
        return _first(_problem(actual[k], expected[k], options, f"{where}[{k!r}]") for k in actual)
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
        return _first(_problem(a, e, options, f"{where}[{i}]") for i, (a, e) in enumerate(zip(actual, expected)))
    if isinstance(actual, Tensor) and isinstance(expected, Tensor):
        return _tensors(actual, expected, options, where)
    if (
        isinstance(actual, (Number, np.ndarray, np.generic))
        or isinstance(actual, Tensor)
        and isinstance(expected, (Number, np.generic))
    ):
        from .._api.functions.construct import as_tensor

        left, right = as_tensor(actual), as_tensor(expected)
        rtol, atol, nan, device, _dtype, stride = options
        loose = (rtol, atol, nan, device, isinstance(actual, np.ndarray), stride)
        return _tensors(left, right, loose, where)
    if type(actual) is type(expected) and not isinstance(actual, Tensor):
        return (
            None
            if actual == expected
            else f"None mismatch: {actual} is not {expected}"
            if actual is None
            else f"{actual!r} != {expected!r}"
        )
    return f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}."


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _first(problems: Any) -> str | None:
    return next((p for p in problems if p is not None), None)


def _tensors(actual: Tensor, expected: Tensor, options: tuple, where: str) -> str | None:
    rtol, atol, equal_nan, check_device, check_dtype, check_stride = options
    suffix = f"\n\nThe failure occurred for item {where}" if where else ""
    if actual.shape != expected.shape:
        return f"The values for attribute 'shape' do not match: {actual.shape} != {expected.shape}.{suffix}"
    if check_device and actual.device != expected.device:
        return f"The values for attribute 'device' do not match: {actual.device} != {expected.device}.{suffix}"
    if check_dtype and actual.dtype is not expected.dtype:
        return f"The values for attribute 'dtype' do not match: {actual.dtype} != {expected.dtype}.{suffix}"
    if check_stride and actual.stride() != expected.stride():
        return f"The values for attribute 'stride()' do not match: {actual.stride()} != {expected.stride()}.{suffix}"
    if rtol is None:
        rtol, atol = default_tolerances(actual, expected)
    if actual.device.type == "meta" or expected.device.type == "meta":
        return None
    wide = np.complex128 if actual.is_complex() or expected.is_complex() else np.float64
    exact = actual.dtype.category < 2 and expected.dtype.category < 2
    a, e = settled(actual.detach()), settled(expected.detach())
    if not exact:
        a, e = a.astype(wide), e.astype(wide)
    if exact and not rtol and not atol:
        close = a == e
    else:
        close = np.isclose(a.astype(wide), e.astype(wide), rtol=rtol, atol=atol, equal_nan=equal_nan)
    close = np.asarray(close)
    if close.all():
        return None
    bad = int(close.size - np.count_nonzero(close))
    difference = np.abs(np.where(close, 0, a.astype(wide) - e.astype(wide)))
    place = np.unravel_index(int(np.nanargmax(difference)) if not np.isnan(difference).all() else 0, difference.shape)
    if close.ndim == 0:
        return f"Scalars are not close!\n\nExpected {e.item()} but got {a.item()}.\nAbsolute difference: {difference.item()} (up to {atol} allowed)\nRelative difference: {abs(difference.item() / e.item()) if e.item() else float('inf')} (up to {rtol} allowed){suffix}"
    relative = float(difference[place] / abs(e[place])) if e[place] else float("inf")
    return (
        f"Tensor-likes are not {'equal' if exact else 'close'}!\n\nMismatched elements: {bad} / {close.size} ({100 * bad / close.size:.1f}%)\n"
        f"Greatest absolute difference: {difference[place]} at index {tuple(int(i) for i in place)} (up to {atol} allowed)\n"
        f"Greatest relative difference: {relative} at index {tuple(int(i) for i in place)} (up to {rtol} allowed){suffix}"
    )


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """The former name of `assert_close`, without checks of dtype and device."""
    assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=False,
        check_dtype=False,
        msg=msg or None,
    )
