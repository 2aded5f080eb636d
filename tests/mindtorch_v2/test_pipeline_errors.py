"""Errors in pipelines: at once where shapes and dtypes show them, otherwise with the line that recorded the operator."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2._dispatch import registry
from mindtorch_v2._dispatch.pipeline import current_pipeline
from mindtorch_v2._rules.spec import Spec


def line_of(text: str, function: Callable) -> str:
    """`file:line` of the one line of a function that holds a text."""
    lines, start = inspect.getsourcelines(function)
    (found,) = [start + place for place, line in enumerate(lines) if text in line and "line_of" not in line]
    return f"{__file__}:{found}"


def out_of_range() -> Any:
    return torch.index_select(torch.tensor([1.0, 2.0]), 0, torch.tensor([5]))


ORIGIN = "(pipeline: aten::index_select(self [2] torch.float32, index [1] torch.int64), recorded at {} in out_of_range)"


def origin() -> str:
    return ORIGIN.format(line_of("index_select(", out_of_range))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: torch.ones(2, 3) + torch.ones(2, 4), RuntimeError, "must match the size of tensor b"),
        (lambda: torch.ones(2, 3) @ torch.ones(2, 3), RuntimeError, "shapes cannot be multiplied"),
        (lambda: torch.ones(2).sum(3), IndexError, "Dimension out of range"),
        (lambda: torch.ones(2).add_(torch.ones(2, dtype=torch.complex64)), RuntimeError, "can't be cast"),
        (lambda: torch.ones(2).view(3), RuntimeError, "is invalid for input of size 2"),
        (lambda: torch.ones(2).frobnicate(), AttributeError, "frobnicate"),
        (lambda: torch.ones(2) + torch.ones(2, device="meta"), RuntimeError, "on the same device"),
        (lambda: torch.add(torch.ones(2), 1, alpha="x"), TypeError, "argument 'alpha' must be Number, not str"),
        (lambda: torch.sub(torch.ones(2), 1, alpha=True), RuntimeError, "Boolean alpha only supported"),
        (lambda: torch.round(torch.ones(2), decimals=0.0), TypeError, "decimals"),
        (lambda: nn.functional.gelu(torch.ones(2), approximate=1), TypeError, "approximate"),
    ],
)
def test_what_geometry_shows_is_raised_where_it_is_written(call: Callable, error: type, message: str) -> None:
    with torch.pipeline():
        with pytest.raises(error, match=message) as caught:
            call()
        assert "pipeline" not in str(caught.value)
        ok = torch.ones(2) + 1
    assert ok.tolist() == [2.0, 2.0]


def test_an_error_at_a_sync_point_says_where_it_was_recorded() -> None:
    with torch.pipeline():
        bad = out_of_range()
        assert bad.shape == (1,) and bad._pending
        with pytest.raises(IndexError) as caught:
            bad.tolist()
    assert str(caught.value).splitlines()[0] == "index out of range in self"
    assert str(caught.value).splitlines()[-1].strip() == origin()
    assert type(caught.value.__cause__) is IndexError and str(caught.value.__cause__) == "index out of range in self"


def test_an_error_at_the_end_of_the_block_lets_independent_work_be_done() -> None:
    made: dict[str, Any] = {}
    with pytest.raises(IndexError) as caught:
        with torch.pipeline():
            made["before"] = torch.tensor([1.0]) + 1
            made["bad"] = out_of_range()
            made["chain"] = torch.relu(made["bad"] * 2)
            made["sum"] = made["chain"].sum()
            made["view"] = made["bad"][0]
            target = made["target"] = torch.zeros(1)
            target.add_(made["bad"])
            made["after"] = torch.tensor([3.0]).cumsum(0) * 2
    assert str(caught.value).splitlines()[-1].strip() == origin()
    assert made["before"].tolist() == [2.0] and made["after"].tolist() == [6.0]
    for name in ("bad", "chain", "sum", "view", "target"):
        for _ in range(2):  # it stays failed
            with pytest.raises(IndexError) as again:
                made[name].tolist()
            assert str(again.value) == str(caught.value), name
        assert made[name].dtype is torch.float32


def test_the_first_of_several_errors_is_raised() -> None:
    table = torch.tensor([1.0, 2.0])
    with torch.pipeline() as pipe:
        bad = out_of_range()
        worse = torch.gather(table, 0, torch.tensor([7]))
        with pytest.raises(IndexError) as caught:
            pipe.flush()
        assert origin() in str(caught.value)
        pipe.flush()  # an error is raised once
        with pytest.raises(RuntimeError, match="index 7 is out of bounds"):
            worse.item()
        with pytest.raises(IndexError, match="index out of range"):
            bad.item()


def test_a_failed_tensor_is_refused_by_later_operators() -> None:
    with torch.pipeline():
        bad = out_of_range()
        with pytest.raises(IndexError):
            bad.item()
        with pytest.raises(IndexError, match="recorded at"):
            (bad + 1).item()
    with pytest.raises(IndexError, match="recorded at"):
        bad + 1
    with pytest.raises(IndexError, match="recorded at"):
        repr(bad)


def test_the_block_s_own_error_is_the_one_that_is_seen() -> None:
    made = []
    with pytest.raises(KeyError, match="own"):
        with torch.pipeline():
            made.append(out_of_range())
            raise KeyError("own")
    with pytest.raises(IndexError) as caught:
        made[0].item()
    assert origin() in str(caught.value)


def test_an_error_in_an_inner_block_is_raised_at_its_end() -> None:
    with torch.pipeline():
        outer = torch.tensor([1.0]) + 1
        with pytest.raises(IndexError, match="recorded at"):
            with torch.pipeline():
                out_of_range()
        assert outer._pending
        assert current_pipeline() is not None
    assert outer.item() == 2.0


def test_a_chain_that_fails_says_which_operator_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("broken kernel")

    operator = registry.find("cumsum")
    assert operator is not None
    monkeypatch.setitem(operator.kernels, "cpu", broken)
    x = torch.tensor([1.0, 2.0])
    with torch.pipeline():
        y = (x * 2).cumsum(0)
        z = y + 1
        w = x * 3
        with pytest.raises(RuntimeError) as caught:
            z.tolist()
        assert w._pending
    assert str(caught.value).splitlines()[0] == "broken kernel"
    assert "aten::cumsum(self [2] torch.float32)" in str(caught.value)
    assert line_of("(x * 2).cumsum(0)", test_a_chain_that_fails_says_which_operator_it_was) in str(caught.value)
    assert w.tolist() == [3.0, 6.0]


class OwnError(Exception):
    """An error with arguments of its own."""

    def __init__(self, code: int, *, reason: str) -> None:
        super().__init__(f"{reason} ({code})")


def test_errors_of_classes_that_cannot_be_made_again_keep_their_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **kwargs: Any) -> Any:
        raise OwnError(7, reason="worn out")

    operator = registry.find("cumsum")
    assert operator is not None
    monkeypatch.setitem(operator.kernels, "cpu", broken)
    with torch.pipeline():
        y = torch.ones(2).cumsum(0)
        with pytest.raises(RuntimeError, match=r"OwnError: worn out \(7\)") as caught:
            y.tolist()
    assert isinstance(caught.value.__cause__, OwnError)


def test_an_interrupt_ends_the_flush_and_what_has_not_run_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: Any, **kwargs: Any) -> Any:
        raise KeyboardInterrupt

    operator = registry.find("cumsum")
    assert operator is not None
    x = torch.tensor([1.0, 2.0])
    outer = current_pipeline()
    with pytest.raises(KeyboardInterrupt):
        with torch.pipeline(fuse=False):
            before = x + 1
            bad = x.cumsum(0)
            after = bad + 1
            with monkeypatch.context() as patched:
                patched.setitem(operator.kernels, "cpu", interrupted)
                bad.tolist()
    assert current_pipeline() is outer
    for tensor in (bad, after):
        with pytest.raises(RuntimeError, match=r"the flush of a pipeline was interrupted by KeyboardInterrupt\(\)"):
            tensor.tolist()
    assert before.tolist() == [2.0, 3.0]
    with torch.pipeline():
        anew = x.cumsum(0)
    assert anew.tolist() == [1.0, 3.0]


def test_a_kernel_from_outside_is_recorded_and_blamed() -> None:
    def kernel(x: Any) -> Any:
        if x.min() < 0:
            raise ValueError("negative")
        return x * 3

    operator = registry.register("pipeline_test::triple", "cpu", kernel, meta=lambda x: Spec(tuple(x.shape), x.dtype))
    triple = operator.function
    assert triple is not None
    with torch.pipeline():
        good = triple(torch.tensor([1.0, 2.0]))
        bad = triple(torch.tensor([-1.0]))
        assert good._pending and bad._pending
        assert good.tolist() == [3.0, 6.0]
        with pytest.raises(ValueError, match="negative") as caught:
            bad.tolist()
    assert line_of("bad = triple", test_a_kernel_from_outside_is_recorded_and_blamed) in str(caught.value)
