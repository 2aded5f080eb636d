"""Names of `torch.npu` and `torch.accelerator` that answer on every machine."""

from __future__ import annotations

import importlib

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import npu
from mindtorch_v2.npu import _missing

without_npu = pytest.mark.skipif(npu.is_available(), reason="describes a machine without an NPU")


def test_every_name_is_there() -> None:
    assert set(_missing.NAMES) <= set(npu.__all__) and len(npu.__all__) > 140
    for name in npu.__all__:
        assert getattr(npu, name) is getattr(npu, name), name
    for name in ("amp", "graphs", "memory", "random", "streams", "utils"):
        module = importlib.import_module(f"mindtorch_v2.npu.{name}")
        assert module is getattr(npu, name)
        assert all(hasattr(module, entry) for entry in module.__all__)
    assert set(npu.__all__) <= set(dir(npu))


@pytest.mark.parametrize("name", _missing.NAMES)
def test_what_is_missing_says_so(name: str) -> None:
    with pytest.raises(NotImplementedError, match=rf"torch\.npu\.{name} can be imported but not called: \w.*"):
        getattr(npu, name)()


@pytest.mark.parametrize(
    ("option", "kind", "message"),
    [
        ([], TypeError, "npu option must be a dict"),
        ({"NO_SUCH": "1"}, ValueError, "unknown option 'NO_SUCH'; known are ACL_PRECISION_MODE"),
        ({"ACL_PRECISION_MODE": "fast"}, ValueError, "value of ACL_PRECISION_MODE should be in .* but got fast"),
        ({"ACL_AICORE_NUM": 33}, ValueError, "value of ACL_AICORE_NUM"),
    ],
)
def test_wrong_options(option, kind, message) -> None:
    with pytest.raises(kind, match=message):
        npu.set_option(option)


def test_options_without_effect_say_so(monkeypatch) -> None:
    from mindtorch_v2 import _warnings

    monkeypatch.setattr(_warnings, "_given", set())
    npu.set_option({"jitCompile": "disable", "MM_BMM_ND_ENABLE": "enable", "ACL_OP_DEBUG_LEVEL": 1})
    for call, words in (
        (lambda: npu.set_compile_mode(jit_compile=True), "jit_compile=True"),
        (lambda: npu.set_mm_bmm_format_nd(False), "no private formats"),
        (lambda: setattr(npu.config, "allow_internal_format", True), "allow_internal_format = True"),
    ):
        with pytest.warns(UserWarning, match=words):
            call()
    assert npu.config.allow_internal_format is False and npu.CubeMathType.USE_HF32 == 3
    npu.use_compatible_impl(True)
    assert npu.are_compatible_impl_enabled()
    npu.use_compatible_impl(False)
    with pytest.raises(TypeError, match="must be a bool"):
        npu.matmul.allow_hf32 = 1


def test_wrong_modes_and_levels() -> None:
    with pytest.raises(RuntimeError, match="expected one of `default`, `warn`, `error`"):
        npu.set_sync_debug_mode("loud")
    with pytest.raises(RuntimeError, match="expected one of 0,1,2"):
        npu.set_sync_debug_mode(3)
    with pytest.raises(TypeError, match="int or a str"):
        npu.set_sync_debug_mode(1.5)
    with pytest.raises(ValueError, match="not negative"):
        npu.set_deterministic_level(-1)
    with pytest.raises(ValueError, match="milliseconds"):
        npu.set_op_timeout_ms(-1)


def test_marks_go_nowhere_without_a_profiler() -> None:
    number = npu.mstx.range_start("step")
    npu.mstx.mark("here")
    npu.mstx.range_end(number)
    assert npu.mstx.mstx_range("whole")(len) is len and npu.is_current_stream_capturing() is False


@without_npu
def test_no_accelerator() -> None:
    accelerator = torch.accelerator
    assert not accelerator.is_available() and accelerator.device_count() == 0
    assert accelerator.current_accelerator() is None and accelerator.current_accelerator(True) is None
    with accelerator.device_index(None):
        pass
    with pytest.raises(ValueError, match="specified index or an integer, but got:None"):
        accelerator.set_device_index(None)
    for call in (
        accelerator.current_device_index,
        accelerator.current_stream,
        accelerator.synchronize,
        accelerator.empty_cache,
        accelerator.empty_host_cache,
        accelerator.memory_allocated,
        accelerator.max_memory_reserved,
        accelerator.memory_stats,
        accelerator.get_memory_info,
        accelerator.get_device_capability,
        accelerator.reset_peak_memory_stats,
        accelerator.reset_accumulated_memory_stats,
        accelerator.Graph,
        lambda: accelerator.set_device_index(0),
        lambda: accelerator.set_stream(None),
        lambda: accelerator.device_index(0).__enter__(),
        lambda: torch.device(0),
        lambda: torch.ones(1).to(0),
    ):
        with pytest.raises(RuntimeError, match=r"Cannot access accelerator device when none is available\."):
            call()
    with pytest.warns(FutureWarning, match="current_device_index"), pytest.raises(RuntimeError):
        accelerator.current_device_idx()
    with pytest.warns(FutureWarning, match="set_device_index"), pytest.raises(RuntimeError):
        accelerator.set_device_idx(0)


@without_npu
def test_the_capability_that_programs_ask_for(monkeypatch) -> None:
    with pytest.raises(RuntimeError):
        npu.get_device_capability()
