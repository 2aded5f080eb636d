"""`assert_close`: tensors, numbers and structures of them compared, with tolerances by dtype.

Two inputs are walked together. What can be compared is compared by the first of None, booleans, numbers and tensors that takes them; what nothing
takes is a TypeError, and the first difference an AssertionError that says where in the structure it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from .. import _dtype
from .._dispatch import ops
from .._layout import LAYOUTS, strided
from .._rules.promotion import promote_types
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

_NUMBERS = (int, float, complex, np.number)
_BOOLEANS = (bool, np.bool_)


def default_tolerances(*inputs: Any) -> tuple[float, float]:
    """The widest (rtol, atol) of the dtypes of tensors or of dtypes; exact for integers."""
    found = [_TOLERANCES.get(str(getattr(i, "dtype", i)).rpartition(".")[2], (0.0, 0.0)) for i in inputs]
    return max(r for r, _ in found), max(a for _, a in found)


class _Options(NamedTuple):
    allow_subclasses: bool
    rtol: float | None
    atol: float | None
    equal_nan: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool


class _Different(Exception):
    """A difference, or an input that cannot be compared: the class of the error to raise, its words, and the way to the place."""

    def __init__(self, error: type[Exception], words: str, where: tuple[Any, ...] = ()) -> None:
        super().__init__(words)
        self.error, self.words, self.where = error, words, where

    def message(self) -> str:
        """The words, with the place in the structure."""
        place = "".join(str([item]) for item in self.where)
        return self.words + (f"\n\nThe failure occurred for item {place}" if place else "")


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

    Sequences and mappings are compared item by item; numbers and what `as_tensor` takes as tensors. ValueError when only one of rtol and
    atol is given, TypeError for inputs that cannot be compared. `msg` replaces the error's words, or is called with them.
    """
    options = _Options(allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride)
    different = _difference(actual, expected, options)
    if different is not None:
        words = different.message()
        if different.error is AssertionError and msg is not None:
            words = msg(words) if callable(msg) else msg
        raise different.error(words)


def _difference(actual: Any, expected: Any, options: _Options) -> _Different | None:
    try:
        if (options.rtol is None) != (options.atol is None):
            absent = "rtol" if options.rtol is None else "atol"
            words = f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {absent}."
            raise _Different(ValueError, words)
        _walk(actual, expected, options, ())
    except _Different as different:
        return different
    return None


def _walk(actual: Any, expected: Any, options: _Options, where: tuple[Any, ...]) -> None:
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            words = f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
            raise _Different(AssertionError, words, where)
        for index, items in enumerate(zip(actual, expected)):
            _walk(*items, options, (*where, index))
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        absent, more = set(expected) - set(actual), set(actual) - set(expected)
        if absent or more:
            words = (
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {sorted(absent)}\nAdditional keys in the actual mapping: {sorted(more)}"
            )
            raise _Different(AssertionError, words, where)
        for key in _in_order(actual):
            _walk(actual[key], expected[key], options, (*where, key))
    else:
        _Pair(options, where).compare(actual, expected)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _in_order(mapping: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(mapping)
    except TypeError:  # keys of several kinds
        return list(mapping)


class _Pair:
    """The comparison of two things that are no containers."""

    def __init__(self, options: _Options, where: tuple[Any, ...]) -> None:
        self.options, self.where = options, where

    def differ(self, words: str, error: type[Exception] = AssertionError) -> NoReturn:
        """Raise what ends the comparison."""
        raise _Different(error, words, self.where)

    def compare(self, actual: Any, expected: Any) -> None:
        """Raise `_Different` unless the two are close."""
        if actual is None or expected is None:
            if actual is not expected:
                self.differ(f"None mismatch: {actual} is not {expected}")
        elif isinstance(actual, _BOOLEANS) and isinstance(expected, _BOOLEANS):
            if bool(actual) is not bool(expected):
                self.differ(f"Booleans mismatch: {bool(actual)} is not {bool(expected)}")
        elif isinstance(actual, _NUMBERS) and isinstance(expected, _NUMBERS):
            self.numbers(_plain(actual), _plain(expected))
        else:
            self.tensors(*self.as_tensors(actual, expected))

    # ------------------------------------------------------------------------------------------------------------- numbers

    def numbers(self, actual: Any, expected: Any) -> None:
        """Compare two Python numbers, whose types have to agree where dtypes have to."""
        if self.options.check_dtype and type(actual) is not type(expected):
            self.differ(f"The (d)types do not match: {type(actual)} != {type(expected)}.")
        rtol, atol = self.tolerances(*(_DTYPES[type(number)] for number in (actual, expected)))
        if actual == expected or (self.options.equal_nan and actual != actual and expected != expected):
            return
        difference = abs(actual - expected)
        if not (np.isfinite(difference) and difference <= atol + rtol * abs(expected)):
            self.scalars_differ(actual, expected, rtol, atol)

    def scalars_differ(self, actual: Any, expected: Any, rtol: float, atol: float) -> NoReturn:
        """Two numbers are too far from each other."""
        difference = abs(actual - expected)
        relative = float("inf") if expected == 0 else difference / abs(expected)
        self.differ(
            f"Scalars are not {_wanted(rtol, atol)}!\n\nExpected {expected} but got {actual}.\n"
            f"Absolute difference: {difference}{_allowed(rtol, atol, atol)}\n"
            f"Relative difference: {relative}{_allowed(rtol, atol, rtol)}"
        )

    def tolerances(self, *inputs: Any) -> tuple[float, float]:
        """The caller's, or those of the dtypes."""
        if self.options.rtol is None or self.options.atol is None:
            return default_tolerances(*inputs)
        return self.options.rtol, self.options.atol

    # ------------------------------------------------------------------------------------------------------------- tensors

    def as_tensors(self, actual: Any, expected: Any) -> tuple[Tensor, Tensor]:
        """Two related things as tensors. TypeError for all else."""
        first, second = type(actual), type(expected)
        related = isinstance(actual, second) or isinstance(expected, first)
        if related and (self.options.allow_subclasses or first is second):
            try:
                return _tensor_of(actual), _tensor_of(expected)
            except (TypeError, ValueError, RuntimeError, OverflowError):  # what as_tensor raises for what is no tensor
                pass
        self.differ(f"No comparison pair was able to handle inputs of type {first} and {second}.", TypeError)

    def tensors(self, actual: Tensor, expected: Tensor) -> None:
        """Compare attributes, then values."""
        options = self.options
        for name, checked in (
            ("shape", True),
            ("layout", options.check_layout),
            ("device", options.check_device),
            ("dtype", options.check_dtype),
            ("stride()", options.check_stride and "layout"),
        ):
            ours, theirs = (_attribute(tensor, name) for tensor in (actual, expected)) if checked else (None, None)
            if ours != theirs:
                self.differ(f"The values for attribute '{name}' do not match: {ours} != {theirs}.")
        if actual.is_meta or expected.is_meta:  # there are no values
            return
        if (
            options.check_layout
            and actual.layout is LAYOUTS["sparse_coo"]
            and actual.sparse_dim() != expected.sparse_dim()
        ):
            counts = f"{actual.sparse_dim()} != {expected.sparse_dim()}"
            self.differ(f"The number of sparse dimensions in sparse COO tensors does not match: {counts}")
        rtol, atol = self.tolerances(actual, expected)
        actual, expected = actual.detach(), expected.detach()
        if actual.device != expected.device:
            actual, expected = actual.cpu(), expected.cpu()
        if actual.dtype is not expected.dtype:
            dtype = promote_types(actual.dtype, expected.dtype)
            actual, expected = actual.to(dtype), expected.to(dtype)
        if actual.layout is not expected.layout:
            actual, expected = (one if one.layout is strided else one.to_dense() for one in (actual, expected))
        if actual.layout is not strided:
            self.sparse(actual, expected, rtol, atol)
        else:
            self.values(actual, expected, rtol, atol)

    def sparse(self, actual: Tensor, expected: Tensor, rtol: float, atol: float) -> None:
        """Compare places, then elements, of two sparse tensors of one layout."""
        if actual.is_sparse and actual.is_coalesced() != expected.is_coalesced():
            actual, expected = actual.coalesce(), expected.coalesce()
        if actual.layout is LAYOUTS["sparse_coo"]:
            kind, places = "COO", {"indices": "_indices"}
            elements = "_values"
        else:
            kind, elements = actual.layout.name.removeprefix("sparse_").upper(), "values"
            rows = actual.layout in (LAYOUTS["sparse_csr"], LAYOUTS["sparse_bsr"])
            places = {
                name: name for name in (("crow_indices", "col_indices") if rows else ("ccol_indices", "row_indices"))
            }
        if actual._nnz() != expected._nnz():
            counts = f"{actual._nnz()} != {expected._nnz()}"
            self.differ(f"The number of specified values in sparse {kind} tensors does not match: {counts}")
        for name, method in places.items():
            ours, theirs = (getattr(one, method)().to(_dtype.int64) for one in (actual, expected))
            self.values(ours, theirs, 0, 0, f"Sparse {kind} {name}")
        ours, theirs = getattr(actual, elements)(), getattr(expected, elements)()
        self.values(ours, theirs, rtol, atol, f"Sparse {kind} values")

    def values(self, actual: Tensor, expected: Tensor, rtol: float, atol: float, what: str = "Tensor-likes") -> None:
        """Compare the elements of two tensors of one shape, dtype and device."""
        small = actual.dtype.is_floating_point and actual.dtype.itemsize == 1
        if small and (rtol or atol):
            self.differ(
                f"Rtol={rtol} and atol={atol} are not supported for bitwise comparison of low dimensional floats. Please use rtol=0.0 and atol=0.0."
            )
        if small:
            matches = actual.view(_dtype.uint8) == expected.view(_dtype.uint8)
        else:
            matches = ops.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=self.options.equal_nan)
        if bool(matches.all()):
            return
        if not actual.shape:
            self.scalars_differ(actual.item(), expected.item(), rtol, atol)
        count = actual.numel() - int(matches.sum())
        share = f"Mismatched elements: {count} / {actual.numel()} ({count / actual.numel():.1%})"
        if small:
            place = tuple((~matches).nonzero()[0].tolist())
            self.differ(f"{what} are not 'equal'!\n\n{share}\nThe first mismatched element is at index {place}.")
        lines = [f"{what} are not {_wanted(rtol, atol)}!\n", share]
        for kind, differences, tolerance in zip(
            ("absolute", "relative"), _distances(actual, expected, matches), (atol, rtol)
        ):
            largest, place = _largest(differences)
            lines.append(f"Greatest {kind} difference: {largest} at index {place}{_allowed(rtol, atol, tolerance)}")
        self.differ("\n".join(lines))


_DTYPES = {int: _dtype.int64, bool: _dtype.bool, float: _dtype.float64, complex: _dtype.complex128}


def _plain(number: Any) -> Any:
    return number.item() if isinstance(number, np.generic) else number


def _wanted(rtol: float, atol: float) -> str:
    return "equal" if rtol == 0 and atol == 0 else "close"


def _allowed(rtol: float, atol: float, tolerance: float) -> str:
    return "" if rtol == 0 and atol == 0 else f" (up to {tolerance} allowed)"


def _tensor_of(value: Any) -> Tensor:
    from .._api.functions.construct import as_tensor

    return value if isinstance(value, Tensor) else as_tensor(value)


def _attribute(tensor: Tensor, name: str) -> Any:
    return tensor.stride() if name == "stride()" else getattr(tensor, name)


def _distances(actual: Tensor, expected: Tensor, matches: Tensor) -> tuple[Tensor, Tensor]:
    """How far apart two tensors are, absolutely and relatively; nothing where they match."""
    if not (actual.dtype.is_floating_point or actual.dtype.is_complex):
        actual, expected = actual.to(_dtype.int64), expected.to(_dtype.int64)  # so that no difference overflows
    distance = (actual - expected).abs().masked_fill(matches, 0)
    return distance, (distance / expected.abs()).masked_fill(matches, 0)


def _largest(differences: Tensor) -> tuple[Any, tuple[int, ...]]:
    flat = differences.reshape(-1)
    place = int(flat.argmax())
    return flat[place].item(), tuple(int(index) for index in np.unravel_index(place, tuple(differences.shape)))


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
