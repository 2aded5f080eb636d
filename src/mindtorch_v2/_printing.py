"""How tensors print: PyTorch's layout, digit for digit.

A `_Column` looks at the numbers that will be shown and settles one notation and one width for all of them; `_render` lays nested rows out with
it; `tensor_repr` adds what follows the numbers (device, size, dtype, history).

Note [Width and notation]: nan, inf and zero neither choose the notation nor widen the column, as in PyTorch. For float8_e8m0fnu, which has no
zero, its least value stands for zero, and nan counts.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import _dtype, _state
from ._pending import settled
from ._sparse_payload import CooPayload, SparsePayload

__all__ = ["PRINT_OPTS", "get_printoptions", "printoptions", "set_printoptions", "tensor_repr"]


# ------------------------------------------------------------------------------------------------------------------ options


@dataclasses.dataclass
class PrinterOptions:
    """What `set_printoptions` sets. `sci_mode` None lets the numbers decide."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PRINT_OPTS = PrinterOptions()

_PROFILES = {
    "default": PrinterOptions(),
    "short": PrinterOptions(precision=2, edgeitems=2),
    "full": PrinterOptions(threshold=math.inf),
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors print. What is None stays, save `sci_mode`, where None restores the automatic choice.

    precision: digits after the point. threshold: number of elements above which the middle is left out. edgeitems: elements shown at
    either end then. linewidth: characters a line. profile: "default", "short" or "full", which the other arguments refine.
    """
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    base = _PROFILES.get(profile) if profile is not None else None
    for name, value in given.items():
        if value is None and base is not None:
            value = getattr(base, name)
        if value is not None:
            setattr(PRINT_OPTS, name, value)
    PRINT_OPTS.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The options in force, as arguments for `set_printoptions`."""
    return dataclasses.asdict(PRINT_OPTS)


@contextlib.contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """`set_printoptions(**kwargs)` for the length of a block."""
    before = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**before)


# ------------------------------------------------------------------------------------------------------------------ numbers


_LEAST_EXPONENT = np.float32(2.0**-127)


class _Column:
    """One notation and width for all of `values` (real numbers or bools); `exponents` says that they are float8_e8m0fnu's."""

    def __init__(self, values: np.ndarray, exponents: bool = False) -> None:
        self.width = 1
        self.show: Callable[[Any], str] = str
        if values.dtype.kind != "f":
            self.width = max([1, *map(len, map(str, values.ravel().tolist()))])
            return

        precision = PRINT_OPTS.precision
        deciding = values[values != _LEAST_EXPONENT if exponents else np.isfinite(values) & (values != 0)]
        scientific, whole = False, True
        if deciding.size:
            sizes = np.abs(deciding).astype(np.float64)
            low, high = sizes.min(), sizes.max()
            whole = bool((deciding == np.ceil(deciding)).all())
            with np.errstate(over="ignore"):
                scientific = bool(high / low > 1000.0 or high > 1e8 or (not whole and low < 1e-4))
            if PRINT_OPTS.sci_mode is not None:
                scientific = PRINT_OPTS.sci_mode
        self.show = _notation(scientific, whole, precision)
        self.width = max([1, *map(len, map(self.show, deciding.tolist()))])

    def __call__(self, value: Any) -> str:
        return self.show(value).rjust(self.width)


def _notation(scientific: bool, whole: bool, precision: int) -> Callable[[float], str]:
    if scientific:
        return f"{{:.{precision}e}}".format
    if whole:
        return lambda value: f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"
    return f"{{:.{precision}f}}".format


class _ComplexColumn:
    """Real and imaginary parts in a column each; the imaginary one follows without padding."""

    def __init__(self, values: np.ndarray) -> None:
        self.real = _Column(values.real)
        self.imag = _Column(values.imag)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, value: complex) -> str:
        imag = self.imag(value.imag).lstrip()
        sign = "" if imag.startswith("-") else "+"
        return f"{self.real(value.real)}{sign}{imag}j"


# ------------------------------------------------------------------------------------------------------------------- layout


def _edges(values: np.ndarray) -> np.ndarray:
    """The elements that a summary shows; they alone settle notation and width."""
    count = PRINT_OPTS.edgeitems
    if count == 0 and values.ndim > 1:
        return values.ravel()[:0]
    for axis, n in enumerate(values.shape):
        if count and n > 2 * count:
            values = np.take(values, [*range(count), *range(n - count, n)], axis)
    return values


def _render(values: np.ndarray, indent: int, summarize: bool, column: _Column | _ComplexColumn) -> str:
    if values.ndim == 0:
        return column(values.item())
    count = PRINT_OPTS.edgeitems
    n = len(values)
    shorten = summarize and n > 2 * count

    if values.ndim == 1:
        if summarize and not count:
            cells = ["..."]
        elif shorten:
            cells = [*map(column, values[:count].tolist()), " ...", *map(column, values[-count:].tolist())]
        else:
            cells = list(map(column, values.tolist()))
        per_line = max(1, math.floor((PRINT_OPTS.linewidth - indent) / (column.width + 2)))
        lines = [", ".join(cells[i : i + per_line]) for i in range(0, len(cells), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"

    shown = [*range(count), None, *range(n - count, n)] if shorten else range(n)
    rows = ["..." if i is None else _render(values[i], indent + 1, summarize, column) for i in shown]
    return "[" + ("," + "\n" * (values.ndim - 1) + " " * (indent + 1)).join(rows) + "]"


def array_text(values: np.ndarray, indent: int = 0, exponents: bool = False) -> str:
    """The numbers of an array as a tensor shows them; lines after the first begin `indent` further to the right.

    `exponents`: see Note [Width and notation].
    """
    if not values.size:
        return "[]"
    summarize = values.size > PRINT_OPTS.threshold
    shown = _edges(values) if summarize else values
    column = _ComplexColumn(shown) if values.dtype.kind == "c" else _Column(shown, exponents)
    return _render(values, indent, summarize, column)


# ------------------------------------------------------------------------------------------------------------------ tensors


def _values(t: Any) -> np.ndarray:
    """The elements of `t` as an array. What numpy does not know comes as float32 or complex64, and float16 too."""
    if t.device.type != "cpu":
        t = t.detach().cpu()
    values = settled(t)
    return values.astype(np.float32) if values.dtype == np.float16 else _dtype.known_to_numpy(values)


def tensor_repr(t: Any, *, tensor_contents: str | None = None) -> str:
    """`repr` of a tensor; `tensor_contents` stands in place of the numbers when it is given."""
    cls = type(t)
    prefix = "tensor(" if _state.is_plain_class(cls) else f"{cls.__name__}("
    indent = len(prefix)
    if isinstance(t._payload, SparsePayload):
        return _sparse_repr(t, t._payload, prefix, tensor_contents)
    suffixes = []
    dtype_suffix = f"dtype={t.dtype}"
    default = _dtype.get_default_dtype()
    empty = 0 in t.shape

    if t.device.type != "cpu":
        suffixes.append(f"device='{t.device}'")
    if t.device.type == "meta":
        contents = "..."
        suffixes.append(f"size={tuple(t.shape)}")
        implied = (default,)
    elif empty:
        contents = "[]"
        if len(t.shape) != 1:
            suffixes.append(f"size={tuple(t.shape)}")
        implied = (default,)
    else:
        implied = (default, _dtype.get_default_complex_dtype(), _dtype.int64, _dtype.bool)
        contents = array_text(_values(t), indent, t.dtype is _dtype.float8_e8m0fnu) if tensor_contents is None else ""
        if not PRINT_OPTS.edgeitems:  # a summary may show no element at all
            suffixes.append(f"size={tuple(t.shape)}")
    if t.dtype not in implied:
        suffixes.append(dtype_suffix)

    history = _history(t)
    if history:
        suffixes.append(history)
    if _state.TLS.tangents is not None:
        tangent = _state.TLS.tangents.of(t)
        if tangent is not None:
            suffixes.append(f"tangent={tangent}")
    return with_suffixes(prefix + (contents if tensor_contents is None else tensor_contents), suffixes, indent)


def _member_text(name: str, member: Any, indent: int) -> str:
    """One of the tensors that a sparse one is made of."""
    start = f"{name}=tensor("
    if member.device.type == "meta":
        return f"{start}..., size={tuple(member.shape)})"
    text = start + array_text(_values(member), indent + len(start))
    return text + (f", size={tuple(member.shape)})" if not member.numel() else ")")


def _sparse_repr(t: Any, data: SparsePayload, prefix: str, contents: str | None) -> str:
    """`repr` of a sparse tensor: what it is made of, and what is said after it."""
    indent = len(prefix)
    names = ("indices", "values") if isinstance(data, CooPayload) else data.names
    if contents is None:
        texts = [_member_text(name, member, indent) for name, member in zip(names, data.members())]
        contents = (",\n" + " " * indent).join(texts)
    suffixes = [f"device='{t.device}'"] * (t.device.type != "cpu") + [f"size={tuple(t.shape)}"]
    if t.device.type != "meta":
        suffixes.append(f"nnz={t._nnz()}")
    if t.dtype not in (_dtype.get_default_dtype(), _dtype.get_default_complex_dtype(), _dtype.int64, _dtype.bool):
        suffixes.append(f"dtype={t.dtype}")
    suffixes.append(f"layout={t.layout}")
    history = _history(t)
    if history:
        suffixes.append(history)
    parts = [prefix + contents]
    # Of the coordinate layout what follows has lines of its own.
    column = PRINT_OPTS.linewidth if isinstance(data, CooPayload) else len(parts[0]) - parts[0].rfind("\n") + 1
    return _suffixed(parts, suffixes, indent, column)


def _history(t: Any) -> str:
    try:
        node = t.grad_fn
    except RuntimeError:
        # A view whose base was changed in a way that forbids to ask; it shall still print.
        return "grad_fn=<Invalid>"
    if node is not None:
        return f"grad_fn=<{type(node).__name__}>"
    return "requires_grad=True" if t.requires_grad else ""


def tensor_text(t: Any, indent: int) -> str:
    """The numbers of a tensor as it shows them, without what stands around them; further lines begin `indent` to the right."""
    return array_text(_values(t), indent, t.dtype is _dtype.float8_e8m0fnu)


def with_suffixes(text: str, suffixes: list[str], indent: int, force_newline: bool = False) -> str:
    """`text`, what is said after it, and the closing bracket; suffixes that do not fit (`force_newline`: all) have a line of their own."""
    column = PRINT_OPTS.linewidth if force_newline else len(text) - text.rfind("\n") + 1
    return _suffixed([text], suffixes, indent, column)


def _suffixed(parts: list[str], suffixes: list[str], indent: int, column: int) -> str:
    for suffix in suffixes:
        if column + len(suffix) + 2 > PRINT_OPTS.linewidth:
            parts.append(",\n" + " " * indent + suffix)
            column = indent + len(suffix)
        else:
            parts.append(", " + suffix)
            column += len(suffix) + 2
    return "".join(parts) + ")"
