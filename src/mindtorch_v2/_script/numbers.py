"""The ints by which TorchScript writes dtypes, layouts and memory formats."""

from __future__ import annotations

from typing import Any

from .. import _dtype, _layout

_DTYPES = (
    "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool qint8 quint8 qint32 bfloat16 quint4x2 quint2x4 "
    "bits1x8 bits2x4 bits4x2 bits8 bits16 float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz uint16 uint32 uint64"
).split()
_LAYOUTS = "strided sparse_coo sparse_csr _mkldnn sparse_csc sparse_bsr sparse_bsc jagged".split()
_FORMATS = "contiguous_format preserve_format channels_last channels_last_3d".split()

_CODES: dict[Any, int] = {}
_BY_TYPE: dict[str, dict[int, Any]] = {"ScalarType": {}, "Layout": {}, "MemoryFormat": {}}
for _word, _names, _table in (
    ("ScalarType", _DTYPES, _dtype.DTYPES),
    ("Layout", _LAYOUTS, _layout.LAYOUTS),
    ("MemoryFormat", _FORMATS, _layout.MEMORY_FORMATS),
):
    for _code, _name in enumerate(_names):
        if _name in _table:
            _CODES[_table[_name]] = _code
            _BY_TYPE[_word][_code] = _table[_name]


def code_of(named: Any) -> int:
    """The int of a dtype, layout or memory format. RuntimeError for one that TorchScript has none for."""
    try:
        return _CODES[named]
    except KeyError:
        raise RuntimeError(f"{named} has no number in TorchScript") from None


def named_by(word: str, code: Any) -> Any:
    """The dtype ("ScalarType"), layout ("Layout") or memory format of an int; what is no int stays. RuntimeError for an unknown one."""
    if type(code) is not int:
        return code
    try:
        return _BY_TYPE[word][code]
    except KeyError:
        raise RuntimeError(f"{code} is no {word} that is supported") from None
