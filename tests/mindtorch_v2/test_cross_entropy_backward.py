"""The backward pass of cross_entropy, which never makes the gradient between its two operators, against that with a hook in between, which must see it."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import native
from mindtorch_v2.nn import functional as F


def gradients(scores, target, seen: list | None, retain: bool = False, factor: float | None = None, **options):
    leaf = scores.clone().requires_grad_()
    logs = F.log_softmax(leaf, 1)
    if seen is not None:
        logs.register_hook(lambda grad: seen.append(grad.clone()))
    kept = logs if retain else None
    loss = F.nll_loss(logs, target, **options)
    if factor is not None:
        loss = loss * factor
    del logs
    loss.backward(torch.ones_like(loss) * 1.5, retain_graph=retain)
    found = leaf.grad
    if retain:
        before = kept.clone()
        leaf.grad = None
        loss.backward(torch.ones_like(loss) * 1.5)
        assert torch.equal(kept, before)
        assert torch.equal(leaf.grad, found)
    return found


def bits(tensor):
    return tensor.numpy().view(np.int64 if tensor.dtype is torch.float64 else np.int32)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("rows", "classes"), [(1, 1), (3, 2), (7, 10), (70, 65), (33, 1000), (5, 9000)])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_the_same_bits(dtype, rows, classes, reduction):
    torch.manual_seed(rows + classes)
    scores = torch.randn(rows, classes, dtype=getattr(torch, dtype)) * 3
    target = torch.randint(0, classes, (rows,))
    weights = torch.rand(classes, dtype=scores.dtype)
    for weight in (None, weights):
        for ignored in (-100, int(target[0])):
            options = {"weight": weight, "reduction": reduction, "ignore_index": ignored}
            seen: list = []
            with np.errstate(all="ignore"):
                wanted = gradients(scores, target, seen, **options)
                for retain in (False, True):
                    found = gradients(scores, target, None, retain, **options)
                    same = bits(found) == bits(wanted)
                    assert (same | np.isnan(found.numpy())).all() and len(seen) == 1
            assert found.stride() == wanted.stride()


def test_numbers_that_are_none():
    scores = torch.randn(6, 40)
    scores[0, 3], scores[1, 4], scores[2, :] = float("inf"), float("-inf"), float("-inf")
    scores[3, 5] = float("nan")
    target = torch.tensor([3, 4, 0, 5, 6, 7])
    wanted = gradients(scores, target, [])
    found = gradients(scores, target, None)
    np.testing.assert_array_equal(found.numpy(), wanted.numpy())
    assert np.isnan(found.numpy()[0]).any() and np.isfinite(found.numpy()[4:]).all()
    for factor in (0.0, -0.0, float("inf"), float("nan")):
        with np.errstate(all="ignore"):
            wanted = gradients(scores[4:], target[4:], [], factor=factor).numpy()
            found = gradients(scores[4:], target[4:], None, factor=factor).numpy()
        np.testing.assert_array_equal(found, wanted)
        assert (np.signbit(found) == np.signbit(wanted))[~np.isnan(found)].all()


def test_what_others_hold_stays():
    """The logarithms are written over only where nobody else can see them."""
    torch.manual_seed(0)
    scores, target = torch.randn(50, 60), torch.randint(0, 60, (50,))
    leaf = scores.clone().requires_grad_()
    logs = F.log_softmax(leaf, 1)
    view, array, before = logs.detach()[1:], logs.detach().numpy(), logs.detach().clone()
    loss = F.nll_loss(logs, target)
    del logs
    (loss * 1.5).backward()
    assert torch.equal(view, before[1:])
    assert (array == before.numpy()).all()
    assert torch.equal(leaf.grad, gradients(scores, target, []))
    np.testing.assert_allclose(
        leaf.grad.numpy(), (before.exp().numpy() - np.eye(60, dtype=np.float32)[target.numpy()]) * 0.03, atol=1e-7
    )


def test_a_second_use_of_the_logarithms():
    torch.manual_seed(0)
    scores, target = torch.randn(9, 12), torch.randint(0, 12, (9,))
    leaf = scores.clone().requires_grad_()
    logs = F.log_softmax(leaf, 1)
    (F.nll_loss(logs, target) + logs.square().sum()).backward()
    one, other = scores.clone().requires_grad_(), scores.clone().requires_grad_()
    F.log_softmax(one, 1).square().sum().backward()
    F.cross_entropy(other, target).backward()
    np.testing.assert_allclose(leaf.grad.numpy(), (one.grad + other.grad).numpy(), rtol=1e-5, atol=1e-6)
    (found,) = torch.autograd.grad(F.nll_loss(kept := F.log_softmax(leaf, 1), target), kept)
    assert (found != 0).sum() == 9


def test_what_was_saved_is_freed_and_checked():
    leaf, target = torch.randn(9, 12, requires_grad=True), torch.randint(0, 12, (9,))
    loss = F.cross_entropy(leaf, target)
    loss.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()
    logs = F.log_softmax(leaf, 1)
    loss = F.nll_loss(logs, target)
    logs.detach().add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.skipif(native.extension is None, reason="needs the C extension")
def test_memory():
    """Scores and one matrix more, that of the logarithms, which becomes the gradient."""
    scores, target = torch.randn(1000, 3000), torch.randint(0, 3000, (1000,))
    size = 4 * 3000 * 1000
    leaf = scores.requires_grad_()
    gc.collect()
    native.extension.keep_buffers(0)
    native.extension.keep_buffers(-1)
    before = native.extension.keep_buffers(None)[2]
    F.cross_entropy(leaf, target).backward()
    assert native.extension.keep_buffers(None)[3] - before < 1.1 * size
    assert leaf.grad.shape == (1000, 3000)
