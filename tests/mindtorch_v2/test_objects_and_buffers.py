"""Objects of storages and of limits, each as PyTorch's; buffers of dtypes that an operator refuses, in its words."""

from __future__ import annotations

import gc
import weakref

import pytest

import mindtorch_v2 as torch

X = torch.arange(3.0)


def test_one_storage_is_one_object_while_somebody_holds_it():
    x = torch.arange(4.0)
    assert x.untyped_storage() is x.untyped_storage() is x[1:].untyped_storage() is x.detach().untyped_storage()
    storage = x.untyped_storage()
    storage.mark = 1
    assert x.view(2, 2).untyped_storage().mark == 1 and x.storage()._untyped_storage is storage
    assert weakref.ref(storage)() is x.untyped_storage() and torch.ones(4).untyped_storage() is not storage
    x.resize_(100)
    assert x.untyped_storage().nbytes() == 400
    gone = weakref.ref(torch.ones(2).untyped_storage())
    gc.collect()
    assert gone() is None
    meta = torch.ones(2, device="meta")
    assert meta.untyped_storage() is meta[1:].untyped_storage()


@pytest.mark.parametrize(("kind", "dtype"), [("finfo", "float32"), ("iinfo", "int8")])
def test_limits_are_objects_of_their_own(kind, dtype):
    made, other = (getattr(torch, kind)(getattr(torch, dtype)) for _ in range(2))
    assert (
        made is not other
        and made == other
        and repr(made) == repr(other)
        and made.dtype == dtype
        and made.bits == other.bits
    )


FLOAT, DOUBLE, INT, LONG = torch.float32, torch.float64, torch.int32, torch.int64


@pytest.mark.parametrize(
    ("call", "dtypes", "words"),
    [
        (torch.frexp, (FLOAT, LONG), "torch.frexp() expects exponent to have int dtype but got long int"),
        (torch.frexp, (DOUBLE, INT), "torch.frexp() expects mantissa to have dtype float but got double"),
        (
            lambda x, out: torch.float_power(x, 2, out=out[0]),
            (FLOAT,),
            "the output given to float_power has dtype Float but the operation's result requires dtype Double",
        ),
        (
            lambda x, out: torch.histogram(x, 3, out=out),
            (DOUBLE, FLOAT),
            "torch.histogram: input tensor and hist tensor should have the same dtype, but got input float and hist double",
        ),
        (
            lambda x, out: torch.histogram(x, 3, out=out),
            (FLOAT, DOUBLE),
            "torch.histogram: input tensor and bin_edges tensor should have the same dtype, but got input float and bin_edges double for dimension 0",
        ),
        (torch.mode, (DOUBLE, LONG), "expected scalar type 'Float' but got 'Double' for values output"),
        (torch.mode, (FLOAT, INT), "expected scalar type 'Long' but got 'Int' for indices output"),
        (
            lambda x, out: x.clone().float_power_(2),
            (),
            "the base given to float_power_ has dtype Float but the operation's result requires dtype Double",
        ),
    ],
)
def test_buffers_are_refused(call, dtypes, words):
    with pytest.raises(RuntimeError) as raised:
        call(X, out=tuple(torch.empty(0, dtype=dtype) for dtype in dtypes))
    assert str(raised.value).startswith(words)


def test_buffers_that_fit_are_filled():
    mantissa, exponent = torch.empty(0), torch.empty(0, dtype=INT)
    torch.frexp(X, out=(mantissa, exponent))
    assert mantissa.tolist() == [0, 0.5, 0.5] and exponent.tolist() == [0, 1, 2]
    wide = torch.empty(0, dtype=DOUBLE)
    assert torch.float_power(X, 2, out=wide).tolist() == [0, 1, 4] and X.double().float_power_(2).tolist() == [0, 1, 4]
