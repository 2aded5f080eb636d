"""Which dtypes an `out=` buffer may have, and what PyTorch says of the others.

Most operators cast the result to the buffer's dtype where the category does not fall. A word of the entry's `out` field asks for
more, and says the refusal as PyTorch's operator does.
"""

from __future__ import annotations

from collections.abc import Callable

from .._dtype import dtype
from .._rules.promotion import can_cast

Refusal = Callable[..., "Exception | None"]
"""A function of (result's dtype, buffer's dtype, operator's name, name of the result): the error, or None where the buffer will do."""


def _cast(want: dtype, out: dtype, name: str, field: str = "") -> Exception | None:
    if can_cast(want, out):
        return None
    return RuntimeError(f"result type {want.cpp} can't be cast to the desired output type {out.cpp}")


def _exact(want: dtype, out: dtype, name: str, field: str = "") -> Exception:
    return RuntimeError(f"Expected out tensor to have dtype {want.ctype}, but got {out.ctype} instead")


def _castable(prefix: str, what: str = "result") -> Refusal:
    def refuse(want: dtype, out: dtype, name: str, field: str = "") -> Exception | None:
        if can_cast(want, out):
            return None
        return RuntimeError(
            f"{prefix}{name.removeprefix('linalg_')}: Expected {field or what} to be safely castable from {want.cpp} dtype, but got "
            f"{field or what} with dtype {out.cpp}"
        )

    return refuse


def _norm(want: dtype, out: dtype, name: str, field: str = "") -> Exception:
    return RuntimeError(f"{name.replace('_', '.', 1)} expected out tensor dtype {want.cpp} but got: {out.cpp}")


def _multi_dot(want: dtype, out: dtype, name: str, field: str = "") -> Exception:
    return RuntimeError(f"multi_dot(): expected out tensor to have dtype {want.ctype} but got {out.ctype}")


def _as_input(want: dtype, out: dtype, name: str, field: str = "") -> Exception:
    return RuntimeError(
        f"Expected the dtype for input and out to match, but got {want.cpp} for input's dtype and {out.cpp} for out's dtype."
    )


def _scalar_type(want: dtype, out: dtype, name: str, field: str = "") -> Exception:
    return RuntimeError(f"Expected object of scalar type {want.cpp} but got scalar type {out.cpp} for argument 'out'")


def _quantile(want: dtype, out: dtype, name: str, field: str = "") -> Exception:
    return RuntimeError("quantile() out tensor must be same dtype as the input tensor")


def _nonzero(want: dtype, out: dtype, name: str, field: str = "") -> Exception:
    return RuntimeError(f"{name}: Expected out tensor to have scalar type {want.cpp} but got scalar type{out.cpp}")


def _absolute(want: dtype, out: dtype, name: str, field: str = "") -> Exception | None:
    if out.is_complex and out.to_real() is want:
        return None
    return _cast(want, out, name) or RuntimeError(f"Found dtype {out.cpp} but expected {want.cpp}")


def _int_mm(want: dtype, out: dtype, name: str, field: str = "") -> Exception:
    return RuntimeError(f"int_mm_out_cpu: Expected result dtype to be of type kInt but got {out.ctype}")


def _bool(want: dtype, out: dtype, name: str, field: str = "") -> Exception:
    return RuntimeError(f"{name} only supports bool tensor for result, got: {out.cpp}")


def _boolean(want: dtype, out: dtype, name: str, field: str = "") -> Exception:
    return RuntimeError(f"{name} does not support non-boolean outputs.")


def _any_dtype(want: dtype, out: dtype, name: str, field: str = "") -> None:
    return None


def _scan(want: dtype, out: dtype, name: str, field: str = "") -> Exception:
    return RuntimeError(f"expected scalar_type {want.cpp} but found {out.cpp}")


def _long(want: dtype, out: dtype, name: str, field: str = "") -> Exception:
    return RuntimeError(f"{name} expects Long tensor out, got: {out.cpp}")


def _joined(want: dtype, out: dtype, name: str, field: str = "") -> Exception | None:
    if can_cast(want, out):
        return None
    return TypeError(f"torch.cat(): input types can't be cast to the desired output type {out.cpp}")


def _normal(want: dtype, out: dtype, name: str, field: str = "") -> Exception | None:
    if out.is_floating_point or out.is_complex:
        return None
    return NotImplementedError(f"\"normal_kernel_cpu\" not implemented for '{out.cpp}'")


def _nansum(want: dtype, out: dtype, name: str, field: str = "") -> Exception | None:
    if can_cast(want, out):
        return None
    return NotImplementedError(f"\"nansum_cpu\" not implemented for '{out.cpp}'")


def requires(want: dtype, out: dtype, name: str, field: str = "") -> Exception:
    """The refusal of operators that compute in a dtype of their own; field: what was given, `output` unless it says another."""
    return RuntimeError(
        f"the {field or 'output'} given to {name} has dtype {out.cpp} but the operation's result requires dtype {want.cpp}"
    )


def _frexp(want: dtype, out: dtype, name: str, field: str = "") -> Exception:
    wanted = "int dtype" if field == "exponent" else f"dtype {want.ctype}"
    return RuntimeError(f"torch.{name}() expects {field} to have {wanted} but got {out.ctype}")


def _histogram(want: dtype, out: dtype, name: str, field: str = "") -> Exception:
    where = " for dimension 0" if field == "bin_edges" else ""
    return RuntimeError(
        f"torch.{name}: input tensor and {field} tensor should have the same dtype, but got input {want.ctype} and {field} {out.ctype}{where}"
    )


def _results(want: dtype, out: dtype, name: str, field: str = "") -> Exception:
    return RuntimeError(f"expected scalar type '{want.cpp}' but got '{out.cpp}' for {field} output")


def _alike(want: dtype, out: dtype, name: str, field: str = "") -> Exception:
    kinds = "complex tensors" if out.is_complex else "tensors with different dtypes"
    return RuntimeError(f"{name} is not yet implemented for {kinds}.")


_BY_WORD: dict[str, Refusal] = {
    "exact": _exact,
    "castable": _castable(""),
    "castable_linalg": _castable("linalg."),
    "castable_torch": _castable("torch.linalg."),
    "castable_eigenvalues": _castable("torch.linalg.", "eigenvalues"),
    "norm": _norm,
    "multi_dot": _multi_dot,
    "as_input": _as_input,
    "bool": _bool,
    "boolean": _boolean,
    "any_dtype": _any_dtype,
    "scan": _scan,
    "long": _long,
    "joined": _joined,
    "normal": _normal,
    "nansum": _nansum,
    "requires": requires,
    "frexp": _frexp,
    "histogram": _histogram,
    "results": _results,
    "alike": _alike,
    "scalar_type": _scalar_type,
    "quantile": _quantile,
    "nonzero": _nonzero,
    "absolute": _absolute,
    "int_mm": _int_mm,
}


def refusal(words: tuple[str, ...]) -> Refusal:
    """What the words of an entry's `out` field say of other dtypes."""
    return next((_BY_WORD[word] for word in words if word in _BY_WORD), _cast)
