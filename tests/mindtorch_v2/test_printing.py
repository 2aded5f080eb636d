"""Tensors print as PyTorch's do: recorded strings (fixtures/record_printing.py), suffixes and options."""

from __future__ import annotations

import base64
import json
import math
import pathlib

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _dtype, _tensor
from mindtorch_v2._printing import PRINT_OPTS, get_printoptions, printoptions, set_printoptions, tensor_repr

CASES = json.loads((pathlib.Path(__file__).parent / "fixtures" / "printing.json").read_text())


def tensor(values, dtype="float32"):
    dtype = _dtype.by_name(dtype)
    return _tensor.wrap(np.asarray(values).astype(dtype.np), dtype)


@pytest.fixture(autouse=True)
def default_options():
    set_printoptions(profile="default")
    yield
    set_printoptions(profile="default")


@pytest.mark.parametrize("start", range(0, len(CASES), 50))
def test_recorded_strings(start):
    for case in CASES[start : start + 50]:
        dtype = _dtype.by_name(case["dtype"])
        values = np.frombuffer(base64.b64decode(case["data"]), np.uint8).view(dtype.np).reshape(case["shape"])
        with printoptions(**case["options"]):
            assert tensor_repr(_tensor.wrap(values, dtype)) == case["text"], case["options"]


def test_summary_shows_three_elements_at_either_end():
    assert tensor_repr(tensor(range(2000), "int64")) == "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])"
    assert tensor_repr(tensor(range(1000), "int64")).count(",") == 999
    rows = tensor_repr(tensor(np.zeros((1001, 1)))).split("\n")
    assert rows[:4] == ["tensor([[0.],", "        [0.],", "        [0.],", "        ...,"]
    assert len(rows) == 7


def test_only_shown_elements_choose_the_notation():
    values = np.ones(2001)
    values[1000] = 1e20
    assert tensor_repr(tensor(values)) == "tensor([1., 1., 1.,  ..., 1., 1., 1.])"


def test_nan_and_inf_share_the_column():
    assert tensor_repr(tensor([math.nan, math.inf, -1.5])) == "tensor([    nan,     inf, -1.5000])"


def test_dtype_is_shown_unless_implied():
    assert tensor_repr(tensor([1, 2], "int32")) == "tensor([1, 2], dtype=torch.int32)"
    assert tensor_repr(tensor([1], "int64")) == "tensor([1])"
    assert tensor_repr(tensor(np.empty((0, 3)))) == "tensor([], size=(0, 3))"
    assert tensor_repr(tensor([], "int64")) == "tensor([], dtype=torch.int64)"
    torch.set_default_dtype(torch.float64)
    try:
        assert tensor_repr(tensor([1.0])) == "tensor([1.], dtype=torch.float32)"
        assert tensor_repr(tensor([1.0], "float64")) == "tensor([1.])"
        assert tensor_repr(tensor([1.0], "complex128")) == "tensor([1.+0.j])"
    finally:
        torch.set_default_dtype(torch.float32)


def test_meta_tensors_show_their_size():
    assert repr(torch.empty(2, 3, device="meta", dtype=torch.float16)) == (
        "tensor(..., device='meta', size=(2, 3), dtype=torch.float16)"
    )
    assert repr(torch.empty((), device="meta")) == "tensor(..., device='meta', size=())"
    assert repr(torch.empty(0, 3, device="meta")) == "tensor(..., device='meta', size=(0, 3))"


def test_history_follows_the_numbers():
    x = torch.ones(2, requires_grad=True)
    assert repr(x) == "tensor([1., 1.], requires_grad=True)"
    assert repr(x + 1) == "tensor([2., 2.], grad_fn=<AddBackward0>)"
    assert repr(x.detach()) == "tensor([1., 1.])"
    assert repr(torch.nn.Parameter(torch.ones(2))) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"


def test_a_subclass_shows_its_name():
    class Marked(torch.Tensor):
        pass

    assert repr(torch.ones(2).as_subclass(Marked)) == "Marked([1., 1.])"


def test_suffixes_wrap_at_the_line_width():
    text = tensor_repr(tensor(np.zeros(18), "float64"))
    assert text.endswith("0.],\n       dtype=torch.float64)")


def test_contents_can_be_given():
    assert tensor_repr(tensor([1.0], "float64"), tensor_contents="<hidden>") == "tensor(<hidden>, dtype=torch.float64)"


def test_profiles_and_options():
    set_printoptions(profile="short")
    assert get_printoptions() == {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80, "sci_mode": None}
    set_printoptions(profile="full", precision=1)
    assert (PRINT_OPTS.threshold, PRINT_OPTS.precision) == (math.inf, 1)
    set_printoptions(sci_mode=True)
    assert PRINT_OPTS.sci_mode is True and PRINT_OPTS.precision == 1
    set_printoptions(precision=3)
    assert PRINT_OPTS.sci_mode is None


def test_context_manager_restores_also_after_an_error():
    before = get_printoptions()
    with pytest.raises(KeyError), printoptions(precision=1, sci_mode=True):
        assert PRINT_OPTS.precision == 1
        raise KeyError
    assert get_printoptions() == before
