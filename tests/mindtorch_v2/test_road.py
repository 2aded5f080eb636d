"""The road of a call: plans are found again, hold for other elements, are bounded, and are forgotten when a rule may say something else."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import native, planned, plans, registry
from mindtorch_v2._tensor import Tensor


def frames(call: Callable[[], Any]) -> int:
    """How many Python functions a call enters."""
    count = 0

    def count_calls(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(count_calls)
    try:
        call()
    finally:
        sys.setprofile(before)
    return count - 1  # the call itself


def test_frames_of_an_addition_of_integers() -> None:
    i, j = torch.arange(16).view(4, 4), torch.arange(16).view(4, 4) + 1
    for _ in range(3):
        i + j
    assert frames(lambda: i + j) <= (3 if native.extension is not None else 12)


CALLS: list[tuple[str, Callable[[Tensor], Any], Callable[[np.ndarray], Any]]] = [
    ("add", lambda x: x + x.t(), lambda x: x + x.T),
    ("number", lambda x: 3 - x, lambda x: 3 - x),
    ("compare", lambda x: x > 2, lambda x: x > 2),
    ("sum", lambda x: x.sum((0, 1), keepdim=True), lambda x: x.sum(keepdims=True)),
    ("max", lambda x: x.max(1)[1], lambda x: x.argmax(1)),
    ("reshape", lambda x: x.t().reshape(16), lambda x: x.T.reshape(16)),
    ("split", lambda x: x.split(3)[1], lambda x: x[3:]),
    ("clamp", lambda x: x.clamp(2, 5), lambda x: x.clip(2, 5)),
    ("cat", lambda x: torch.cat([x, x], 1), lambda x: np.concatenate([x, x], 1)),
    ("in place", lambda x: x.clone().add_(2), lambda x: x + 2),
    ("out", lambda x: torch.mul(x, 2, out=torch.empty_like(x)), lambda x: x * 2),
]


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.float32, torch.float64, torch.bfloat16, torch.uint8])
@pytest.mark.parametrize(("name", "call", "wanted"), CALLS)
def test_a_plan_holds_for_other_elements(name: str, call: Any, wanted: Any, dtype: Any) -> None:
    draw = np.random.default_rng(3)
    for _ in range(5):
        values = draw.integers(0, 9, (4, 4))
        found = call(torch.tensor(values).to(dtype))
        kind = found.dtype if found.dtype is not torch.bfloat16 else torch.float32
        expected = wanted(values.astype(np.uint8) if dtype is torch.uint8 else values)
        assert np.array_equal(found.to(kind).numpy(), expected.astype(kind.np)), name


def test_a_number_out_of_range_is_refused_after_one_in_range() -> None:
    x = torch.zeros(3, dtype=torch.int8)
    for _ in range(3):
        assert x.clamp(-5, 5).tolist() == [0, 0, 0]
    for _ in range(3):
        with pytest.raises(RuntimeError, match="without overflow"):
            x.clamp(-5, 500)
    with pytest.raises(RuntimeError, match="negative integer powers"):
        for exponent in (2, 2, 2, -2):
            torch.pow(x, exponent)


def test_errors_stay_errors() -> None:
    x, y = torch.ones(3, 4), torch.ones(5)
    for _ in range(4):
        with pytest.raises(RuntimeError, match="must match the size of tensor"):
            x + y
        with pytest.raises(IndexError, match="Dimension out of range"):
            x.sum(7)


def test_plans_follow_the_default_dtype() -> None:
    x = torch.arange(3)
    for _ in range(3):
        assert (x / 2).dtype is torch.float32 and torch.ones(2).dtype is torch.float32
    try:
        torch.set_default_dtype(torch.float64)
        for _ in range(3):
            assert (x / 2).dtype is torch.float64 and torch.ones(2).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert (x / 2).dtype is torch.float32 and torch.ones(2).dtype is torch.float32


def test_a_rule_that_asks_for_more_than_geometry_is_not_planned() -> None:
    x = torch.arange(12.0)
    operator = registry.find("as_strided")
    assert operator is not None and plans.learn(operator, (x, (2, 2), (3, 1), 1)) is None
    for _ in range(3):
        assert x.as_strided((2, 2), (3, 1), 1).tolist() == [[1.0, 2.0], [4.0, 5.0]]
    with pytest.raises(RuntimeError, match="out of bounds"):
        x[:3].clone().as_strided((2, 2), (3, 1), 1)


def test_a_plan_is_of_one_device() -> None:
    for _ in range(3):
        assert torch.ones(2).device.type == "cpu" and torch.ones(2, device="meta").device.type == "meta"
        both = torch.ones(2, device="meta") + 1, torch.ones(2) + 1
        assert [x.device.type for x in both] == ["meta", "cpu"]
        with pytest.raises(RuntimeError, match="two devices"):
            torch.ones(2) + torch.ones(2, device="meta")


def test_a_tensor_that_stands_for_a_number_is_read_each_time() -> None:
    for end in (2.0, 4.0, 6.0, 8.0):
        assert torch.linspace(torch.tensor(0.0), torch.tensor(end), 3).tolist() == [0.0, end / 2, end]
        assert torch.zeros(8).narrow(0, torch.tensor(int(end) - 1), 1).storage_offset() == int(end) - 1
        assert torch.zeros([torch.tensor(int(end)), 2]).shape == (int(end), 2)
    for _ in range(4):
        assert torch.zeros(0).split([]) == () or torch.zeros(0).split([])[0].numel() == 0


def test_plans_are_bounded() -> None:
    for size in range(1, 400):
        for _ in range(3):
            assert int((torch.ones(size, dtype=torch.int64) + 1).sum()) == 2 * size
    if planned.ACTIVE:
        assert all(len(known) <= 128 for known in planned.MEMORY)


@pytest.mark.skipif(native.extension is None, reason="the memory of the extension")
def test_shapes_that_come_once_leave_nothing() -> None:
    code = """
    import resource, mindtorch_v2 as torch
    def run(shapes):
        for n in shapes:
            x = torch.empty(n % 317 + 1, n // 317 + 1, dtype=torch.int32)[:1, :1]
            x = x.expand(n % 331 + 1, n // 331 + 1)
            x.t(), x + 1, x.sum(0)
    run(range(1000))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run(range(1000, 21000))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown <= 5 * 1024, grown
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_negative_zero_is_no_zero() -> None:
    x = torch.ones(2)
    for value in (0.0, -0.0) * 3:
        assert torch.copysign(x, value).tolist() == [np.copysign(1.0, value)] * 2
        assert np.signbit(torch.full((2,), value).numpy()).all() == np.signbit(value)
    for whole in (0, False, 0.0) * 3:
        assert torch.full((1,), whole).dtype is {int: torch.int64, bool: torch.bool, float: torch.float32}[type(whole)]


def test_what_was_refused_once_is_refused_again() -> None:
    x = torch.ones(2)
    for _ in range(4):
        with pytest.raises(TypeError):
            torch.relu(self=x)
        with pytest.raises(TypeError):
            x + "y"
        with pytest.raises(TypeError):
            x.sum(0.5)


VIEWS: list[Callable[[Tensor], Tensor]] = [
    lambda x: x.view(16),
    lambda x: x.reshape(2, 2, 4),
    lambda x: x.t(),
    lambda x: x.t().unsqueeze(1),
    lambda x: x.unsqueeze(0).squeeze(0),
    lambda x: x.narrow(0, 1, 2),
    lambda x: x.t().narrow(0, 1, 2).diagonal(),
    lambda x: x.select(1, 3),
    lambda x: x.select(1, 3).expand(2, 4),
    lambda x: x.unfold(0, 2, 1),
    lambda x: x.split([1, 3])[1],
    lambda x: x.chunk(2, 1)[1].flatten(0, 0),
    lambda x: x[..., None],
    lambda x: x[None, 1:, ::2],
    lambda x: x[:0].view(0, 2),
    lambda x: x.detach(),
]


@pytest.mark.parametrize("view", VIEWS)
def test_planned_views_are_views(view: Callable[[Tensor], Tensor]) -> None:
    found = []
    for number in range(4):
        x = torch.arange(16).view(4, 4) + number
        made = view(x)
        found.append((made.shape, made.stride(), made.storage_offset(), (made - number).tolist()))
        assert made.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        x += 1
        assert x._version == made._version == 1 and ((made - number - 1).tolist(), made.stride()) == (
            found[-1][3],
            found[-1][1],
        )
    assert all(one == found[0] for one in found)


def test_planned_writes_in_place_count_and_are_refused_where_they_must_be() -> None:
    for _ in range(4):
        x, leaf = torch.zeros(4, 4), torch.zeros(4, 4, requires_grad=True)
        row = x[1]
        row.add_(2).mul_(3)
        row.copy_(row + x[0])
        assert x.sum() == 24 and x._version == row._version == 3
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            leaf.add_(1)
        with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
            leaf[0].mul_(2)
        with torch.no_grad():
            leaf.add_(1)
        with pytest.raises(RuntimeError, match="single memory location"):
            torch.zeros(1).expand(3).add_(1)
        with pytest.raises(RuntimeError, match="memory location"):
            x.view(16)[1:].add_(x.view(16)[:-1])
        y = torch.zeros(4, 4)
        y.add_(leaf)
        assert y.requires_grad and leaf._version == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda c: torch.nn.functional.nll_loss(torch.zeros(4, 3), torch.zeros(4, dtype=torch.int64), c),
        lambda c: torch.nn.functional.cross_entropy(torch.zeros(4, 3), torch.zeros(4, dtype=torch.int64), c),
        lambda c: torch.nn.functional.binary_cross_entropy(torch.full((3,), 0.5), torch.ones(3), weight=c),
        lambda c: torch.nn.functional.batch_norm(torch.ones(2, 3), torch.ones(3), c),
        lambda c: torch.native_batch_norm(torch.ones(2, 3), None, None, c, torch.ones(3), False, 0.1, 1e-5)[0],
    ],
)
def test_known_calls_refuse_gradients_of_what_has_none(call: Any) -> None:
    for _ in range(3):
        call(torch.ones(3))
    for _ in range(3):
        with pytest.raises(RuntimeError, match="This input cannot have requires_grad True"):
            call(torch.ones(3, requires_grad=True))
    with torch.no_grad():
        call(torch.ones(3, requires_grad=True))


_OF_FLOATS = ("mean", "nansum", "softmax", "log_softmax")
_CONVERTING = [
    *((name, kind) for name in _OF_FLOATS for kind in (torch.float32, torch.float64)),
    *(
        (name, kind)
        for name in ("cumsum", "cumprod", "sum", "prod")
        for kind in (torch.float32, torch.float64, torch.complex64, torch.int64)
    ),
]


@pytest.mark.parametrize("name, kind", _CONVERTING, ids=str)
def test_later_calls_compute_in_the_dtype_that_is_asked_for(name, kind):
    """As the first one does, which the general path runs: numpy takes None for float64 when dtypes are compared."""
    for source in (torch.linspace(-1, 1.5, 60).reshape(4, 15), torch.arange(60).reshape(4, 15)):
        wanted = getattr(source.to(kind), name)(1)
        for _ in range(5):
            found = getattr(source, name)(1, dtype=kind)
            near = 1e-6 if kind in (torch.float32, torch.complex64) else 1e-14
            torch.testing.assert_close(found, wanted, rtol=near, atol=0)
