"""Type promotion by table and by category."""

from __future__ import annotations

import itertools

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _dtype as d
from mindtorch_v2._rules.promotion import can_cast, check_can_cast, promote_types, result_type, scalar_dtype

ORDER = "uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128 bool".split()


class Duck:
    """What promotion reads of a tensor."""

    def __init__(self, dtype, ndim):
        self.dtype = dtype
        self.ndim = ndim

    def dim(self):
        return self.ndim


def dimensioned(name):
    return Duck(d.DTYPES[name], 2)


def scalar_tensor(name):
    return Duck(d.DTYPES[name], 0)


@pytest.mark.parametrize(("a", "b"), list(itertools.product(ORDER, ORDER)))
def test_promotion_is_symmetric_and_keeps_the_higher_category(a, b):
    first, second = d.DTYPES[a], d.DTYPES[b]
    found = promote_types(first, second)
    assert found is promote_types(second, first)
    assert found.category == max(first.category, second.category)
    assert found.itemsize >= max(x.itemsize for x in (first, second) if x.category == found.category)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("uint8", "int8", "int16"),
        ("uint8", "int64", "int64"),
        ("bool", "uint8", "uint8"),
        ("int64", "float16", "float16"),
        ("float16", "bfloat16", "float32"),
        ("bfloat16", "complex64", "complex64"),
        ("float16", "complex32", "complex32"),
        ("bfloat16", "complex32", "complex64"),
        ("float64", "complex64", "complex128"),
        ("uint16", "float16", "float16"),
        ("uint64", "uint64", "uint64"),
        ("float8_e5m2", "float8_e5m2", "float8_e5m2"),
    ],
)
def test_promote_types(a, b, expected):
    assert promote_types(d.DTYPES[a], d.DTYPES[b]).name == expected


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (
            "uint16",
            "int8",
            "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote UInt16 and Char",
        ),
        (
            "bool",
            "uint32",
            "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote Bool and UInt32",
        ),
        (
            "uint64",
            "complex64",
            "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote UInt64 and ComplexFloat",
        ),
        (
            "float8_e5m2",
            "float32",
            "Promotion for Float8 Types is not supported, attempted to promote Float8_e5m2 and Float",
        ),
        (
            "uint16",
            "float8_e5m2",
            "Promotion for Float8 Types is not supported, attempted to promote UInt16 and Float8_e5m2",
        ),
        (
            "qint8",
            "float32",
            "promoteTypes with quantized numbers is not handled yet; figure out what the correct rules should be, "
            "offending types: QInt8 Float",
        ),
        ("bits8", "int8", "Promotion from Bits8 and Char is unsupported."),
    ],
)
def test_promotions_that_are_not_defined(a, b, message):
    with pytest.raises(RuntimeError) as caught:
        promote_types(d.DTYPES[a], d.DTYPES[b])
    assert str(caught.value) == message


def test_promote_types_wants_dtypes():
    with pytest.raises(
        TypeError, match=r"promote_types\(\): argument 'type2' \(position 2\) must be torch.dtype, not int"
    ):
        promote_types(d.int8, 3)


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        ([dimensioned("int8"), 1000], "int8"),
        ([dimensioned("int8"), 1.5], "float32"),
        ([dimensioned("bool"), 2], "int64"),
        ([dimensioned("bool"), True], "bool"),
        ([dimensioned("float16"), 1.5], "float16"),
        ([dimensioned("float16"), 1j], "complex32"),
        ([dimensioned("bfloat16"), 1j], "complex64"),
        ([dimensioned("int32"), 1j], "complex64"),
        ([dimensioned("float16"), scalar_tensor("float64")], "float16"),
        ([dimensioned("int32"), scalar_tensor("float64")], "float64"),
        ([dimensioned("float32"), scalar_tensor("complex128")], "complex64"),
        ([dimensioned("uint16"), 1], "uint16"),
        ([dimensioned("uint16"), 1.0], "float32"),
        ([dimensioned("uint16"), scalar_tensor("complex64")], "complex64"),
        ([scalar_tensor("int32"), 2.0], "float32"),
        ([scalar_tensor("float64"), dimensioned("int64")], "float64"),
        ([scalar_tensor("float64"), 1.0], "float64"),
        ([dimensioned("float8_e5m2"), 1.0], "float8_e5m2"),
        ([1, 2.0], "float32"),
        ([True, 2], "int64"),
        ([dimensioned("float32"), None, dimensioned("float64")], "float64"),
        ([dimensioned("uint8"), dimensioned("int8"), scalar_tensor("float16")], "float16"),
    ],
)
def test_result_type(operands, expected):
    assert result_type(*operands).name == expected
    assert result_type(*reversed(operands)).name == expected


def test_result_type_follows_the_default_dtype():
    d.set_default_dtype(d.float64)
    try:
        assert result_type(dimensioned("int8"), 1.5) is d.float64
        assert result_type(dimensioned("int8"), 1j) is d.complex128
    finally:
        d.set_default_dtype(d.float32)


def test_a_promotion_across_ranks_can_be_undefined():
    with pytest.raises(RuntimeError, match="attempted to promote Char and Float8_e4m3fn"):
        result_type(dimensioned("int8"), scalar_tensor("float8_e4m3fn"))


@pytest.mark.parametrize(("value", "name"), [(True, "bool"), (3, "int64"), (0.5, "float32"), (1j, "complex64")])
def test_numbers_have_dtypes(value, name):
    assert scalar_dtype(value).name == name


def test_other_objects_have_none():
    with pytest.raises(TypeError, match="expected a tensor or a number, but got str"):
        scalar_dtype("x")


@pytest.mark.parametrize(
    ("source", "target", "possible"),
    [
        ("float64", "float16", True),
        ("int64", "uint8", True),
        ("bool", "float32", True),
        ("float32", "int64", False),
        ("int8", "bool", False),
        ("complex64", "float64", False),
        ("float32", "complex64", True),
        ("float32", "qint8", True),
    ],
)
def test_can_cast(source, target, possible):
    assert can_cast(d.DTYPES[source], d.DTYPES[target]) is possible


def test_the_message_of_an_impossible_cast():
    with pytest.raises(RuntimeError) as caught:
        check_can_cast(d.float32, d.int64)
    assert str(caught.value) == "result type Float can't be cast to the desired output type Long"


def test_pythons_types_stand_for_dtypes():
    assert (
        torch.promote_types(torch.float32, int) is torch.float32
        and torch.promote_types(type1=int, type2=bool) is torch.int64
    )
    assert (
        torch.can_cast(from_=torch.int8, to=float)
        and not torch.can_cast(torch.float32, bool)
        and torch.can_cast(int, complex)
    )
    x = torch.ones(3)
    for kind, dtype in ((int, torch.int64), (float, torch.float64), (bool, torch.bool), (complex, torch.complex128)):
        assert x.to("cpu", kind).dtype is x.to(kind).dtype is x.to(device="cpu", dtype=kind).dtype is dtype
        assert x.to(torch.device("meta"), kind).dtype is dtype
    with pytest.raises(TypeError, match=r"can_cast\(\): argument 'from_' \(position 1\) must be torch.dtype, not int"):
        torch.can_cast(3, torch.int8)
    with pytest.raises(
        TypeError, match=r"promote_types\(\): argument 'type1' \(position 1\) must be torch.dtype, not type"
    ):
        torch.promote_types(str, int)
    with pytest.raises(TypeError, match=r"to\(\) received an invalid combination of arguments - got \(str, type\)"):
        x.to("cpu", str)
    with pytest.raises(ValueError, match="invalid type: 'int'"):
        x.type(int)
    with pytest.raises(TypeError, match="dtype must be a type, str, or dtype object"):
        x.type(3)
