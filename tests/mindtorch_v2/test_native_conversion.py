"""Conversions and everyday members of Tensor in C give what the Python code behind them gives."""

from __future__ import annotations

import copy
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from _native_outcomes import needs_extension

import mindtorch_v2 as torch
from mindtorch_v2._backends.cpu.ops import conversion, view

DTYPES = [
    bool,
    np.int8,
    np.uint8,
    np.int16,
    np.int32,
    np.int64,
    np.float32,
    np.float64,
    ml_dtypes.bfloat16,
    np.float16,
    np.complex64,
    np.uint32,
]


def _arrays(dtype: Any) -> list[np.ndarray]:
    values = np.array(
        [
            0,
            1,
            -1,
            3,
            100,
            127,
            -128,
            200,
            255,
            1000,
            -70000,
            2**31 - 1,
            -(2**31),
            2**40,
            7,
            5,
            6,
            9,
            2,
            8,
            4,
            11,
            12,
            13,
        ]
    )
    fractions = np.array([0.0, -0.0, 0.5, -1.5, 2.7, 1e-3, 3.14159, -99.99])
    with np.errstate(all="ignore"):
        whole = values.astype(dtype).reshape(2, 3, 4)
        part = fractions.astype(dtype)
    odd = np.array([np.nan, np.inf, -np.inf, -np.nan]).astype(dtype) if np.dtype(dtype).kind in "fV" else part[:4]
    long = np.resize(part, 70_003)
    square = np.resize(part, (40, 50))
    return [
        whole,
        whole.T,
        whole[:, ::2],
        whole[:, :, ::-1],
        whole.transpose(1, 0, 2),
        part,
        odd,
        part[0],
        part[:0],
        long,
        square.T,
        square[3:, 1:].T,
        part[2:3],
    ]


@needs_extension
@pytest.mark.parametrize("source", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("target", DTYPES, ids=lambda d: np.dtype(d).name)
def test_casts(source: Any, target: Any) -> None:
    torch.ones(1)
    kind = torch.from_numpy(np.zeros(1, target)).dtype if target is not ml_dtypes.bfloat16 else torch.bfloat16
    for number, x in enumerate(_arrays(source)):
        if number == 6 and np.dtype(target).kind in "iu":
            continue  # what is no number, as an integer: undefined in C
        with np.errstate(all="ignore"):
            ours, theirs = conversion.to_copy(x, kind), conversion.to_copy.__wrapped__(x, kind)
            assert (ours.dtype, ours.shape, ours.strides) == (theirs.dtype, theirs.shape, theirs.strides)
            assert ours.tobytes("A") == theirs.tobytes("A"), (x, ours, theirs)
            for place in (np.zeros(x.shape, target), np.zeros((2, *x.shape), target), np.zeros(x.T.shape, target).T):
                again = place.copy("K")
                assert conversion.copy_(place, x) is place
                conversion.copy_.__wrapped__(again, x)
                assert place.tobytes() == again.tobytes()


@needs_extension
@pytest.mark.parametrize("dtype", [*DTYPES, np.complex128], ids=lambda d: np.dtype(d).name)
def test_clones(dtype: Any) -> None:
    for x in _arrays(dtype):
        ours, theirs = view.clone(x), view.clone.__wrapped__(x)
        assert (ours.dtype, ours.shape, ours.strides) == (theirs.dtype, theirs.shape, theirs.strides)
        assert ours.tobytes("A") == theirs.tobytes("A")
        assert not np.may_share_memory(ours, x) or not x.size


@needs_extension
def test_copies_where_memory_overlaps() -> None:
    for step in (1, -1):
        ours, theirs = np.arange(10.0), np.arange(10.0)
        conversion.copy_(ours[2:][::step], ours[:-2])
        conversion.copy_.__wrapped__(theirs[2:][::step], theirs[:-2])
        np.testing.assert_array_equal(ours, theirs)


MEMBERS = ["device", "requires_grad", "grad", "is_leaf", "is_cpu", "is_cuda", "T"]
CALLS: list[tuple] = [
    *(
        ("size",),
        ("size", 0),
        ("size", -1),
        ("size", 5),
        ("size", None),
        ("stride",),
        ("stride", 1),
        ("stride", -9),
        ("numel",),
        ("nelement",),
    ),
    *(
        ("is_contiguous",),
        ("is_floating_point",),
        ("is_complex",),
        ("cpu",),
        ("detach_",),
        ("requires_grad_",),
        ("requires_grad_", False),
    ),
    *(
        ("to", torch.float64),
        ("to", "cpu"),
        ("to", "cpu", torch.int32),
        ("to", torch.device("cpu")),
        ("to", torch.bool, False, True),
        ("to", 3.5),
    ),
    *(
        ("to", torch.float32, torch.int64),
        ("float",),
        ("double",),
        ("half",),
        ("bfloat16",),
        ("int",),
        ("long",),
        ("bool",),
        ("byte",),
        ("numpy",),
    ),
]


def _tensors() -> list:
    base = torch.arange(6.0).reshape(2, 3)
    leaf = base.clone().requires_grad_()
    made = [
        base,
        base.t(),
        base[0, 0],
        torch.zeros(0, 3),
        base.to(torch.int64),
        base > 2,
        base.to(torch.bfloat16),
        torch.complex(base, base),
    ]
    made += [
        leaf,
        leaf * 2,
        leaf[0],
        (leaf * 2)[0],
        base[1],
        torch.nn.Parameter(base),
        torch.empty(2, 3, device="meta"),
        leaf.detach(),
    ]
    changed = base.clone()
    seen = changed[0]
    changed.mul_(leaf)
    forgotten = base.clone()
    kept = forgotten[0]
    forgotten.mul_(leaf).detach_()
    return [*made, seen, changed, kept, forgotten]


def _said(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        data = None if value.device.type == "meta" else value.detach().to(torch.complex128).tolist()
        node = value.grad_fn
        return (
            type(value),
            value.dtype,
            tuple(value.shape),
            value.requires_grad,
            None if node is None else node.name(),
            data,
        )
    return (type(value), value.tolist(), value.dtype) if isinstance(value, np.ndarray) else (type(value), value)


def _outcome(call: Any, *arguments: Any) -> Any:
    try:
        return _said(call(*arguments))
    except Exception as error:  # noqa: BLE001 (the error is what is compared)
        return type(error), str(error)


@needs_extension
@pytest.mark.filterwarnings("ignore")
def test_members_give_what_the_python_ones_give() -> None:
    from mindtorch_v2._api import methods as _methods
    from mindtorch_v2._tensor import Tensor

    behind: dict = {}
    for module in ("attributes", "conversion", "gradient", "shapes"):
        behind.update(__import__(f"{_methods.__name__}.{module}", fromlist=["MEMBERS"]).MEMBERS)
    count = 0
    for ours, theirs in zip(_tensors(), _tensors(), strict=True):
        for name in MEMBERS:
            if name in behind:
                assert _outcome(getattr, ours, name) == _outcome(behind[name].fget, theirs), name
        for name, *arguments in CALLS:
            if name in behind:
                if name in ("detach_", "requires_grad_"):
                    ours, theirs = copy.copy(ours), copy.copy(theirs)
                found = _outcome(getattr(ours, name), *arguments)
                wanted = _outcome(behind[name], theirs, *arguments)
                assert found == wanted, (name, arguments, ours)
                count += not isinstance(getattr(Tensor, name), type(_outcome))
    assert count > 300


def test_geometry() -> None:
    x = torch.arange(24.0).reshape(2, 3, 4).transpose(0, 2)
    assert x.size() == (4, 3, 2) and isinstance(x.size(), torch.Size)
    assert x.size(-1) == x.size(dim=2) == 2
    assert x.stride() == (1, 4, 12) and x.stride(0) == x.stride(dim=-3) == 1
    assert x.numel() == x.nelement() == 24
    assert not x.is_contiguous() and x.transpose(0, 2).is_contiguous()
    assert torch.zeros(0, 3).stride() == (3, 1)
    for wrong in (3, -4):
        with pytest.raises(IndexError, match="Dimension out of range"):
            x.size(wrong)
        with pytest.raises(IndexError, match="Dimension out of range"):
            x.stride(wrong)
    shape = x.shape
    assert shape[0] == 4 and shape[-1] == 2 and shape[1:] == (3, 2) and isinstance(shape[1:], torch.Size)
    with pytest.raises(IndexError):
        shape[3]
    with pytest.raises(TypeError):
        shape["a"]


def test_conversions_that_convert_nothing() -> None:
    x = torch.ones(2)
    assert (
        x.to(torch.float32)
        is x.to("cpu")
        is x.to(x)
        is x.float()
        is x.cpu()
        is x.type_as(x)
        is x.to(device="cpu", dtype=torch.float32)
    )
    assert x.to(torch.float32, copy=True) is not x
    assert x.to(dtype=torch.int64, non_blocking=True).tolist() == [1, 1]
    assert x.double().dtype is x.type_as(torch.zeros(1, dtype=torch.float64)).dtype is torch.float64
    y = x.clone().requires_grad_()
    y.double().sum().backward()
    assert y.grad.dtype is torch.float32 and y.grad.tolist() == [1, 1]
    y.grad = None
    assert y.grad is None


def test_arrays_become_tensors() -> None:
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    for make in (torch.from_numpy, torch.as_tensor):
        x = make(array)
        assert x.dtype is torch.int32 and x.tolist() == array.tolist()
        x[0, 0] = 7
        assert array[0, 0] == 7
        assert make(array.T).stride() == (1, 3)
        with pytest.raises(ValueError, match="negative"):
            make(array[::-1])
        with pytest.raises(TypeError):
            make(np.array(["a"]))
    assert torch.as_tensor(x) is x
    with pytest.raises(TypeError, match="expected np.ndarray"):
        torch.from_numpy([1])  # type: ignore[arg-type]
    with pytest.warns(UserWarning, match="not writable"):
        torch.from_numpy(np.broadcast_to(array, (2, 2, 3)))
    assert x.numpy() is not None and np.shares_memory(x.numpy(), array)
