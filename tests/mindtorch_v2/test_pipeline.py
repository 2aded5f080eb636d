"""Pipeline mode by hand-picked cases: what is known before operators run, what makes them run, and that nothing but speed tells the difference."""

from __future__ import annotations

import copy
import io
import pickle
import re
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2._dispatch.pipeline import current_pipeline


def pair() -> tuple[Any, Any]:
    """Two tensors that stand before a block."""
    return torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])


# What is known at once


def test_geometry_and_history_are_known_before_anything_runs() -> None:
    x = torch.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]], requires_grad=True)
    with torch.pipeline():
        y = x.t() * 2
        z = y.sum(0)
        w = (y > 0).to(torch.int32)
        values, places = y.max(1)
        made = (y, z, w, values, places)
        assert all(t._pending for t in made)
        assert [tuple(t.shape) for t in made] == [(3, 2), (2,), (3, 2), (3,), (3,)]
        assert y.stride() == (1, 3) and w.stride() == (1, 3) and z.stride() == (1,)
        assert [t.dtype for t in made] == [torch.float32, torch.float32, torch.int32, torch.float32, torch.int64]
        assert [t.requires_grad for t in made] == [True, True, False, True, False]
        assert [type(t.grad_fn).__name__ for t in made[:2]] == ["MulBackward0", "SumBackward1"]
        assert {str(t.device) for t in made} == {"cpu"}
        assert (y.is_contiguous(), y.numel(), y.ndim, y.is_leaf, len(z)) == (False, 6, 2, False, 2)
        assert all(t._pending for t in made)
    assert not any(t._pending for t in made)
    assert y.tolist() == [[2.0, 8.0], [-4.0, 10.0], [6.0, -12.0]]
    assert z.tolist() == [4.0, 6.0]
    assert w.tolist() == [[1, 1], [0, 1], [1, 0]]
    assert (values.tolist(), places.tolist()) == ([8.0, 10.0, 6.0], [1, 1, 0])


def test_meta_tensors_are_recorded_too() -> None:
    x = torch.empty(4, 5, device="meta")
    with torch.pipeline():
        y = (x + 1).sum(0)
        assert y._pending and y.device.type == "meta" and y.shape == (5,)
    assert not y._pending and y.device.type == "meta" and y.shape == (5,)


def test_blocks_nest() -> None:
    x, _ = pair()
    with torch.pipeline() as pipe:
        y = x + 1
        assert current_pipeline() is pipe
        with torch.pipeline() as inner:
            z = x * 2
            assert y._pending and z._pending
            assert current_pipeline() is inner
        assert y._pending and not z._pending  # an inner block runs its own operators when it ends
        assert z.tolist() == [2.0, 4.0]
        assert current_pipeline() is pipe
    assert y.tolist() == [2.0, 3.0]


# Sync points


def _saved(tensor: Any) -> Any:
    file = io.BytesIO()
    torch.save(tensor, file)
    return torch.load(io.BytesIO(file.getvalue())).tolist()


SYNCS = {
    "numpy": (lambda t: t.numpy().tolist(), [4.0, 6.0]),
    "tolist": (lambda t: t.tolist(), [4.0, 6.0]),
    "item": (lambda t: t[1].item(), 6.0),
    "bool": (lambda t: bool(t[0]), True),
    "int": (lambda t: int(t[0]), 4),
    "float": (lambda t: float(t[1]), 6.0),
    "complex": (lambda t: complex(t[1]), 6 + 0j),
    "repr": (repr, "tensor([4., 6.])"),
    "str": (str, "tensor([4., 6.])"),
    "format": (lambda t: f"{t[0]:.2f}", "4.00"),
    "to": (lambda t: t.to("cpu").tolist(), [4.0, 6.0]),
    "cpu": (lambda t: t.cpu().tolist(), [4.0, 6.0]),
    "data_ptr": (lambda t: t.data_ptr() == t.data_ptr() != 0, True),
    "storage": (lambda t: t.storage().tolist(), [4.0, 6.0]),
    "untyped_storage": (lambda t: t.untyped_storage().nbytes(), 8),
    "array": (lambda t: np.asarray(t).tolist(), [4.0, 6.0]),
    "array protocol": (lambda t: t.__array__(np.float64).dtype.name, "float64"),
    "dlpack": (lambda t: np.from_dlpack(t).tolist(), [4.0, 6.0]),
    "pickle": (lambda t: pickle.loads(pickle.dumps(t)).tolist(), [4.0, 6.0]),
    "deepcopy": (lambda t: copy.deepcopy(t).tolist(), [4.0, 6.0]),
    "save": (_saved, [4.0, 6.0]),
    "iteration": (lambda t: [x.item() for x in t], [4.0, 6.0]),
    "unpacking": (lambda t: [float(x) for x in (lambda a, b: (a, b))(*t)], [4.0, 6.0]),
    "in": (lambda t: 6.0 in t, True),
    "equal": (lambda t: torch.equal(t, torch.tensor([4.0, 6.0])), True),
    "allclose": (lambda t: torch.allclose(t, torch.tensor([4.0, 6.0])), True),
    "mask": (lambda t: t[t > 5].tolist(), [6.0]),
    "nonzero": (lambda t: torch.nonzero(t - 4).tolist(), [[1]]),
    "unique": (lambda t: torch.unique(t).tolist(), [4.0, 6.0]),
    "index": (lambda t: ["a", "b", "c", "d", "e"][t[0].to(torch.int64)], "e"),
    "is_nonzero": (lambda t: t[0].is_nonzero(), True),
    "condition": (lambda t: "more" if t.sum() > 9 else "less", "more"),
}


@pytest.mark.parametrize("name", SYNCS)
def test_a_sync_point_runs_what_it_needs_and_nothing_else(name: str) -> None:
    look, expected = SYNCS[name]
    a, b = pair()
    with torch.pipeline():
        other = a * b
        t = a + b
        later = b - a
        assert look(t) == expected
        assert not t._pending
        assert other._pending and later._pending
    assert (other.tolist(), later.tolist()) == ([3.0, 8.0], [2.0, 2.0])


def test_looking_at_a_view_runs_its_base() -> None:
    a, b = pair()
    with torch.pipeline():
        other = a * b
        t = a + b
        view = t[1:]
        assert view._pending and view._base is t
        assert view.tolist() == [6.0]
        assert not t._pending and other._pending


def test_flush_runs_everything() -> None:
    a, b = pair()
    with torch.pipeline() as pipe:
        t, other = a + b, a * b
        pipe.flush()
        assert not t._pending and not other._pending
        later = t + 1
        assert later._pending
    assert later.tolist() == [5.0, 7.0]
    with pytest.raises(RuntimeError, match=r"flush\(\) outside of the block"):
        pipe.flush()


def test_what_is_needed_is_run_in_order() -> None:
    with torch.pipeline():
        t = torch.zeros(4)
        before = t + 1
        t[1:3].add_(5)
        after = t * 2
        t[0] = 7
        assert after.tolist() == [0.0, 10.0, 10.0, 0.0]
        assert before.tolist() == [1.0, 1.0, 1.0, 1.0]
        assert t.tolist() == [7.0, 5.0, 5.0, 0.0]


def test_shapes_that_the_data_decide_are_known_at_once() -> None:
    a, b = pair()
    with torch.pipeline():
        t = a + b
        picked = t[t > 5]
        assert picked.shape == (1,)
        assert torch.nonzero(t).shape == (2, 1)
        assert picked.tolist() == [6.0]


# Blocks


def test_an_exception_in_the_block_leaves_none_behind() -> None:
    a, b = pair()
    made = []
    with pytest.raises(KeyError, match="reason"):
        with torch.pipeline() as pipe:
            made.append(a + b)
            raise KeyError("reason")
    assert not made[0]._pending and made[0].tolist() == [4.0, 6.0]
    with pytest.raises(RuntimeError, match="outside of the block"):
        pipe.flush()


def test_an_exception_in_an_inner_block_leaves_the_outer_one() -> None:
    a, b = pair()
    with torch.pipeline():
        with pytest.raises(KeyError):
            with torch.pipeline():
                inner = a + b
                raise KeyError
        assert not inner._pending
        outer = inner * 2
        assert outer._pending
    assert outer.tolist() == [8.0, 12.0]


def test_a_pipeline_is_used_again_but_not_within_itself() -> None:
    a, _ = pair()
    pipe = torch.pipeline()
    with pipe:
        x = a + 1
        with pytest.raises(RuntimeError, match="active already"):
            pipe.__enter__()
        assert x._pending
    with pipe:
        y = x + 1
        assert y._pending
    assert y.tolist() == [3.0, 4.0]


@pytest.mark.parametrize(("name", "value"), [("max_ops", 0), ("max_ops", -1), ("max_bytes", -1)])
def test_limits_without_sense_are_refused(name: str, value: int) -> None:
    with pytest.raises(ValueError, match="max_ops must be at least 1 and max_bytes at least 0"):
        torch.pipeline(**{name: value})


def test_max_ops_runs_what_is_recorded() -> None:
    a, _ = pair()
    with torch.pipeline(max_ops=3):
        made = [a + i for i in range(3)]
        assert all(t._pending for t in made)
        fourth = a + 3
        assert not any(t._pending for t in made) and fourth._pending
    assert [t.tolist() for t in (*made, fourth)] == [[1.0 + i, 2.0 + i] for i in range(4)]


def test_max_bytes_runs_what_is_recorded() -> None:
    a = torch.tensor([0.0] * 1000)
    with torch.pipeline(max_bytes=8000) as pipe:
        pipe.flush()
        made = [a + i for i in range(3)]  # 12000 bytes
        assert all(t._pending for t in made)
        fourth = a + 3
        assert not any(t._pending for t in made) and fourth._pending
    assert fourth[999].item() == 3.0


def test_the_limits_of_an_inner_block_end_with_it() -> None:
    a, _ = pair()
    with torch.pipeline():
        with torch.pipeline(max_ops=1):
            x = a + 1
            y = a + 2
            assert not x._pending and y._pending
        made = [a + i for i in range(4)]
        assert all(t._pending for t in made)


# What runs, and what does not


def test_a_chain_is_one_pass_and_only_what_is_held_is_written(capsys: pytest.CaptureFixture) -> None:
    x = torch.tensor([[0.5, -1.0], [2.0, 4.0]])
    with torch.pipeline() as pipe:
        y = torch.relu(x * 2 + 1)
        z = y - x
        del y
        pipe.flush()
        text = pipe.explain()
    assert capsys.readouterr().out == text + "\n"
    assert z.tolist() == [[1.5, 1.0], [3.0, 5.0]]
    lines = text.splitlines()
    assert lines[0] == "flush 1: 4 operators in 1 steps"
    assert lines[1] == "  one pass over blocks, 4 operators:"
    assert [line.split()[0] for line in lines[2:6]] == ["mul.Tensor", "add.Tensor", "relu", "sub.Tensor"]
    assert ["not materialised" in line for line in lines[2:6]] == [True, True, True, False]
    assert "16 bytes written" in lines[5]
    here = re.escape(__file__)
    assert all(re.search(rf"{here}:\d+ in test_a_chain_is_one_pass", line) for line in lines[2:6])
    assert lines[6] == "4 operators, 1 steps, 48 bytes of results never written to memory"


def test_explain_shows_what_is_recorded_and_runs_nothing() -> None:
    a, b = pair()
    with torch.pipeline() as pipe:
        t = a + b
        other = torch.cumsum(t, 0)
        text = pipe.explain()
        assert t._pending and other._pending
    assert text.splitlines()[0].startswith("recorded 1: ") and "cumsum" in text
    assert "flush 1: " in pipe.explain()


def test_without_fusion_operators_run_one_by_one() -> None:
    x = torch.tensor([0.5, -1.0])
    with torch.pipeline(fuse=False) as pipe:
        y = torch.relu(x * 2 + 1) - x
        pipe.flush()
        text = pipe.explain()
    assert y.tolist() == [1.5, 1.0]
    assert text.splitlines()[0] == "flush 1: 4 operators in 4 steps"
    assert text.splitlines()[-1] == "4 operators, 4 steps, 0 bytes of results never written to memory"
    assert "not materialised" not in text and "one pass" not in text


def test_results_that_are_dropped_are_not_computed() -> None:
    a, b = pair()
    with torch.pipeline() as pipe:
        kept = a + b
        (a * b).exp()
        pipe.flush()
        text = pipe.explain()
    assert kept.tolist() == [4.0, 6.0]
    assert "add.Tensor" in text and "exp" not in text and "mul" not in text


def test_dropped_random_numbers_are_drawn() -> None:
    torch.manual_seed(3)
    torch.rand(4)
    expected = torch.rand(4).tolist()
    torch.manual_seed(3)
    with torch.pipeline():
        torch.rand(4)
        found = torch.rand(4)
    assert found.tolist() == expected


def test_dropped_operators_that_can_fail_do_so() -> None:
    table, places = torch.tensor([1.0, 2.0]), torch.tensor([5])
    with pytest.raises((IndexError, RuntimeError), match="out of"):
        with torch.pipeline():
            torch.index_select(table, 0, places)


# Random numbers


def test_random_numbers_come_in_the_order_of_the_program() -> None:
    def program() -> list:
        torch.manual_seed(11)
        a = torch.rand(3)
        b = torch.empty(2).normal_()
        c = torch.dropout(torch.ones(8), 0.5, True)
        d = torch.randperm(5)
        return [a, b, c, d]

    eager = [t.tolist() for t in program()]
    with torch.pipeline():
        recorded = program()
        assert recorded[3].tolist() == eager[3]  # the last one is asked for first
    assert [t.tolist() for t in recorded] == eager


def test_the_state_of_the_generator_is_that_of_the_program() -> None:
    torch.manual_seed(5)
    a = torch.rand(3).tolist()
    state = torch.get_rng_state().tolist()
    b = torch.rand(3).tolist()
    torch.manual_seed(5)
    with torch.pipeline():
        first = torch.rand(3)
        assert first._pending
        saved = torch.get_rng_state()
        assert saved.tolist() == state
        second = torch.rand(3)
        torch.set_rng_state(saved)
        again = torch.rand(3)
        torch.manual_seed(5)
        anew = torch.rand(3)
    assert (first.tolist(), second.tolist(), again.tolist(), anew.tolist()) == (a, b, b, a)


# Writing in place


def test_a_sole_owner_waits_for_its_write() -> None:
    x = torch.tensor([1.0, 2.0])
    with torch.pipeline():
        x.add_(1)
        x[0].mul_(3)
        after = x * 10
        assert x._pending and after._pending and x._version == 2
    assert (x.tolist(), after.tolist()) == ([6.0, 3.0], [60.0, 30.0])


def test_what_was_recorded_before_a_write_sees_the_old_values() -> None:
    x = torch.tensor([1.0, 2.0])
    with torch.pipeline():
        before = x * 10
        x.add_(1)
        after = x * 10
        x.fill_(0)
        last = x + 5
    assert before.tolist() == [10.0, 20.0]
    assert after.tolist() == [20.0, 30.0]
    assert (x.tolist(), last.tolist(), x._version) == ([0.0, 0.0], [5.0, 5.0], 2)


def test_memory_that_others_see_is_written_at_once() -> None:
    x = torch.tensor([1.0, 2.0])
    array = x.numpy()
    with torch.pipeline():
        before = x * 10
        x.add_(1)
        assert array.tolist() == [2.0, 3.0] and not x._pending
        assert not before._pending and before.tolist() == [10.0, 20.0]
        after = x * 10
    assert after.tolist() == [20.0, 30.0]


def test_views_from_outside_see_the_write() -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    view = x[1:]
    with torch.pipeline():
        before = view * 10
        x.mul_(2)
        view.add_(1)
        assert view.tolist() == [5.0, 7.0]
        assert x.tolist() == [2.0, 5.0, 7.0]
        assert before.tolist() == [20.0, 30.0]


def test_an_exposed_array_sees_later_writes() -> None:
    a, b = pair()
    with torch.pipeline():
        t = a + b
        array = t.numpy()
        kept = t * 10
        t.add_(1)
        assert array.tolist() == [5.0, 7.0]
        assert kept.tolist() == [40.0, 60.0]
        t[0] = 0
        assert array.tolist() == [0.0, 7.0]


def test_writes_to_views_reach_the_base_in_order() -> None:
    a, b = pair()
    with torch.pipeline():
        t = torch.stack([a, b])
        row, column = t[1], t[:, 0]
        before = column.clone()
        row.mul_(10)
        t += 1
        column.zero_()
        assert row._pending and t._pending and column._pending
        assert t._version == row._version == column._version == 3
    assert t.tolist() == [[0.0, 3.0], [0.0, 41.0]]
    assert row.tolist() == [0.0, 41.0] and before.tolist() == [1.0, 3.0]


def test_out_is_written_when_it_is_looked_at() -> None:
    a, b = pair()
    with torch.pipeline():
        target = torch.zeros(2)
        early = target + 1
        assert torch.add(a, b, out=target) is target
        late = target + 1
        assert target._pending
    assert (early.tolist(), target.tolist(), late.tolist()) == ([1.0, 1.0], [4.0, 6.0], [5.0, 7.0])


def test_an_outdated_saved_tensor_is_refused() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.pipeline():
        y = x.exp()
        z = y.sum()
        y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.backward()


def test_a_leaf_that_requires_grad_is_not_written() -> None:
    x = torch.tensor([1.0], requires_grad=True)
    with torch.pipeline():
        with pytest.raises(
            RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"
        ):
            x.add_(1)
    assert x.tolist() == [1.0] and x._version == 0


# Autograd and training


@pytest.mark.parametrize("inside", [True, False])
def test_backward(inside: bool) -> None:
    x = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
    with torch.pipeline():
        loss = (x * x).relu().sum()
        assert loss._pending
        if inside:
            loss.backward()
            assert x.grad.tolist() == [2.0, -4.0, 6.0]
            x.grad.zero_()
    if not inside:
        loss.backward()
    assert x.grad.tolist() == ([0.0] * 3 if inside else [2.0, -4.0, 6.0])


def test_running_statistics_are_updated_when_they_are_looked_at() -> None:
    x = torch.tensor([[1.0, 10.0], [3.0, 30.0]])
    norm = nn.BatchNorm1d(2, momentum=0.5)
    with torch.pipeline():
        out = norm(x)
        assert norm.running_mean.tolist() == [1.0, 10.0]
        assert norm.num_batches_tracked.item() == 1
        norm(x)
    assert norm.running_mean.tolist() == [1.5, 15.0]
    assert norm.running_var.tolist() == [1.75, 150.25]
    assert torch.allclose(out, torch.tensor([[-1.0, -1.0], [1.0, 1.0]]), atol=1e-4)


def _trained(kind: Any, options: dict, pipeline: bool) -> tuple:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.25), nn.Linear(8, 3))
    optimizer = kind(model.parameters(), **options)
    inputs, targets = torch.randn(16, 4), torch.randint(0, 3, (16,))
    losses = []

    def step() -> None:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss)

    for _ in range(3):
        if pipeline:
            with torch.pipeline():
                step()
        else:
            step()
    state = {name: value.tolist() for name, value in model.state_dict().items()}
    return [loss.item() for loss in losses], state, torch.get_rng_state().tolist()


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
        (torch.optim.Adam, {"lr": 0.01}),
        (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1}),
    ],
    ids=["SGD", "Adam", "AdamW"],
)
def test_training_gives_the_same_bits(kind: Any, options: dict) -> None:
    assert _trained(kind, options, True) == _trained(kind, options, False)


def test_a_result_takes_no_operand_that_a_later_step_reads():
    """The second operator on the mask is recorded last and runs first, since it is no part of the chain."""
    x, mask = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1, 0, 0])
    with torch.pipeline():
        ignored = mask == 1
        filled = torch.masked_fill(-x, ignored, 0.0)
        kept = torch.logical_not(ignored)
        del ignored
        count = kept.sum()
        del kept
    assert filled.tolist() == [0.0, -2.0, -3.0] and count.item() == 2
