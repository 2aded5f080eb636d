"""Bags of embeddings: modes, padding, factors, second derivatives. Expected values are PyTorch's; C is compared with numpy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from _native_outcomes import needs_extension

import mindtorch_v2 as torch
from mindtorch_v2._backends.cpu.ops import bags as kernels
from mindtorch_v2.autograd import gradcheck, gradgradcheck
from mindtorch_v2.nn import functional as F

_TABLE = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


def test_modes() -> None:
    table, indices = torch.tensor(_TABLE), torch.tensor([2, 0, 1, 1])
    last = torch.tensor([0, 1, 4])
    assert F.embedding_bag(indices, table, last, mode="max", include_last_offset=True).tolist() == [[5, 6], [3, 4]]
    padded = F.embedding_bag(indices, table, torch.tensor([0, 1]), mode="mean", padding_idx=0)
    assert padded.tolist() == [[5.0, 6.0], [3.0, 4.0]]
    factors = torch.tensor([[0.5, 2.0], [1.0, -1.0]])
    pairs = torch.tensor([[2, 0], [1, 1]])
    assert F.embedding_bag(pairs, table, mode="sum", per_sample_weights=factors).tolist() == [[4.5, 7.0], [0.0, 0.0]]


def test_what_is_given_beside_the_bags() -> None:
    table, indices, offsets = torch.tensor(_TABLE), torch.tensor([2, 0, 1, 1]), torch.tensor([0, 1, 1])
    _, owner, sizes, places = torch._embedding_bag(table, indices, offsets, False, 2)
    assert owner.tolist() == [0, 2, 2, 2] and sizes.tolist() == [1, 0, 3]
    assert places.tolist() == [[2, 2], [0, 0], [1, 1]]
    _, owner, sizes, _ = torch._embedding_bag(table, indices, offsets, False, 1)
    assert owner.tolist() == [0, 2, 2, 2] and sizes.tolist() == [1, 0, 3]
    assert torch._embedding_bag(table, indices, offsets)[1].shape == (0,)


def test_refusals() -> None:
    table, indices, offsets = torch.tensor(_TABLE), torch.tensor([2, 0, 1]), torch.tensor([0, 1])
    for given, words in (
        ((table, indices + 1, offsets), r"Index 0 of input takes value 3 which is not in the valid range \[0, 3\)"),
        ((table, indices, offsets + 1), r"offsets\[0\] has to be 0"),
        (
            (table, indices, offsets * 9),
            r"offsets\[-1\] can not be greater than input's length 3 but got offsets\[-1\] of 9",
        ),
    ):
        with pytest.raises(RuntimeError, match=words):
            torch.embedding_bag(*given)[0].tolist()
    with pytest.raises(
        RuntimeError, match="padding_idx must be within the number of embeddings, -3 through 2, but got 3"
    ):
        torch.embedding_bag(table, indices, offsets, False, 0, False, None, False, 3)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize(("dtype", "padding_idx"), [("float32", None), ("float64", None), ("float32", 0)])
def test_words_for_an_index_that_is_no_row(mode: str, dtype: str, padding_idx: int | None) -> None:
    table = torch.tensor(_TABLE, dtype=getattr(torch, dtype))
    quick = mode != "max" and dtype == "float32" and padding_idx is None
    words = (
        r"Index 1 of input takes value -1 which is not in the valid range \[0, 3\)"
        if quick
        else r"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be -1"
    )
    with pytest.raises(RuntimeError, match=words):
        F.embedding_bag(torch.tensor([[2, -1]]), table, mode=mode, padding_idx=padding_idx).tolist()


_CASES = [
    (mode, factored, padding, by_frequency)
    for mode, factored, padding, by_frequency in itertools.product(
        ("sum", "mean", "max"), (False, True), (None, 1), (False, True)
    )
    if not (factored and mode != "sum" or by_frequency and mode == "max")
]


@pytest.mark.parametrize(("mode", "factored", "padding", "by_frequency"), _CASES)
def test_derivatives(mode: str, factored: bool, padding: int | None, by_frequency: bool) -> None:
    generator = np.random.default_rng(1)
    table = torch.tensor(generator.normal(size=(5, 3)), requires_grad=True)
    factors = [torch.tensor(generator.normal(size=7), requires_grad=True)] if factored else []
    indices, offsets = torch.tensor([1, 2, 4, 1, 0, 3, 1]), torch.tensor([0, 2, 2, 5])

    def bags(table: Any, *factors: Any) -> Any:
        return F.embedding_bag(
            indices,
            table,
            offsets,
            mode=mode,
            scale_grad_by_freq=by_frequency,
            per_sample_weights=factors[0] if factors else None,
            padding_idx=padding,
        )

    if padding is None and not by_frequency:  # the row of padding gets no gradient, and rows a share of theirs
        assert gradcheck(bags, (table, *factors))
    assert gradgradcheck(bags, (table, *factors))


def test_on_meta() -> None:
    bag = torch.nn.EmbeddingBag(10, 3, mode="max", device="meta")
    out = bag(torch.zeros(4, dtype=torch.long, device="meta"), torch.zeros(2, dtype=torch.long, device="meta"))
    assert out.is_meta and out.shape == (2, 3)
    out.sum().backward()
    assert bag.weight.grad is not None and bag.weight.grad.shape == (10, 3)


@needs_extension
def test_c_as_numpy() -> None:
    generator = np.random.default_rng(5)
    rows, owner = np.array([3, 0, 3, 1, 2], np.intp), np.array([0, 0, 2, 2, 2], np.intp)
    kernel: Any = kernels.sum_bags
    for dtype in (np.float32, np.float64):
        table = generator.normal(size=(4, 19)).astype(dtype)
        for factors in (None, generator.normal(size=5).astype(dtype)):
            found, wanted = (f(table, rows, owner, 3, factors) for f in (kernel, kernel.__wrapped__))
            assert found.dtype == wanted.dtype and np.allclose(found, wanted, rtol=1e-6, atol=1e-6)


def test_segments() -> None:
    x = torch.tensor([1.0, 2.0, 2.0, -1.0, 0.0, 6.0], dtype=torch.float64, requires_grad=True)
    lengths, grad = torch.tensor([3, 0, 3]), torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    for reduce, values, gradients in (
        ("max", [2.0, 1.0, 6.0], [0.0, 0.5, 0.5, 0.0, 0.0, 3.0]),
        ("min", [1.0, 1.0, -1.0], [1.0, 0.0, 0.0, 3.0, 0.0, 0.0]),
        ("prod", [4.0, 1.0, 0.0], [4.0, 2.0, 2.0, 0.0, -18.0, 0.0]),
    ):
        found = torch.segment_reduce(x, reduce, lengths=lengths, initial=1)
        assert found.tolist() == values
        assert torch.autograd.grad(found, x, grad)[0].tolist() == gradients
    plain = torch.segment_reduce(x, "mean", offsets=torch.tensor([0, 2, 2, 6]))
    assert plain.tolist()[::2] == [1.5, 1.75] and plain[1].isnan()
    with pytest.raises(
        RuntimeError, match=r"Expected all rows of lengths along axis to sum to data.size\(lengths.dim\(\)-1\)"
    ):
        torch.segment_reduce(x, "sum", lengths=lengths + 1).tolist()
