"""Tensors of several sizes in one: what works on each part, padding, gradients, and what is refused."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch


def made():
    return torch.nested.nested_tensor([torch.ones(2, 3), torch.zeros(3, 3)])


def lists(nested):
    return [part.tolist() for part in nested.unbind()]


def test_what_it_says_of_itself():
    n = made()
    assert n.is_nested and n.dim() == 3 and n.numel() == 15 and n.dtype is torch.float32 and n.layout is torch.strided
    assert (
        n.size(0) == 2
        and n.size(2) == n.size(-1) == 3
        and torch.is_tensor(n)
        and n.is_contiguous()
        and not n.requires_grad
    )
    assert (
        [tuple(part.shape) for part in n] == [(2, 3), (3, 3)] and n[1].shape == (3, 3) and n[0, 1].tolist() == [1, 1, 1]
    )
    assert repr(torch.nested.nested_tensor([[1, 2], [3]])) == "nested_tensor([\n  tensor([1, 2]),\n  tensor([3])\n])"
    with pytest.raises(RuntimeError, match="Given dimension 1 is irregular and does not have a size"):
        n.size(1)
    for ask in (lambda: n.shape, lambda: n.size(), lambda: len(n)):
        with pytest.raises(RuntimeError, match="NestedTensorImpl doesn't support sizes"):
            ask()


def test_what_works_on_each_part():
    n = made()
    assert lists(n + 1)[0][0] == [2, 2, 2] and lists(1 - n)[1][0] == [1, 1, 1] and lists(n + n) == lists(n * 2)
    assert (
        lists(torch.relu(-n))[0][0] == [0, 0, 0]
        and torch.cos(n).is_nested
        and n.to(torch.float64).dtype is torch.float64
    )
    assert torch.nn.functional.softmax(n, -1)[0][0].sum().item() == pytest.approx(1) and n.half().dtype is torch.float16
    assert torch.matmul(n, n.transpose(1, 2))[0].tolist() == [[3, 3], [3, 3]] and n.sum(-1)[0].tolist() == [3, 3]
    assert [part[1].shape for part in n.chunk(3, 2)] == [(3, 1)] * 3
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4), torch.nn.GELU(), torch.nn.Dropout(0.0))
    result = module(n)
    assert result.is_nested and torch.equal(result[1], module(torch.zeros(3, 3)))
    assert lists(n.clone().masked_fill(n.bool(), 5.0))[0][0] == [5, 5, 5]
    with pytest.raises(NotImplementedError, match="Could not run 'aten::mean'"):
        n.mean()
    with pytest.raises(RuntimeError, match="Expected both self and other to be nested"):
        _ = n * torch.ones(3)
    with pytest.raises(RuntimeError, match="nested tensors of 2 and 1 tensors"):
        _ = n + torch.nested.nested_tensor([torch.ones(2, 3)])


def test_padding():
    n = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    assert torch.nested.to_padded_tensor(n, 7.0).tolist() == [[1, 1, 7], [1, 1, 1]]
    assert n.to_padded_tensor(0.0, (2, 4)).tolist() == [[1, 1, 0, 0], [1, 1, 1, 0]]
    with pytest.raises(RuntimeError, match="Truncation is not supported"):
        n.to_padded_tensor(0.0, (2, 2))
    with pytest.raises(TypeError, match="no nested tensor"):
        torch.nested.to_padded_tensor(torch.ones(2), 0.0)


def test_gradients_go_to_the_parts():
    a, b = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
    n = torch.nested.as_nested_tensor([a, b])
    assert n.requires_grad
    (n * 2).to_padded_tensor(0.0).sum().backward()
    assert a.grad.tolist() == [2, 2] and b.grad.tolist() == [2, 2, 2]
    leaf = torch.nested.nested_tensor([a, b], requires_grad=True)
    assert leaf.is_leaf and leaf.grad is None and leaf[0] is not a
    (leaf * leaf).to_padded_tensor(0.0).sum().backward()
    assert lists(leaf.grad) == [[2, 2], [2, 2, 2]] and leaf.detach().requires_grad is False


def test_sizes_are_compared_part_by_part():
    assert made().is_same_size(made()) and not torch.is_same_size(
        made(), torch.nested.nested_tensor([torch.ones(2, 3)] * 2)
    )
    for one, other in ((made(), torch.ones(2)), (torch.ones(2), made())):
        with pytest.raises(RuntimeError, match="Expected both self and other to be nested tensors"):
            one.is_same_size(other)


def test_what_it_is_made_of():
    of_slices = torch.nested.as_nested_tensor(torch.ones(2, 3))
    assert lists(of_slices) == [[1, 1, 1], [1, 1, 1]] and torch.nested.as_nested_tensor(of_slices) is of_slices
    mixed = torch.nested.nested_tensor([torch.ones(2), torch.ones(3, dtype=torch.float64)])
    assert (
        mixed.dtype is torch.float32 and mixed[1].dtype is torch.float32 and torch.nested.nested_tensor([]).dim() == 1
    )
    with pytest.raises(TypeError, match="Only lists"):
        torch.nested.nested_tensor(3)
    with pytest.raises(RuntimeError, match="must have the same dimension. Found dimension 2 for Tensor at index 1"):
        torch.nested.nested_tensor([torch.ones(2), torch.ones(2, 2)])
    with pytest.raises(NotImplementedError, match="nested tensors of the layout torch.jagged are not there"):
        torch.nested.nested_tensor([torch.ones(2)], layout=torch.jagged)


def test_functions_of_single_parts():
    """`vmap` over nested tensors: results of it are nested, those of nothing nested are dense."""
    n, dense = made(), torch.ones(2, 3, 2)
    product, same = torch.vmap(lambda x, y: (x @ y, y.sum()))(n, dense)
    assert product.is_nested and lists(product) == [[[3, 3]] * 2, [[0, 0]] * 3] and same[1].item() == 6
    whole = torch.vmap(lambda x, y: y, in_dims=(0, None))(n, torch.ones(3))
    assert whole.shape == (2, 3) and not whole.is_nested
    leaf = n.clone().requires_grad_()
    leaf.requires_grad = False
    assert not leaf[0].requires_grad and leaf.requires_grad_().requires_grad
    assert leaf[0].requires_grad and torch.vmap(torch.sin)(leaf)[1].requires_grad
    assert n.select(-1, 0)[1].tolist() == [0, 0, 0] and torch.cat([n, n]).size(0) == 4


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda n: torch.vmap(lambda x: x, in_dims=2)(n),
            "Nested tensors can only be vmapped over dim=0, but got dim=2",
        ),
        (
            lambda n: torch.vmap(lambda x: x, out_dims=2)(n),
            "Nested tensors can only be vmapped over dim=0, but got dim=2",
        ),
        (
            lambda n: torch.vmap(torch.vmap(torch.sin))(n),
            "Only one level of vmap is supported when vmapping over nested",
        ),
        (
            lambda n: torch.vmap(lambda x, y: x @ y, in_dims=(0, 1))(n, torch.ones(3, 2, 4)),
            "Fallback not supported for mixed nested / non-nested arguments without bdim=0",
        ),
    ],
)
def test_refusals_of_vmap(call, words):
    with pytest.raises(RuntimeError, match=words):
        call(made())
