"""Tracebacks of `torch.utils._traceback`, and devices of functions (`torch.utils._device`)."""

from __future__ import annotations

import pickle
import traceback

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils import _device
from mindtorch_v2.utils._traceback import (
    CapturedTraceback,
    format_traceback_short,
    report_compile_source_on_error,
    shorten_filename,
)


def test_code_without_a_file_shows_its_lines():
    source = "def outer(x):\n    def inner(y):\n        return y // 0  # here\n\n    return inner(x) + 1\n"
    made = {}
    exec(source, {"__compile_source__": source}, made)
    with pytest.raises(ZeroDivisionError) as error, report_compile_source_on_error():
        made["outer"](1)
    text = "".join(traceback.format_tb(error.value.__traceback__))
    assert "return y // 0  # here" in text and "return inner(x) + 1" in text and "line 5, in outer" in text
    assert format_traceback_short(error.value.__traceback__).endswith(">:3 in inner")


def test_a_captured_stack():
    def caller(skip):
        return CapturedTraceback.extract(skip=skip)

    whole, outer = caller(0), caller(1)
    assert [frame.name for frame in whole.summary()][-2:] == ["test_a_captured_stack", "caller"]
    assert outer.summary()[-1].name == "test_a_captured_stack"
    first, second = CapturedTraceback.format_all([whole, outer])
    assert "return CapturedTraceback.extract(skip=skip)" in first[-1] and len(second) == len(first) - 1
    assert pickle.loads(pickle.dumps(whole)).format() == []
    whole.cleanup()
    assert whole.format() == []
    assert shorten_filename("/a/b/c.py", base="/a") == "b/c.py"


def test_a_function_may_have_a_device():
    @_device.set_device("meta")
    def make():
        yield torch.empty(2)
        assert _device.CURRENT_DEVICE == torch.device("meta")
        yield torch.ones(1, device="cpu")

    assert [tensor.device.type for tensor in make()] == ["meta", "cpu"]
    assert _device.CURRENT_DEVICE is None
    with _device.DeviceContext("meta"):
        assert torch.zeros(1).is_meta
