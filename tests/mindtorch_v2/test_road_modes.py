"""Calls that the road takes in inference mode, under autocast and beside a device, with numpy's numbers and generators, and in place in another dtype."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F


def test_results_of_inference_mode_are_inference_tensors() -> None:
    x = torch.arange(6.0).view(2, 3)
    weight = torch.ones(3, requires_grad=True)
    half, meta = x.half(), x.to("meta")
    with torch.inference_mode():
        for _ in range(3):  # by the dispatcher, and by plans
            made = [
                x * 2,
                x @ x.t(),
                x.sum(1),
                x.max(1)[0],
                torch.tensor([1.0]),
                torch.zeros(2),
                x[[0, 1]],
                x.t().contiguous(),
                x.t().reshape(6),
                half.sum(0),
                torch.var_mean(half)[1],
                half @ half.t(),
                meta + 1,
                torch.empty_like(meta),
            ]
            views = [x[0], x.view(6), x.split(1)[0], x.detach()]
            below = [one.t() if one.dim() == 2 else one[:1] for one in made[:2]]
            leaf = weight[1:]
    assert all(one.is_inference() for one in [*made, *below])
    assert not any(one.is_inference() for one in views)
    assert leaf.requires_grad and leaf.is_leaf and not leaf.is_inference()
    assert all(one.is_inference() for one in (made[0].detach(), made[0].data, made[0][0]))
    assert not x.data.is_inference()
    for _ in range(3):
        assert all(
            one.is_inference()
            for one in (made[0].detach(), below[0].detach(), below[0].detach().t(), made[0].split(1)[0])
        )
        assert not any(one.is_inference() for one in (x.detach(), x.t().detach(), made[0] + 1, made[0].clone()))
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        made[0].add_(1)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        made[0][0] = 1.0
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        made[0][0] * weight


def test_inference_tensors_are_written_to_in_inference_mode() -> None:
    with torch.inference_mode():
        x = torch.zeros(2, 3)
        for _ in range(3):
            x.add_(1)
            x[0] += 1
            x[1, 0] = 5.0
            x.masked_fill_(x > 4, 4.0)
            torch.mul(x, 1, out=x)
    assert x.tolist() == [[4.0, 4.0, 4.0], [4.0, 3.0, 3.0]]


def test_other_threads_are_not_in_inference_mode() -> None:
    x, found = torch.ones(3, requires_grad=True), []

    def run() -> None:
        y = (x * 2).sum()
        y.backward()
        found.append((y.is_inference(), x.grad))

    with torch.inference_mode():
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert found[0][0] is False and found[0][1].tolist() == [2.0, 2.0, 2.0]


def test_autocast_casts_what_its_tags_say_in_this_thread_alone() -> None:
    x, weight = torch.ones(2, 2), torch.ones(2, 2, requires_grad=True)
    kinds: list[Any] = []
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for _ in range(3):
            made = [
                x @ x,
                x + x,
                F.linear(x, weight),
                F.mse_loss(x.bfloat16(), x),
                torch.cat([x, x.bfloat16()]),
                x.softmax(0),
            ]
            assert [str(one.dtype)[6:] for one in made] == [
                "bfloat16",
                "float32",
                "bfloat16",
                "float32",
                "float32",
                "float32",
            ]
            assert torch.mm(x, x, out=torch.empty(2, 2)).dtype is torch.float32
        thread = threading.Thread(target=lambda: kinds.append((x @ x).dtype))
        thread.start()
        thread.join()
        F.linear(x, weight).sum().backward()
    assert kinds == [torch.float32]
    assert (
        weight.grad is not None
        and weight.grad.dtype is torch.float32
        and weight.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    )
    assert (x @ x).dtype is torch.float32


def test_modes_within_a_pipeline() -> None:
    x = torch.ones(2, 2)
    with torch.pipeline():
        y = x + 1
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = y @ x
        with torch.inference_mode():
            w = y * 3
        v = y * 2
    assert z.dtype is torch.bfloat16 and z.tolist() == [[4.0, 4.0], [4.0, 4.0]]
    assert w.is_inference() and w.tolist() == [[6.0, 6.0], [6.0, 6.0]]
    assert v.tolist() == [[4.0, 4.0], [4.0, 4.0]]


def test_a_block_of_the_cpu_takes_back_another_device() -> None:
    with torch.device("cpu"):
        assert torch.zeros(2).device.type == "cpu" and torch.get_default_device().type == "cpu"
    with torch.device("meta"):
        with torch.device("cpu"):
            assert torch.zeros(2).device.type == "cpu" and (torch.ones(2) + 1).tolist() == [2.0, 2.0]
        assert torch.zeros(2).device.type == "meta"
    with torch.device("cpu"), torch.device("meta"):
        assert torch.zeros(2).device.type == "meta"
    assert torch.zeros(2).device.type == "cpu"


NUMBERS: list[tuple[Callable[..., Any], Any, torch.dtype]] = [
    (lambda x, n: x + n, np.float32(1.5), torch.float32),
    (lambda x, n: n * x, np.float64(2), torch.float32),
    (lambda x, n: x * n, np.int64(3), torch.float32),
    (lambda x, n: x.pow(n), np.float32(2), torch.float32),
    (lambda x, n: x.clamp(min=n), np.float32(1), torch.float32),
    (lambda x, n: x + n, np.complex64(1j), torch.complex64),
    (lambda x, n: x.long() * n, np.bool_(True), torch.int64),
    (lambda x, n: x.long() + n, np.float32(0.5), torch.float32),
    (lambda x, n: x.sum(n), np.int64(0), torch.float32),
    (lambda x, n: x.expand(n, 3), np.int32(2), torch.float32),
    (lambda x, n: torch.zeros(n, 3), np.int64(2), torch.float32),
    (lambda x, n: torch.zeros((n, 3)), np.int64(2), torch.float32),
    (lambda x, n: x.sum(0, keepdim=n), np.bool_(True), torch.float32),
]


@pytest.mark.parametrize(("call", "number", "dtype"), NUMBERS)
def test_numbers_of_numpy_are_numbers(call: Callable[..., Any], number: Any, dtype: Any) -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    wanted = call(x, number.item())
    for _ in range(3):
        made = call(x, number)
        assert made.dtype is wanted.dtype is dtype and made.tolist() == wanted.tolist()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.sum(np.float32(0)),
        lambda x: x.sum(np.bool_(True)),
        lambda x: x.sum(0, keepdim=np.int64(1)),
        lambda x: torch.zeros(np.float64(2), 3),
    ],
)
def test_numbers_of_numpy_of_the_wrong_kind_are_refused(call: Callable[..., Any]) -> None:
    for _ in range(3):
        with pytest.raises(TypeError):
            call(torch.ones(2))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_numbers_beside_complex_tensors(dtype: Any) -> None:
    z = torch.tensor([1 + 2j, 3 - 1j], dtype=dtype)
    for number in (2, 0.5, True, 1 - 1j):
        for _ in range(3):
            assert (z * number).tolist() == [one * number for one in z.tolist()] and (z * number).dtype is dtype
            assert (number + z).tolist() == [number + one for one in z.tolist()]
    assert z.clone().mul_(2j).tolist() == [one * 2j for one in z.tolist()]


def test_generators_given_to_calls() -> None:
    ours, again = torch.Generator(), torch.Generator()
    calls: list[Callable[[Any], Any]] = [
        lambda g: torch.randn(3, generator=g),
        lambda g: torch.rand(3, generator=g),
        lambda g: torch.randint(0, 9, (3,), generator=g),
        lambda g: torch.randperm(5, generator=g),
        lambda g: torch.zeros(3).uniform_(generator=g),
        lambda g: torch.bernoulli(torch.full((32,), 0.5), generator=g),
    ]
    for call in calls:
        ours.manual_seed(3)
        torch.manual_seed(3)
        state = torch.get_rng_state()
        drawn = [call(ours).tolist() for _ in range(3)]
        assert torch.equal(torch.get_rng_state(), state)  # another stream
        again.manual_seed(3)
        assert drawn == [call(again).tolist() for _ in range(3)] and drawn[0] != drawn[1]
    with pytest.raises(TypeError):
        torch.randn(3, generator=3)  # type: ignore[call-overload]


def test_results_of_another_dtype_in_place() -> None:
    x = torch.tensor([1.0, 0.0, 2.0])
    for _ in range(3):
        y, i = x.clone(), torch.tensor([3, 0, 1])
        version = y._version
        assert y.eq_(1) is y and y.tolist() == [1.0, 0.0, 0.0] and y._version == version + 1
        assert i.logical_not_().tolist() == [0, 1, 0] and i.dtype is torch.int64
        assert x.clone().add_(torch.tensor([1, 2, 3])).tolist() == [2.0, 2.0, 5.0]
        with pytest.raises(RuntimeError, match="can't be cast"):
            torch.tensor([1]).add_(1.5)
        with pytest.raises(RuntimeError, match="can't be cast"):
            torch.tensor([1]).mul_(torch.tensor([0.5]))
        with pytest.raises(RuntimeError, match="not supported for complex"):
            torch.tensor([1j]).abs_()
    z = torch.ones(2, requires_grad=True) * 2
    z.eq_(2)
    z.sum().backward()


def test_tensors_that_become_views() -> None:
    for _ in range(3):
        x = torch.arange(6.0).view(2, 3).clone()
        whole = x.view(6)
        assert x.t_() is x and x.shape == (3, 2) and x.stride() == (1, 3) and x.tolist() == [[0, 3], [1, 4], [2, 5]]
        x.unsqueeze_(0).squeeze_(0).transpose_(0, 1)
        assert x.shape == (2, 3) and x._version == 4 and whole._version == 4
        x[0, 0] = 9.0
        assert whole[0] == 9.0
    y = torch.ones(2, 3, requires_grad=True) * 2
    y.t_()
    assert y.grad_fn is not None
    (y * torch.arange(6.0).view(3, 2)).sum().backward()


def test_lists_and_the_memory_that_is_written_to() -> None:
    x, y = torch.arange(4.0), torch.arange(4.0, 8.0)
    out = torch.empty(8)
    for _ in range(3):
        assert torch.cat([x, y], out=out) is out and out.tolist() == list(range(8))
        assert torch.stack([x, y], out=torch.empty(2, 4)).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
        with pytest.raises(RuntimeError, match="unsupported operation"):
            torch.cat([out[:4], y], out=out)
        z = torch.zeros(4)
        z.index_put_((torch.tensor([0, 2]),), torch.tensor([1.0, 2.0]))
        z.index_put_((torch.tensor([0, 0]),), torch.tensor([1.0, 2.0]), accumulate=True)
        assert z.tolist() == [4.0, 0.0, 2.0, 0.0]


def test_composites_with_several_results_are_named() -> None:
    x = torch.tensor([[4.0, 1.0], [1.0, 3.0]])
    for _ in range(3):
        found = torch.linalg.lu_factor(x)
        assert type(found).__name__ == "linalg_lu_factor" and found.LU is found[0] and found.pivots is found[1]
        assert type(torch.linalg.slogdet(x)).__name__ == "linalg_slogdet"
