"""Operators that look at the machinery, and small promises of histories, memory and batches. Values and sentences are PyTorch's."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch

aten = torch.ops.aten


def test_probes_of_derivatives_and_views():
    x = torch.ones(2, 2, requires_grad=True)
    torch._test_autograd_multiple_dispatch(x).sum().backward()
    assert x.grad.tolist() == [[2.0, 2.0]] * 2
    assert torch._test_autograd_multiple_dispatch(x, True).grad_fn.name() == "CloneBackward0"
    view, copy = torch._test_autograd_multiple_dispatch_view(x), torch._test_autograd_multiple_dispatch_view_copy(x)
    assert view._base is x and copy._base is None and view.shape == copy.shape == (4,)
    with pytest.warns(UserWarning, match="Warn from backward"):
        aten._test_warn_in_autograd(x).sum().backward()
    assert x.grad.tolist() == [[3.0, 3.0]] * 2
    with pytest.raises(NotImplementedError, match="derivative for '_test_functorch_fallback' is not implemented"):
        torch._test_functorch_fallback(x, x).sum().backward()


def test_probes_of_batches():
    x = torch.arange(6.0).view(2, 3)
    assert torch.equal(torch.vmap(torch._test_functorch_fallback)(x, x), x)
    assert torch.vmap(lambda t: torch._test_check_tensor(t >= 0))(x).all()
    with pytest.raises(RuntimeError, match="Test message for TORCH_CHECK_TENSOR_ALL"):
        torch.vmap(lambda t: torch._test_check_tensor(t > 0))(x)
    assert torch.vmap(lambda t: aten._is_any_true(t > 4))(x).tolist() == [True, True]


def test_second_derivatives_of_convolutions():
    x, w = torch.arange(9.0).view(1, 1, 3, 3), torch.ones(1, 1, 2, 2)
    rest = ([1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True] * 3)
    grads = aten._convolution_double_backward(x, w, None, torch.ones(1, 1, 2, 2), w, x, *rest)
    assert [g.tolist() for g in grads] == [
        [[[[16.0, 24.0], [40.0, 48.0]]]],
        [[[[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]]],
        [[[[8.0, 12.0], [20.0, 24.0]]]],
    ]
    of_bias = aten._convolution_double_backward(None, None, torch.ones(1), torch.ones(1, 1, 2, 2), w, x, *rest)
    assert of_bias[0].tolist() == [[[[1.0, 1.0], [1.0, 1.0]]]] and of_bias[1:] == (None, None)


@pytest.mark.parametrize("mode", ["reduced", "r"])
def test_empty_batches_know_shapes_and_refusals(mode):
    made = torch.vmap(lambda a: torch.linalg.qr(a, mode=mode))(torch.zeros(0, 3, 2))
    assert made.R.shape == (0, 2, 2) and made.Q.shape == ((0, 3, 2) if mode == "reduced" else (0,))
    with pytest.raises(RuntimeError, match="must have at least 2 dimensions"):
        torch.vmap(lambda a: torch.linalg.qr(a, mode=mode))(torch.zeros(0, 3))


def test_cotangents_that_are_batched_at_some_levels_alone():
    def pull(x, cotangent):
        return torch.func.vjp(lambda t: t * t, x)[1](cotangent)[0]

    x, c = torch.arange(4.0).view(2, 2), torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    outer = torch.vmap(torch.vmap(pull, in_dims=(None, 0)), in_dims=(0, None))(x, c)
    assert torch.equal(outer, 2 * x[:, None] * c[None])
    inner = torch.vmap(torch.vmap(pull, in_dims=(0, None)), in_dims=(None, 0))(x, c)
    assert torch.equal(inner, 2 * x[None] * c[:, None])


def test_tensors_of_inference_mode_are_no_views():
    with torch.inference_mode():
        made = torch.ones(2, 3)
        inside = made.view(-1)
    outside = made.view(-1)
    assert not inside._is_view() and not outside._is_view() and outside.is_leaf and outside.is_inference()
    x = torch.ones(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.mul(x, x, out=made)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        torch.mul(x.detach(), 2, out=made)


def test_data_of_another_layout_is_refused():
    dense, coo, csr = torch.eye(2), torch.eye(2).to_sparse(), torch.eye(2).to_sparse_csr()
    for one, other in ((dense, coo), (coo, dense), (csr, coo), (csr, dense)):
        with pytest.raises(RuntimeError, match="have incompatible tensor type"):
            one.data = other
    csr.data = torch.eye(3).to_sparse_csr()
    assert csr.shape == (3, 3)


@pytest.mark.parametrize("make", [lambda size: torch.empty(()).resize_(size), torch.empty, torch.zeros])
def test_strides_that_are_no_numbers(make):
    with pytest.raises(RuntimeError, match="Stride calculation overflowed"):
        make([0, 4, 2305843009213693952]).tolist()


@pytest.mark.parametrize("name", ["add", "mul", "pow", "clamp_min", "maximum"])
def test_an_empty_list_is_one_of_numbers(name):
    a = [torch.tensor([1.0])]
    with pytest.raises(RuntimeError, match="Tensor list must have same number of elements as scalar list"):
        getattr(torch, f"_foreach_{name}")(a, [])
    with pytest.raises(RuntimeError, match="Tensor lists must have the same number of tensors, got 1 and 2"):
        getattr(torch, f"_foreach_{name}")(a, [*a, *a])
    with pytest.raises(TypeError, match=r"\(tuple of Tensors self, tuple of Scalars"):
        getattr(torch, f"_foreach_{name}")("a")


def test_nested_tensors_of_masks():
    rows, mask = torch.arange(12.0).view(2, 3, 2), torch.tensor([[True, True, False], [True, False, False]])
    made = torch.nested._nested_tensor_from_mask(rows, mask)
    assert [part.tolist() for part in made] == [[[0, 1], [2, 3]], [[6, 7]]]
    gaps = torch.tensor([[True, False, True], [True, False, False]])
    with pytest.raises(RuntimeError, match="Mask must be left-aligned without gaps"):
        torch.nested._nested_tensor_from_mask(rows, gaps)
    assert torch.nested._nested_tensor_from_mask(rows, gaps, mask_check=False).is_nested
    for wrong, words in ((mask.float(), "ScalarType Bool, but got Float"), (mask[:, :2], "Mask size should match")):
        with pytest.raises(RuntimeError, match=words):
            torch.nested._nested_tensor_from_mask(rows, wrong)
