"""Tensors of Python's numbers and numbers of tensors, as PyTorch gives them: with the extension, which reads everyday ones, and without."""

from __future__ import annotations

import math
from typing import Any

import pytest

import mindtorch_v2 as torch

_INF, _NAN = math.inf, math.nan


@pytest.mark.parametrize(
    ("data", "kind", "shape"),
    [
        (1, "int64", ()),
        (2.5, "float32", ()),
        (True, "bool", ()),
        ([1, 2], "int64", (2,)),
        ([True, False], "bool", (2,)),
        ([1, True], "int64", (2,)),
        ([1.5, True, 2], "float32", (3,)),
        (((1, 2), [3, 4.5]), "float32", (2, 2)),
        ([], "float32", (0,)),
        ([[], []], "float32", (2, 0)),
        ([[[]]], "float32", (1, 1, 0)),
        (range(3), "int64", (3,)),
        ([2**40, -(2**63)], "int64", (2,)),
        ([[0.1, _INF], [-0.0, 3]], "float32", (2, 2)),
        ([1j, 2], "complex64", (2,)),
    ],
)
def test_what_lists_become(data: Any, kind: str, shape: tuple[int, ...]) -> None:
    made = torch.tensor(data)
    assert made.dtype is getattr(torch, kind) and made.shape == shape and made.is_leaf and not made.requires_grad
    assert torch.as_tensor(data).tolist() == made.tolist()


@pytest.mark.parametrize(
    ("data", "kind", "values"),
    [
        ([1, 2], "float64", [1.0, 2.0]),
        ([1.75, -1.75], "int64", [1, -1]),
        ([1, 0.0, _NAN], "bool", [True, False, True]),
        ([0.1, 3], "bfloat16", [0.10009765625, 3.0]),
        ([2**24 + 1], "float32", [2.0**24]),
        ([-1, 255, 0], "uint8", [255, 255, 0]),
        ([127, -128], "int8", [127, -128]),
        ([10**30], "float32", [1.0000000150474662e30]),
        ([True, 2], "int16", [1, 2]),
        (3, "float16", 3.0),
    ],
)
def test_what_numbers_become_in_a_dtype(data: Any, kind: str, values: Any) -> None:
    made = torch.tensor(data, dtype=getattr(torch, kind))
    assert made.dtype is getattr(torch, kind) and made.tolist() == values
    assert torch.ones(2).new_tensor(data, dtype=getattr(torch, kind)).tolist() == values


@pytest.mark.parametrize(
    ("data", "kind", "error", "words"),
    [
        ([300], "uint8", RuntimeError, "value cannot be converted to type uint8 without overflow"),
        ([-129], "int8", RuntimeError, "value cannot be converted to type int8 without overflow"),
        ([_NAN], "int64", RuntimeError, "value cannot be converted to type int64 without overflow"),
        ([1e300], "int32", RuntimeError, "value cannot be converted to type int32 without overflow"),
        ([2**63], None, ValueError, "Overflow when unpacking long long"),
        ([[1, 2], [3]], None, ValueError, "expected sequence of length 2 at dim 1 (got 1)"),
        ([1, [2]], None, TypeError, "'list' object cannot be interpreted as an integer"),
        ([1, [2]], "float32", TypeError, "must be real number, not list"),
        ([[1], 2], None, TypeError, "not a sequence"),
        ([1j], "float32", TypeError, "must be real number, not complex"),
        ([None], "float32", TypeError, "must be real number, not NoneType"),
        (None, "int64", TypeError, "'NoneType' object cannot be interpreted as an integer"),
        (None, None, RuntimeError, "Could not infer dtype of NoneType"),
        (["a"], "int64", ValueError, "too many dimensions 'str'"),
    ],
)
def test_what_is_refused(data: Any, kind: str | None, error: type, words: str) -> None:
    with pytest.raises(error) as told:
        torch.tensor(data, dtype=None if kind is None else getattr(torch, kind))
    assert str(told.value) == words


def test_default_dtype_gradients_and_devices() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.tensor([1.5, 2]).dtype is torch.float64 and torch.tensor([]).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    leaf = torch.tensor([1.0, 2.0], requires_grad=True, device="cpu")
    (leaf * leaf).sum().backward()
    assert leaf.is_leaf and leaf.grad is not None and leaf.grad.tolist() == [2.0, 4.0]
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can require gradients"):
        torch.tensor([1, 2], requires_grad=True)
    assert torch.tensor([1.0], device="meta").is_meta
    with torch.inference_mode():
        assert torch.tensor([1.0]).is_inference()


@pytest.mark.parametrize(
    "kind", ["float32", "float64", "bfloat16", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"]
)
def test_numbers_of_tensors(kind: str) -> None:
    x = torch.tensor([[0, 1, 3], [1, 0, 2]]).to(getattr(torch, kind))
    floating = x.is_floating_point()
    number = bool if kind == "bool" else float if floating else int
    values = [[number(v) for v in row] for row in ([0, 1, 3], [1, 0, 2])]
    assert x.tolist() == values and x.t().tolist() == [list(column) for column in zip(*values)]
    assert {type(v) for row in x.tolist() for v in row} == {number}
    one = x[0, 2]
    assert type(one.item()) is number and one.item() == one.tolist() == number(3)
    assert int(one) == int(number(3)) and float(one) == float(number(3)) and bool(one) and not bool(x[0, 0])
    if floating:
        with pytest.raises(TypeError, match="only integer tensors of a single element can be converted to an index"):
            [0, 1][x[0, 0]]
    else:
        assert list(range(9))[one] == int(number(3))
    assert x[:, :0].tolist() == [[], []]


def test_numbers_of_more_or_fewer_elements() -> None:
    for x in (torch.ones(2), torch.ones(0)):
        with pytest.raises(RuntimeError, match=f"a Tensor with {x.numel()} elements cannot be converted to Scalar"):
            x.item()
        with pytest.raises(RuntimeError, match="Boolean value of Tensor with"):
            bool(x)
    with pytest.raises(ValueError, match="cannot convert float NaN to integer"):
        int(torch.tensor(_NAN))


def test_where_elements_lie() -> None:
    x = torch.arange(12.0).view(3, 4)
    assert x.element_size() == 4 and x.storage_offset() == 0 and x[1:, 2].storage_offset() == 6
    assert x[1:].data_ptr() == x.data_ptr() + 16 and torch.ones(0).data_ptr() == 0
