"""Which dtypes an `out=` buffer may have, and what PyTorch says of the others.

Most operators cast the result to the buffer's dtype where the category does not fall. A word of the entry's `out` field asks for
more, and says the refusal as PyTorch's operator does.
"""

from __future__ import annotations

from collections.abc import Callable

from .._dtype import dtype
from .._rules.promotion import can_cast


def _cast(want: dtype, out: dtype, name: str) -> Exception | None:
    if can_cast(want, out):
        return None
    return RuntimeError(f"result type {want.cpp} can't be cast to the desired output type {out.cpp}")


def _exact(want: dtype, out: dtype, name: str) -> Exception:
    return RuntimeError(f"Expected out tensor to have dtype {want.ctype}, but got {out.ctype} instead")


def _castable(prefix: str) -> Callable[[dtype, dtype, str], Exception | None]:
    def refuse(want: dtype, out: dtype, name: str) -> Exception | None:
        if can_cast(want, out):
            return None
        return RuntimeError(
            f"{prefix}{name.removeprefix('linalg_')}: Expected result to be safely castable from {want.cpp} dtype, but got result with dtype "
            f"{out.cpp}"
        )

    return refuse


def _as_input(want: dtype, out: dtype, name: str) -> Exception:
    return RuntimeError(
        f"Expected the dtype for input and out to match, but got {want.cpp} for input's dtype and {out.cpp} for out's dtype."
    )


def _bool(want: dtype, out: dtype, name: str) -> Exception:
    return RuntimeError(f"{name} only supports bool tensor for result, got: {out.cpp}")


def _boolean(want: dtype, out: dtype, name: str) -> Exception:
    return RuntimeError(f"{name} does not support non-boolean outputs.")


def _any_dtype(want: dtype, out: dtype, name: str) -> None:
    return None


def _scan(want: dtype, out: dtype, name: str) -> Exception:
    return RuntimeError(f"expected scalar_type {want.cpp} but found {out.cpp}")


def _long(want: dtype, out: dtype, name: str) -> Exception:
    return RuntimeError(f"{name} expects Long tensor out, got: {out.cpp}")


def _joined(want: dtype, out: dtype, name: str) -> Exception | None:
    if can_cast(want, out):
        return None
    return TypeError(f"torch.cat(): input types can't be cast to the desired output type {out.cpp}")


def _normal(want: dtype, out: dtype, name: str) -> Exception | None:
    if out.is_floating_point or out.is_complex:
        return None
    return NotImplementedError(f"\"normal_kernel_cpu\" not implemented for '{out.cpp}'")


def _nansum(want: dtype, out: dtype, name: str) -> Exception | None:
    if can_cast(want, out):
        return None
    return NotImplementedError(f"\"nansum_cpu\" not implemented for '{out.cpp}'")


_BY_WORD: dict[str, Callable[[dtype, dtype, str], Exception | None]] = {
    "exact": _exact,
    "castable": _castable(""),
    "castable_linalg": _castable("linalg."),
    "castable_torch": _castable("torch.linalg."),
    "as_input": _as_input,
    "bool": _bool,
    "boolean": _boolean,
    "any_dtype": _any_dtype,
    "scan": _scan,
    "long": _long,
    "joined": _joined,
    "normal": _normal,
    "nansum": _nansum,
}


def refusal(words: tuple[str, ...]) -> Callable[[dtype, dtype, str], Exception | None]:
    """A function of (result's dtype, buffer's dtype, operator's name) that gives the error, or None where the buffer will do."""
    return next((_BY_WORD[word] for word in words if word in _BY_WORD), _cast)
