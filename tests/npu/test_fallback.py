"""Operators without a kernel on NPUs: the CPU computes them, as it would of tensors of its own, and says so."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._backends.npu import fallback
from mindtorch_v2._generated.npu import FALLBACKS, REASONS

SILENT = pytest.mark.filterwarnings("ignore:.*the CPU computes it")
FORBIDDEN = """
import mindtorch_v2 as torch
x = torch.ones(4, device="npu")
assert (x + 1).tolist() == [2.0] * 4
try:
    torch.fft.fft(x)
except NotImplementedError as error:
    print(error)
print(torch.npu.fallbacks())
"""


@pytest.fixture
def fresh(monkeypatch) -> None:
    monkeypatch.setattr(fallback, "_warned", set())
    torch.npu.reset_fallbacks()


def test_it_is_said_once_for_each_operator(fresh) -> None:
    x = torch.randn(8, 4, device="npu")
    with pytest.warns(
        UserWarning,
        match=r"aten::special_bessel_j0 has no kernel on NPUs \(.*\): the CPU computes it.*128 bytes to the host, 128 bytes back",
    ) as said:
        torch.special.bessel_j0(x)
    assert said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.special.bessel_j0(x[:2])
    with pytest.warns(UserWarning, match="special_bessel_j1"):
        torch.special.bessel_j1(x)
    found = torch.npu.fallbacks()
    assert set(found) == {"special_bessel_j0", "special_bessel_j1"}
    reason = REASONS[FALLBACKS["special_bessel_j0"]]
    assert found["special_bessel_j0"] == {"calls": 2, "bytes_to_host": 160, "bytes_to_device": 160, "reason": reason}
    found["special_bessel_j0"]["calls"] = 7
    assert torch.npu.fallbacks()["special_bessel_j0"]["calls"] == 2, "a copy is given"
    torch.npu.reset_fallbacks()
    assert torch.npu.fallbacks() == {}


def test_it_can_be_forbidden() -> None:
    environment = {**os.environ, "MINDTORCH_NPU_FALLBACK": "0"}
    done = subprocess.run(
        [sys.executable, "-c", FORBIDDEN], capture_output=True, text=True, timeout=120, env=environment
    )
    assert done.returncode == 0, done.stderr
    said, counted = done.stdout.splitlines()
    assert "'aten::_fft_r2c'" in said and REASONS["no_fft"] in said and "MINDTORCH_NPU_FALLBACK=0" in said
    assert counted == "{}"


@SILENT
def test_inplace_out_and_views() -> None:
    host = torch.linspace(0.5, 3.5, 12).reshape(3, 4)
    there = host.to("npu")
    expected = torch.special.bessel_j0(host)
    out = torch.empty(3, 4, dtype=torch.float64, device="npu")
    assert torch.special.bessel_j0(there, out=out) is out
    torch.testing.assert_close(out.cpu(), expected.double())
    target = torch.zeros(4, 6, device="npu")
    part = target.t()[1:5, :3].t()  # strided, with an offset
    torch.special.bessel_j0(there, out=part)
    wanted = torch.zeros(4, 6)
    wanted[:3, 1:5] = expected
    torch.testing.assert_close(target.cpu(), wanted)
    whole, alike = torch.ones(3, 8, device="npu"), torch.ones(3, 8)
    for t in (whole, alike):
        t[:, ::2].polygamma_(2)
    torch.testing.assert_close(whole.cpu(), alike)
    version = whole._version
    whole.polygamma_(1)
    assert whole._version == version + 1
    # What is read lies in what is written.
    both, alike = torch.arange(1.0, 7.0, device="npu"), torch.arange(1.0, 7.0)
    for t in (both, alike):
        with pytest.raises(
            RuntimeError,
            match="some elements of the input tensor and the written-to tensor refer to a single memory location",
        ):
            torch.special.zeta(t[:-1], t[:-1], out=t[1:])
        t.igamma_(t)
    torch.testing.assert_close(both.cpu(), alike)


@SILENT
def test_gradients_and_second_gradients() -> None:
    found = {}
    for device in ("cpu", "npu"):
        x = (torch.arange(12.0).reshape(3, 4) / 7).to(device).requires_grad_()
        y = torch.fft.rfft(x * x, dim=1).abs().pow(2).sum() + torch.linalg.matrix_exp(x[:, :3]).sum()
        (first,) = torch.autograd.grad(y, x, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), x)
        found[device] = [t.detach().cpu() for t in (y, first, second)]
        assert first.device.type == device
    torch.testing.assert_close(found["npu"], found["cpu"], rtol=1e-4, atol=1e-4)


@SILENT
def test_geometry_is_what_the_rule_says() -> None:
    x = torch.randn(2, 3, 4, device="npu").permute(2, 0, 1)
    for call in (
        lambda t: torch.special.bessel_j0(t),
        lambda t: torch.fft.fft(t, dim=0),
        lambda t: torch.special.i1(t[:, :1].expand(4, 5, 3)),
    ):
        there, meta, host = call(x), call(x.to("meta")), call(x.cpu())
        assert there.shape == meta.shape == host.shape and there.dtype is host.dtype
        assert there.stride() == meta.stride() == host.stride()
        assert there.storage_offset() == 0 and there.device == x.device


@SILENT
def test_numbers_are_drawn_from_the_streams_of_the_device() -> None:
    shape = torch.full((2000,), 3.0, device="npu")

    def drawn(generator=None) -> list:
        return torch._standard_gamma(shape, generator=generator).tolist()

    torch.npu.manual_seed(5)
    first, second = drawn(), drawn()
    torch.npu.manual_seed(5)
    assert drawn() == first and drawn() == second != first
    own = torch.Generator("npu").manual_seed(5)
    assert drawn(own) == first, "equal seeds give equal numbers"
    assert own.get_offset() > 0
    assert sum(first) / 2000 == pytest.approx(3.0, abs=0.15)
    with pytest.raises(RuntimeError, match="Expected a 'npu:0' device type for generator but found 'cpu'"):
        drawn(torch.Generator())


@SILENT
def test_in_pipelines_and_batches() -> None:
    host = torch.linspace(0.5, 3.0, 12).reshape(4, 3)
    there = host.to("npu")
    with torch.pipeline():
        made = torch.special.bessel_j1(there * 2) + 1
        late = made.sum()
    torch.testing.assert_close(late.cpu(), (torch.special.bessel_j1(host * 2) + 1).sum())
    found = torch.vmap(lambda row: torch.fft.fft(row).real.sum())(there)
    torch.testing.assert_close(found.cpu(), torch.fft.fft(host).real.sum(1))


def test_a_programs_own_operator_says_itself_what_it_runs_on() -> None:
    from mindtorch_v2._dispatch import registry
    from mindtorch_v2._rules.spec import Spec

    op = registry.register(
        "npu_fallback::doubled", "cpu", lambda x: x * 2, meta=lambda x: Spec(tuple(x.shape), x.dtype)
    )
    assert op.function(torch.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(NotImplementedError, match="npu_fallback::doubled"):
        op.function(torch.ones(2, device="npu"))
