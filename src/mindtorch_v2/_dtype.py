"""The dtypes of tensors, their limits (`finfo`, `iinfo`) and the default dtype.

Note [Names of a dtype]. PyTorch calls one dtype by several names, and programs match on all of them: `torch.float32` in
Python, `Float` in the messages of kernels, `float` or `long int` where a message prints the C++ type. Each `dtype`
carries all three (`name`, `cpp`, `ctype`).
"""

from __future__ import annotations

import builtins
import math
from typing import Any, ClassVar

import numpy as np

from . import _state

try:
    import ml_dtypes
except ImportError:  # where numpy alone can be had
    ml_dtypes = None

CATEGORY_BOOL, CATEGORY_INTEGER, CATEGORY_FLOATING, CATEGORY_COMPLEX = range(4)


class dtype:
    """The type of a tensor's elements. There is one object per type, compared and hashed by identity.

    name: `float32`. np: the numpy dtype of CPU arrays, or None where numpy has none (complex32, packed and quantised
    types).
    category: 0 bool, 1 integer, 2 floating, 3 complex. opmath: the dtype in which kernels compute.
    cpp, ctype: the names that messages print, see Note [Names of a dtype]. abbr: the short form (`f32`).
    """

    __slots__ = (
        "name",
        "np",
        "itemsize",
        "is_floating_point",
        "is_complex",
        "category",
        "opmath",
        "cpp",
        "ctype",
        "abbr",
        "_signed",
        "_real",
        "_complex",
    )

    name: str
    np: np.dtype[Any] | None
    itemsize: builtins.int
    is_floating_point: builtins.bool
    is_complex: builtins.bool
    category: builtins.int
    opmath: dtype
    cpp: str
    ctype: str
    abbr: str
    _signed: builtins.bool | None
    _real: dtype
    _complex: dtype | None

    def __new__(cls, *args: object, **kwargs: object) -> dtype:
        raise TypeError("cannot create 'torch.dtype' instances")

    @property
    def is_signed(self) -> builtins.bool:
        """Whether the type has negative values. RuntimeError for quantised types."""
        if self._signed is None:
            raise RuntimeError("isSignedType not supported for quantized types")
        return self._signed

    def to_real(self) -> dtype:
        """The dtype of the real part: complex64 gives float32, real types give themselves."""
        return self._real

    def to_complex(self) -> dtype:
        """The complex dtype whose parts hold this type. RuntimeError for integers, bool and float8."""
        if self._complex is None:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.cpp}")
        return self._complex

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str | tuple[Any, tuple[str]]:
        return self.name if _state.serves_torch else (by_name, (self.name,))


dtype.__module__ = "torch"  # `type(x.dtype)` prints <class 'torch.dtype'>

DTYPES: dict[str, dtype] = {}
"""Every dtype by its full name."""

ALIASES: dict[str, dtype] = {}
"""The further public names: `float` for float32, and so on."""


def by_name(name: str) -> dtype:
    """The dtype called `name`. KeyError if there is none."""
    return DTYPES[name]


def _extended(name: str) -> Any:
    """ml_dtypes' type of this name, or None where ml_dtypes is not there, or is older than the type."""
    return getattr(ml_dtypes, name, None)


def unsupported(d: dtype) -> str:
    """The sentence that says why arrays cannot have a dtype."""
    words = f"tensors of dtype {d} are not supported on the CPU"
    if ml_dtypes is None and (d is bfloat16 or d in FLOAT8):
        return f"{words} without ml_dtypes, which is not installed: pip install ml_dtypes"
    return words


def _make(
    name: str,
    np_type: object,
    itemsize: builtins.int,
    category: builtins.int,
    names: tuple[str, str, str],
    signed: builtins.bool | None = True,
    alias: str | None = None,
) -> dtype:
    self = object.__new__(dtype)
    self.name = name
    self.np = None if np_type is None else np.dtype(np_type)
    self.itemsize = itemsize
    self.category = category
    self.is_floating_point = category == CATEGORY_FLOATING
    self.is_complex = category == CATEGORY_COMPLEX
    self.cpp, self.ctype, self.abbr = names
    self.opmath = self._real = self
    self._complex = self if self.is_complex else None
    self._signed = signed
    DTYPES[name] = self
    if alias is not None:
        ALIASES[alias] = self
    return self


_F, _I, _C = CATEGORY_FLOATING, CATEGORY_INTEGER, CATEGORY_COMPLEX

float32 = _make("float32", np.float32, 4, _F, ("Float", "float", "f32"), alias="float")
float64 = _make("float64", np.float64, 8, _F, ("Double", "double", "f64"), alias="double")
float16 = _make("float16", np.float16, 2, _F, ("Half", "c10::Half", "f16"), alias="half")
bfloat16 = _make("bfloat16", _extended("bfloat16"), 2, _F, ("BFloat16", "c10::BFloat16", "bf16"))
float8_e4m3fn = _make(
    "float8_e4m3fn", _extended("float8_e4m3fn"), 1, _F, ("Float8_e4m3fn", "c10::Float8_e4m3fn", "f8e4m3fn")
)
float8_e5m2 = _make("float8_e5m2", _extended("float8_e5m2"), 1, _F, ("Float8_e5m2", "c10::Float8_e5m2", "f8e5m2"))
float8_e4m3fnuz = _make(
    "float8_e4m3fnuz", _extended("float8_e4m3fnuz"), 1, _F, ("Float8_e4m3fnuz", "c10::Float8_e4m3fnuz", "f8e4m3fnuz")
)
float8_e5m2fnuz = _make(
    "float8_e5m2fnuz", _extended("float8_e5m2fnuz"), 1, _F, ("Float8_e5m2fnuz", "c10::Float8_e5m2fnuz", "f8e5m2fnuz")
)
float8_e8m0fnu = _make(
    "float8_e8m0fnu",
    _extended("float8_e8m0fnu"),
    1,
    _F,
    ("Float8_e8m0fnu", "c10::Float8_e8m0fnu", "f8e8m0fnu"),
    signed=False,
)
# Two values share a byte, which no numpy dtype can express.
float4_e2m1fn_x2 = _make("float4_e2m1fn_x2", None, 1, _F, ("Float4_e2m1fn_x2", "c10::Float4_e2m1fn_x2", "f4e2m1fnx2"))

uint8 = _make("uint8", np.uint8, 1, _I, ("Byte", "unsigned char", "u8"), signed=False)
int8 = _make("int8", np.int8, 1, _I, ("Char", "signed char", "i8"))
int16 = _make("int16", np.int16, 2, _I, ("Short", "short int", "i16"), alias="short")
int32 = _make("int32", np.int32, 4, _I, ("Int", "int", "i32"), alias="int")
int64 = _make("int64", np.int64, 8, _I, ("Long", "long int", "i64"), alias="long")
uint16 = _make("uint16", np.uint16, 2, _I, ("UInt16", "short unsigned int", "u16"), signed=False)
uint32 = _make("uint32", np.uint32, 4, _I, ("UInt32", "unsigned int", "u32"), signed=False)
uint64 = _make("uint64", np.uint64, 8, _I, ("UInt64", "long unsigned int", "u64"), signed=False)
bool = _make("bool", np.bool_, 1, CATEGORY_BOOL, ("Bool", "bool", "b8"), signed=False)

complex32 = _make(
    "complex32", _extended("complex32"), 4, _C, ("ComplexHalf", "c10::complex<c10::Half>", "c32"), alias="chalf"
)
complex64 = _make("complex64", np.complex64, 8, _C, ("ComplexFloat", "c10::complex<float>", "c64"), alias="cfloat")
complex128 = _make(
    "complex128", np.complex128, 16, _C, ("ComplexDouble", "c10::complex<double>", "c128"), alias="cdouble"
)

# Types without arithmetic, known by name only.
qint8 = _make("qint8", None, 1, _I, ("QInt8", "c10::qint8", "qint8"), signed=None)
quint8 = _make("quint8", None, 1, _I, ("QUInt8", "c10::quint8", "quint8"), signed=None)
qint32 = _make("qint32", None, 4, _I, ("QInt32", "c10::qint32", "qint32"), signed=None)
quint4x2 = _make("quint4x2", None, 1, _I, ("QUInt4x2", "c10::quint4x2", "quint4x2"), signed=None)
quint2x4 = _make("quint2x4", None, 1, _I, ("QUInt2x4", "c10::quint2x4", "quint2x4"), signed=None)
QUANTISED = (qint8, quint8, qint32, quint4x2, quint2x4)
for _bits in range(1, 8):
    for _sign, _cpp in (("int", "Int"), ("uint", "UInt")):
        _make(
            f"{_sign}{_bits}",
            None,
            1,
            _I,
            (f"{_cpp}{_bits}", f"c10::dummy_{_sign}1_7_t<{_bits}>", f"{_sign}{_bits}"),
            signed=_sign == "int",
        )
for _name, _size in (("bits8", 1), ("bits16", 2), ("bits1x8", 1), ("bits2x4", 1), ("bits4x2", 1)):
    _make(
        _name,
        None,
        _size,
        _I,
        (_name.capitalize(), f"c10::{_name}", "b" + (_name[4:] if "x" in _name else f"{_name[4:]}x1")),
        signed=None,
    )

float = float32
double = float64
half = float16
short = int16
int = int32
long = int64
chalf = complex32
cfloat = complex64
cdouble = complex128

for _real, _complex in ((float16, complex32), (float32, complex64), (float64, complex128)):
    _real._complex, _complex._real = _complex, _real
bfloat16._complex = complex64  # there is no complex type of bfloat16 parts
for _narrow in (float16, bfloat16, float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu):
    _narrow.opmath = float32
complex32.opmath = complex64

COMPLEX_KINDS = "cW"
"""The `kind` of numpy's complex dtypes, and what ml_dtypes' complex32 had before version 0.7, whose arrays have no `real` and `imag` of their own."""


def known_to_numpy(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array of a type of ml_dtypes as float32 or complex64, whose scalars are Python's; others as they are."""
    if array.dtype.num < 256:
        return array
    return array.astype(np.complex64 if array.dtype.kind in COMPLEX_KINDS else np.float32)


FLOAT8 = (float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu)
"""The dtypes of one byte that store and convert, but do not compute or promote."""

WIDE_UNSIGNED = (uint16, uint32, uint64)
"""Unsigned dtypes that promote with no other integer type (Note [Barebones unsigned types])."""

FROM_NUMPY: dict[np.dtype[Any], dtype] = {d.np: d for d in DTYPES.values() if d.np is not None}
# C's `long` and `long long` are two numpy types of one size; both are ours.
for _code in "bBhHiIlLqQ":
    FROM_NUMPY[np.dtype(_code)] = FROM_NUMPY[np.dtype(f"{np.dtype(_code).kind}{np.dtype(_code).itemsize}")]

_SUPPORTED = (
    "float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, "
    "and bool"
)


def from_numpy_dtype(np_dtype: Any) -> dtype:
    """The dtype of numpy's (or ml_dtypes') `np_dtype`.

    Raises TypeError for a type that tensors cannot hold, ValueError for one in foreign byte order.
    """
    try:
        return FROM_NUMPY[np_dtype]
    except (KeyError, TypeError):
        given = np.dtype(np_dtype)
    found = FROM_NUMPY.get(given)
    if found is not None:
        return found
    if not given.isnative and given.newbyteorder("=") in FROM_NUMPY:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. "
            "Conversion between byte orders is currently not supported."
        )
    kind = given.type
    raise TypeError(
        f"can't convert np.ndarray of type {kind.__module__}.{kind.__name__}. The only supported types are: "
        f"{_SUPPORTED}."
    )


# --- the default dtype ------------------------------------------------------------------------------------------

_default: dtype = float32


def get_default_dtype() -> dtype:
    """The floating dtype of new tensors for which none is given."""
    return _default


def get_default_complex_dtype() -> dtype:
    """The complex dtype of new tensors made from Python complex numbers."""
    return complex128 if _default is float64 else complex32 if _default is float16 else complex64


def inferred_complex_dtype() -> dtype:
    """The complex dtype of new tensors made from Python complex numbers alone. RuntimeError where the default dtype has none."""
    if _default is bfloat16:
        raise RuntimeError("invalid default scalar type for complex")
    return get_default_complex_dtype()


def set_default_dtype(d: dtype) -> None:
    """Sets the default floating dtype. TypeError unless `d` is float16, bfloat16, float32 or float64."""
    global _default
    if not isinstance(d, dtype):
        raise TypeError("invalid dtype object: only floating-point types are supported as the default type")
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    if d not in (float16, bfloat16, float32, float64):
        raise TypeError(f"couldn't find storage object {d.cpp}Storage")
    _default = d
    _state.forget_rules()


# --- limits -----------------------------------------------------------------------------------------------------


def _limits_argument(function: str, given: tuple[Any, ...], default: dtype | None) -> dtype:
    if not given:
        if default is None:
            raise TypeError(f'{function}() missing 1 required positional arguments: "type"')
        return default
    if not isinstance(given[0], dtype):
        kind = type(given[0]).__name__
        raise TypeError(f"{function}(): argument 'type' (position 1) must be torch.dtype, not {kind}")
    return given[0]


# eps, max and the smallest normal number of types that are not numpy's. PyTorch gives the eps of e4m3 for e5m2fnuz too, and programs compare the figures.
_EXTENDED_LIMITS = {
    "bfloat16": (2.0**-7, (2 - 2.0**-7) * 2.0**127, 2.0**-126),
    "float8_e4m3fn": (2.0**-3, 448.0, 2.0**-6),
    "float8_e5m2": (2.0**-2, 57344.0, 2.0**-14),
    "float8_e4m3fnuz": (2.0**-3, 240.0, 2.0**-7),
    "float8_e5m2fnuz": (2.0**-3, 57344.0, 2.0**-15),
    "float8_e8m0fnu": (1.0, 2.0**127, 2.0**-127),
}


def float_limits(kind: np.dtype[Any]) -> Any:
    """numpy's or ml_dtypes' `finfo` of a floating type of arrays."""
    return np.finfo(kind) if ml_dtypes is None or kind.kind == "f" else ml_dtypes.finfo(kind)


class _Limits:
    """What is known of a dtype, found once; each object is its own, as PyTorch's."""

    __slots__ = ()

    dtype: str
    _known: ClassVar[dict[dtype, Any]]

    def __new__(cls, *args: dtype, **kwargs: dtype) -> Any:
        given = args or tuple(kwargs.values())
        self = super().__new__(cls)
        known = cls._known.get(given[0]) if given and given[0].__class__ is dtype else None
        if known is not None:
            for name in cls.__slots__:
                setattr(self, name, getattr(known, name))
            return self
        kind = _limits_argument(cls.__name__, given, cls._otherwise())
        self._fill(kind)
        cls._known[kind] = self
        return self

    @staticmethod
    def _otherwise() -> dtype | None:
        """The dtype that is meant when none is given."""
        return None

    def _fill(self, d: dtype) -> None:
        raise NotImplementedError

    def __eq__(self, other: object) -> builtins.bool:
        return isinstance(other, _Limits) and type(other) is type(self) and self.dtype == other.dtype

    __hash__ = None


class finfo(_Limits):
    """The limits of a floating dtype (of the parts, for a complex one); without argument, of the default dtype.

    Attributes: bits, eps, max, min, tiny, smallest_normal, resolution (floats) and dtype (its name). TypeError for
    other dtypes.
    """

    __slots__ = ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype")

    bits: int
    eps: builtins.float
    max: builtins.float
    min: builtins.float
    tiny: builtins.float
    smallest_normal: builtins.float
    resolution: builtins.float
    dtype: str

    _known: ClassVar[dict[dtype, finfo]] = {}

    @staticmethod
    def _otherwise() -> dtype:
        return _default

    def _fill(self, d: dtype) -> None:
        if not (d.is_floating_point or d.is_complex):
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"
            )
        d = d.to_real()
        if d.name in _EXTENDED_LIMITS:
            self.eps, self.max, self.tiny = _EXTENDED_LIMITS[d.name]
            self.min = -self.max if d.is_signed else self.tiny
        elif d.np is None:
            raise TypeError(f"torch.finfo() does not support {d}")
        else:
            limits = np.finfo(d.np)
            self.eps, self.max, self.min = limits.eps.item(), limits.max.item(), limits.min.item()
            self.tiny = limits.smallest_normal.item()
        self.bits = d.itemsize * 8
        self.smallest_normal = self.tiny
        # The decimal digits that survive a round trip: C++'s digits10.
        mantissa_bits = round(-math.log2(self.eps))
        self.resolution = builtins.float(f"1e-{math.floor(mantissa_bits * math.log10(2))}")
        self.dtype = d.name

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo(_Limits):
    """The limits of an integer dtype. Attributes: bits, max, min (ints) and dtype (its name). TypeError for other
    dtypes."""

    __slots__ = ("bits", "max", "min", "dtype")

    bits: int
    max: int
    min: int
    dtype: str

    _known: ClassVar[dict[dtype, iinfo]] = {}

    def _fill(self, d: dtype) -> None:
        if d is bool:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if d in QUANTISED:
            raise NotImplementedError(f"\"dtype\" not implemented for '{d.cpp}'")
        if d.category != CATEGORY_INTEGER or d.np is None:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        self.bits = d.itemsize * 8
        self.max = 2 ** (self.bits - d.is_signed) - 1
        self.min = -(2 ** (self.bits - 1)) if d.is_signed else 0
        self.dtype = d.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


finfo.__module__ = iinfo.__module__ = "torch"
