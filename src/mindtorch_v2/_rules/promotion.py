"""Type promotion: the dtype in which an operator computes on operands of several dtypes.

Note [Promotion by category]. Operands stand in three ranks: tensors with dimensions, tensors without, Python numbers.
Within a rank dtypes promote by the table. A lower rank only matters when its category (bool < integer < floating <
complex) is above that of the higher ranks: so `int8 tensor + 1000` stays int8, and `int8 tensor + 1.5` has the default
dtype.

Note [Barebones unsigned types]. uint16, uint32 and uint64 promote with themselves and with floating types, but with no
other integer type, bool or complex type: a sum of uint16 and int8 is an error, not an int32. float8 types promote with
themselves alone.
"""

from __future__ import annotations

from typing import Any

from .. import _dtype as _d
from .._dtype import dtype

_ORDER = "uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex32 complex64 complex128 bool".split()

# The row and column order is that of _ORDER. Letters: u uint8, 1 int8, 2 int16, 4 int32, 8 int64, h float16, b
# bfloat16, f float32,
# d double, H complex32, F complex64, D complex128, o bool.
_LETTERS = dict(zip("u1248hbfdHFDo", _ORDER, strict=True))
_TABLE = """
u2248hbfdHFDu
21248hbfdHFD1
22248hbfdHFD2
44448hbfdHFD4
88888hbfdHFD8
hhhhhhffdHFDh
bbbbbfbfdFFDb
ffffffffdFFDf
dddddddddDDDd
HHHHHHFFDHFDH
FFFFFFFFDFFDF
DDDDDDDDDDDDD
u1248hbfdHFDo
"""

_PROMOTE: dict[tuple[dtype, dtype], dtype] = {(d, d): d for d in _d.DTYPES.values()}
for _name, _row in zip(_ORDER, _TABLE.split(), strict=True):
    for _other, _letter in zip(_ORDER, _row, strict=True):
        _PROMOTE[_d.DTYPES[_name], _d.DTYPES[_other]] = _d.DTYPES[_LETTERS[_letter]]
_BAREBONES = (*_d.WIDE_UNSIGNED, *(_d.DTYPES[f"uint{bits}"] for bits in range(1, 8)))
_BITS = tuple(_d.DTYPES[name] for name in ("bits8", "bits16", "bits1x8", "bits2x4", "bits4x2"))
_NOT_INTEGRAL = (*_d.QUANTISED, *_BITS)
for _unsigned in _BAREBONES:
    for _floating in (_d.float16, _d.bfloat16, _d.float32, _d.float64):
        _PROMOTE[_unsigned, _floating] = _PROMOTE[_floating, _unsigned] = _floating


def promote_types(a: dtype, b: dtype) -> dtype:
    """The smallest dtype of the higher category that holds both. RuntimeError where promotion is not defined
    (float8, wide unsigned, quantised)."""
    found = _PROMOTE.get((a, b))
    if found is not None:
        return found
    for given in (a, b):
        if not isinstance(given, dtype):
            position = 1 if given is a else 2
            raise TypeError(
                f"promote_types(): argument 'type{position}' (position {position}) must be torch.dtype, not "
                f"{type(given).__name__}"
            )
    both = (a, b)
    if any(d in _d.QUANTISED for d in both):
        raise RuntimeError(
            "promoteTypes with quantized numbers is not handled yet; figure out what the correct rules should be, "
            f"offending types: {a.cpp} {b.cpp}"
        )
    if any(d in _BITS for d in both):
        raise RuntimeError(f"Promotion from {a.cpp} and {b.cpp} is unsupported.")
    if any(d in _d.FLOAT8 for d in both):
        raise RuntimeError(f"Promotion for Float8 Types is not supported, attempted to promote {a.cpp} and {b.cpp}")
    if any(d in _BAREBONES for d in both):
        raise RuntimeError(
            f"Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {a.cpp} and {b.cpp}"
        )
    raise RuntimeError(f"Promotion from {a.cpp} and {b.cpp} is unsupported.")


def scalar_dtype(value: Any) -> dtype:
    """The dtype of a Python (or numpy) number as an operand: bool, int64, the default floating or complex dtype.
    TypeError for other objects."""
    if isinstance(value, bool):
        return _d.bool
    if isinstance(value, int):
        return _d.int64
    if isinstance(value, float):
        return _d.get_default_dtype()
    if isinstance(value, complex):
        return _d.get_default_complex_dtype()
    kind = getattr(getattr(value, "dtype", None), "kind", None)  # a numpy scalar
    if kind == "b":
        return _d.bool
    if kind in ("i", "u"):
        return _d.int64
    if kind == "f":
        return _d.get_default_dtype()
    if kind == "c":
        return _d.get_default_complex_dtype()
    raise TypeError(f"expected a tensor or a number, but got {type(value).__name__}")


def _combine(higher: dtype | None, lower: dtype | None) -> dtype | None:
    """The dtype of two ranks, see Note [Promotion by category]."""
    if higher is None:
        return lower
    if lower is None or higher.is_complex:
        return higher
    if higher.is_floating_point:
        return higher.to_complex() if lower.is_complex else higher
    if higher.category < lower.category and (higher is _d.bool or lower.category >= _d.CATEGORY_FLOATING):
        return lower if lower.is_complex else promote_types(higher, lower)
    return higher


def result_type(*operands: Any) -> dtype:
    """The dtype that `operands` (tensors and numbers; None is skipped) promote to. RuntimeError where promotion is
    not defined."""
    dimensioned: dtype | None = None
    zero: dtype | None = None
    number: dtype | None = None
    for operand in operands:
        if operand is None:
            continue
        d: Any = getattr(operand, "dtype", None)
        if d.__class__ is dtype:
            if operand.dim():
                dimensioned = d if dimensioned is None or dimensioned is d else promote_types(dimensioned, d)
            else:
                zero = d if zero is None or zero is d else promote_types(zero, d)
        else:
            d = scalar_dtype(operand)
            number = d if number is None or number is d else promote_types(number, d)
    if zero is None and number is None and dimensioned is not None:
        return dimensioned
    found = _combine(dimensioned, _combine(zero, number))
    if found is None:
        raise RuntimeError("result_type needs at least one operand")
    return found


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether a result of dtype `from_` may be written into a tensor of dtype `to`: the category must not fall.

    Integers do not go to bool, floating types not to integers, complex types not to real ones.
    """
    return from_.category <= to.category or (to in _NOT_INTEGRAL and not from_.is_complex)


def check_can_cast(from_: dtype, to: dtype) -> None:
    """RuntimeError with PyTorch's sentence unless `can_cast(from_, to)`."""
    if not can_cast(from_, to):
        raise RuntimeError(f"result type {from_.cpp} can't be cast to the desired output type {to.cpp}")
