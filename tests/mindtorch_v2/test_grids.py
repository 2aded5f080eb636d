"""Functions of points on a grid, on values that PyTorch 2.13 gives."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch


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
