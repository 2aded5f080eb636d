"""The dtypes, their limits and the default dtype."""

from __future__ import annotations

import copy
import pickle

import ml_dtypes
import numpy as np
import pytest

from mindtorch_v2 import _dtype as d

COMPUTING = [x for x in d.DTYPES.values() if x.np is not None]


@pytest.fixture
def default_dtype():
    """Puts the default dtype back."""
    before = d.get_default_dtype()
    yield
    d.set_default_dtype(before)


@pytest.mark.parametrize("name", sorted(d.DTYPES))
def test_a_dtype_is_one_object_with_a_name(name):
    one = d.DTYPES[name]
    assert repr(one) == f"torch.{name}"
    assert getattr(d, name, one) is one
    assert pickle.loads(pickle.dumps(one)) is one
    assert copy.deepcopy(one) is one
    assert {one: 1}[one] == 1


@pytest.mark.parametrize("one", COMPUTING, ids=str)
def test_numpy_gives_the_same_facts(one):
    assert one.np.itemsize == one.itemsize
    assert d.from_numpy_dtype(one.np) is one
    kinds = {"b": d.CATEGORY_BOOL, "i": d.CATEGORY_INTEGER, "u": d.CATEGORY_INTEGER, "f": d.CATEGORY_FLOATING}
    expected = {**kinds, "c": d.CATEGORY_COMPLEX, "W": d.CATEGORY_COMPLEX, "V": d.CATEGORY_FLOATING}[one.np.kind]
    assert one.category == expected


@pytest.mark.parametrize(
    ("alias", "name"),
    [("float", "float32"), ("half", "float16"), ("long", "int64"), ("int", "int32"), ("short", "int16")]
    + [("double", "float64"), ("cfloat", "complex64"), ("cdouble", "complex128"), ("chalf", "complex32")],
)
def test_aliases(alias, name):
    assert d.ALIASES[alias] is getattr(d, alias) is d.DTYPES[name]


@pytest.mark.parametrize(
    ("name", "opmath", "real", "complex_"),
    [
        ("float16", "float32", "float16", "complex32"),
        ("bfloat16", "float32", "bfloat16", "complex64"),
        ("float32", "float32", "float32", "complex64"),
        ("float64", "float64", "float64", "complex128"),
        ("complex32", "complex64", "float16", "complex32"),
        ("complex64", "complex64", "float32", "complex64"),
        ("complex128", "complex128", "float64", "complex128"),
    ],
)
def test_related_dtypes(name, opmath, real, complex_):
    one = d.DTYPES[name]
    assert (one.opmath.name, one.to_real().name, one.to_complex().name) == (opmath, real, complex_)


def test_integers_have_no_complex_dtype():
    assert d.int64.opmath is d.int64.to_real() is d.int64
    with pytest.raises(RuntimeError, match="Unknown Complex ScalarType for Long"):
        d.int64.to_complex()


def test_signs():
    signed = {x.name for x in COMPUTING if x.is_signed}
    assert {"int8", "float16", "float8_e5m2", "complex64"} <= signed
    assert not signed & {"uint8", "uint64", "bool", "float8_e8m0fnu"}
    with pytest.raises(RuntimeError, match="isSignedType not supported for quantized types"):
        _ = d.qint8.is_signed


def test_a_dtype_cannot_be_made_or_extended():
    with pytest.raises(TypeError, match=r"cannot create 'torch\.dtype' instances"):
        d.dtype("float32")
    with pytest.raises(AttributeError, match="'torch.dtype' object has no attribute 'foo'|'dtype' object has no"):
        _ = d.float32.foo


@pytest.mark.parametrize("given", ["U3", "S2", "O", "M8[s]", "V8", "f16"])
def test_numpy_types_without_a_tensor(given):
    with pytest.raises(
        TypeError, match=r"can't convert np\.ndarray of type numpy\.\w+\. The only supported types are: float64,"
    ):
        d.from_numpy_dtype(np.dtype(given))


def test_foreign_byte_order_is_refused():
    foreign = np.dtype(np.float32).newbyteorder("S")
    with pytest.raises(ValueError, match="byte order different from the native byte order"):
        d.from_numpy_dtype(foreign)


@pytest.mark.parametrize("code", "bBhHiIlLqQ")
def test_every_c_integer_has_a_dtype(code):
    assert d.from_numpy_dtype(np.dtype(code)).itemsize == np.dtype(code).itemsize


def test_ml_dtypes_have_dtypes():
    assert d.from_numpy_dtype(np.dtype(ml_dtypes.bfloat16)) is d.bfloat16
    assert d.from_numpy_dtype(ml_dtypes.float8_e4m3fn) is d.float8_e4m3fn


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "float32",
            "finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, smallest_normal=1.17549e-38, "
            "tiny=1.17549e-38, dtype=float32)",
        ),
        (
            "bfloat16",
            "finfo(resolution=0.01, min=-3.38953e+38, max=3.38953e+38, eps=0.0078125, smallest_normal=1.17549e-38, "
            "tiny=1.17549e-38, dtype=bfloat16)",
        ),
        (
            "float8_e5m2fnuz",
            "finfo(resolution=1, min=-57344, max=57344, eps=0.125, smallest_normal=3.05176e-05, tiny=3.05176e-05, "
            "dtype=float8_e5m2fnuz)",
        ),
        (
            "complex64",
            "finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, smallest_normal=1.17549e-38, "
            "tiny=1.17549e-38, dtype=float32)",
        ),
    ],
)
def test_finfo_prints_as_pytorch(name, text):
    assert repr(d.finfo(d.DTYPES[name])) == text


def test_finfo_is_of_the_default_dtype_without_argument(default_dtype):
    assert d.finfo().dtype == "float32"
    d.set_default_dtype(d.bfloat16)
    assert (d.finfo().dtype, d.finfo().bits) == ("bfloat16", 16)
    assert d.finfo(type=d.float64) == d.finfo(d.float64)


def test_iinfo():
    info = d.iinfo(d.int8)
    assert (info.bits, info.min, info.max, info.dtype) == (8, -128, 127, "int8")
    assert (d.iinfo(d.uint64).min, d.iinfo(d.uint64).max) == (0, 2**64 - 1)
    assert repr(d.iinfo(d.int32)) == "iinfo(min=-2.14748e+09, max=2.14748e+09, dtype=int32)"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: d.finfo(d.int8),
            "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'",
        ),
        (
            lambda: d.iinfo(d.half),
            "torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'",
        ),
        (lambda: d.iinfo(d.bool), "torch.bool is not supported by torch.iinfo"),
        (lambda: d.iinfo(), 'iinfo() missing 1 required positional arguments: "type"'),
        (lambda: d.finfo(3), "finfo(): argument 'type' (position 1) must be torch.dtype, not int"),
        (lambda: d.set_default_dtype(d.int64), "only floating-point types are supported as the default type"),
        (lambda: d.set_default_dtype(d.complex64), "only floating-point types are supported as the default type"),
        (
            lambda: d.set_default_dtype("x"),
            "invalid dtype object: only floating-point types are supported as the default type",
        ),
        (lambda: d.set_default_dtype(d.float8_e5m2), "couldn't find storage object Float8_e5m2Storage"),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("name", "complex_name"),
    [("float32", "complex64"), ("float64", "complex128"), ("float16", "complex32"), ("bfloat16", "complex64")],
)
def test_default_dtype(default_dtype, name, complex_name):
    d.set_default_dtype(d.DTYPES[name])
    assert d.get_default_dtype().name == name
    assert d.get_default_complex_dtype().name == complex_name
