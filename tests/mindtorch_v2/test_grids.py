"""Functions of points on a grid, on values that PyTorch 2.13 gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from _native_outcomes import assert_close, needs_extension

import mindtorch_v2 as torch
from mindtorch_v2._backends.cpu.ops import matmul


def test_points_in_boxes() -> None:
    points = torch.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0], [2.0, 2.0]])
    found = torch.histogramdd(points, bins=[3, 3], weight=torch.tensor([1.0, 2.0, 4.0, 8.0]))
    assert found.hist.tolist() == [[0.0, 1.0, 0.0], [2.0, 0.0, 0.0], [4.0, 0.0, 8.0]]
    assert [edges.numel() for edges in found.bin_edges] == [4, 4]
    dense = torch.histogramdd(points, bins=[2, 2], range=[0.0, 1.0, 0.0, 1.0], density=True)
    assert dense.hist.tolist() == [[0.0, 2.0], [2.0, 0.0]]
    edges = (torch.tensor([0.0, 1.5, 3.0]), torch.tensor([0.0, 2.0]))
    assert torch.histogramdd(points, edges).hist.tolist() == [[2.0], [2.0]]
    with pytest.raises(RuntimeError, match="The size of bins must be equal to the innermost dimension"):
        torch.histogramdd(points, bins=[2])


def test_the_places_of_indices_are_views_of_one_tensor() -> None:
    rows, columns = torch.unravel_index(torch.tensor([[1, 6], [8, 3]]), (3, 4))
    assert rows.tolist() == [[0, 1], [2, 0]]
    assert columns.tolist() == [[1, 2], [0, 3]]
    assert rows.stride() == columns.stride() == (4, 2)


def test_a_contraction_into_a_buffer() -> None:
    a, b, out = torch.ones(2, 3), torch.ones(3, 2), torch.empty(0)
    assert torch.tensordot(a, b, 1, out=out) is out
    assert out.tolist() == [[3.0, 3.0], [3.0, 3.0]]
    with pytest.raises(RuntimeError, match="Expected the output tensor to have dtype Float"):
        torch.tensordot(a, b, 1, out=torch.empty(0, dtype=torch.float64))


def test_a_method_whose_tensor_is_not_the_first_parameter() -> None:
    x = torch.tensor([1.0, 2.0])
    assert x.polygamma(1).tolist() == torch.polygamma(1, x).tolist()
    assert torch.Tensor.polygamma(x, 1).tolist() == x.polygamma(1).tolist()


@needs_extension
@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, float("inf")])
def test_distances_of_pairs_in_c_as_in_numpy(p: float) -> None:
    generator = np.random.default_rng(2)
    forward: Any = matmul.pdist_forward
    backward: Any = matmul.pdist_backward
    for dtype in (np.float32, np.float64):
        for shape in ((1, 3), (5, 3), (9, 17), (4, 0)):
            x = generator.normal(size=shape).astype(dtype)
            x[-1] = x[0]
            found, wanted = forward(x, p), forward.__wrapped__(x, p)
            assert_close(found, wanted, f"{p} {shape}", 100)
            grad = generator.normal(size=wanted.shape).astype(dtype)
            assert_close(backward(grad, x, p, wanted), backward.__wrapped__(grad, x, p, wanted), f"{p} {shape}", 1000)


def test_distances_of_equal_points_are_zero() -> None:
    """They come from differences; squares of such numbers have no digits left for that."""
    points = torch.full((30, 4), 1000.1)
    assert torch.pdist(points).count_nonzero().item() == 0
