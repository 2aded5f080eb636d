"""Sparse matrices of compressed columns, and products whose rows are reduced otherwise than by sums. The numbers are PyTorch's."""

from __future__ import annotations

import io

import pytest

import mindtorch_v2 as torch

DENSE = [[0.0, 2, 0, 1], [3, 0, 0, 4], [0, 5, 0, 0]]


@pytest.fixture
def dense():
    return torch.tensor(DENSE)


@pytest.fixture
def columns(dense):
    return dense.to_sparse_csc()


def test_members(columns):
    assert columns.layout is torch.sparse_csc
    assert columns.ccol_indices().tolist() == [0, 1, 3, 3, 5]
    assert columns.row_indices().tolist() == [1, 0, 2, 0, 1]
    assert columns.values().tolist() == [3, 2, 5, 1, 4]
    assert (columns.is_sparse, columns.is_sparse_csr) == (False, False)
    assert (columns.sparse_dim(), columns.dense_dim(), columns._nnz()) == (2, 0, 5)
    with pytest.raises(
        RuntimeError, match="crow_indices expected sparse row compressed tensor layout but got SparseCsc"
    ):
        columns.crow_indices()
    with pytest.raises(
        RuntimeError, match="ccol_indices expected sparse column compressed tensor layout but got SparseCsr"
    ):
        columns.to_sparse_csr().ccol_indices()
    for name in ("stride", "is_contiguous"):
        with pytest.raises(RuntimeError, match="Sparse CSC tensors do not have"):
            getattr(columns, name)()


def test_printed(columns):
    assert repr(columns) == (
        "tensor(ccol_indices=tensor([0, 1, 3, 3, 5]),\n       row_indices=tensor([1, 0, 2, 0, 1]),\n"
        "       values=tensor([3., 2., 5., 1., 4.]), size=(3, 4), nnz=5,\n       layout=torch.sparse_csc)"
    )


def test_conversions(dense, columns):
    for made in (
        dense.to_sparse().to_sparse_csc(),
        dense.to_sparse_csr().to_sparse_csc(),
        dense.to_sparse(layout=torch.sparse_csc),
    ):
        assert made.layout is torch.sparse_csc and made.row_indices().tolist() == [1, 0, 2, 0, 1]
        assert torch.equal(made.to_dense(), dense)
    coordinates = columns.to_sparse()
    assert not coordinates.is_coalesced() and coordinates._values().tolist() == [3, 2, 5, 1, 4]
    assert coordinates._indices().tolist() == [[1, 0, 2, 0, 1], [0, 1, 1, 3, 3]]
    rows = columns.to_sparse_csr()
    assert rows.layout is torch.sparse_csr and rows.values().tolist() == [2, 1, 3, 4, 5]
    assert columns.to_sparse_csc() is columns


def test_transposes_share_the_members(dense, columns):
    for made in (columns.t(), columns.transpose(0, 1), columns.mT):
        assert made.layout is torch.sparse_csr and torch.equal(made.to_dense(), dense.t())
    made = dense.to_sparse_csr().t()
    assert made.layout is torch.sparse_csc and torch.equal(made.to_dense(), dense.t())
    columns.t().values().mul_(2)
    assert columns.values().tolist() == [6, 4, 10, 2, 8]
    batch = torch.stack([dense, dense]).to_sparse_csc()
    assert batch.transpose(1, 2).layout is torch.sparse_csr
    assert torch.equal(batch.transpose(1, 2).to_dense()[1], dense.t())
    with pytest.raises(
        RuntimeError, match=r"can only transpose dimensions of the same type .*0\(Batch\) and 2\(Sparse\)"
    ):
        batch.transpose(0, 2)


def test_products(dense, columns):
    eye = torch.eye(4)
    assert torch.equal(columns @ eye, dense) and torch.equal(torch.sparse.mm(columns, eye), dense)
    assert torch.equal(torch.eye(3) @ columns, dense)
    assert (columns @ torch.ones(4)).tolist() == [3, 7, 5]
    assert torch.equal(torch.addmm(torch.ones(3, 4), columns, eye), dense + 1)
    assert torch.nn.functional.linear(torch.ones(2, 4), columns).tolist() == [[3, 7, 5], [3, 7, 5]]
    flipped = dense.t()
    for first, second in (
        (columns, flipped.to_sparse_csc()),
        (columns, flipped.to_sparse_csr()),
        (dense.to_sparse_csr(), flipped.to_sparse_csc()),
    ):
        made = first @ second
        assert made.layout is torch.sparse_csr and torch.equal(made.to_dense(), dense @ flipped)


def test_sums_and_pointwise(dense, columns):
    for made, expected in (
        (columns + columns, 2 * dense),
        (columns * 2, 2 * dense),
        (columns.abs(), dense),
        (-columns, -dense),
        (columns.relu(), dense),
        (columns.double(), dense.double()),
        (columns.clone(), dense),
        (torch.zeros_like(columns), 0 * dense),
        (columns.clone().mul_(3), 3 * dense),
    ):
        assert made.layout is torch.sparse_csc and torch.equal(made.to_dense(), expected)
    assert torch.equal(dense + columns, 2 * dense) and torch.equal(columns + dense, 2 * dense)
    assert columns.sum().item() == 15
    assert columns[0].layout is torch.sparse_coo and columns[0].is_coalesced()
    assert columns[0].to_dense().tolist() == DENSE[0] and columns[:, 1].to_dense().tolist() == [2, 0, 5]
    assert [row.to_dense().tolist() for row in columns.unbind(0)] == DENSE
    assert torch.equal(dense.sparse_mask(columns).to_dense(), dense)


def test_made_of_members():
    for made in (
        torch.sparse_csc_tensor([0, 1, 2], [1, 0], [3.0, 4.0]),
        torch.sparse_csc_tensor([0, 1, 2], [1, 0], [3.0, 4.0], (2, 2)),
        torch.sparse_compressed_tensor([0, 1, 2], [1, 0], [3.0, 4.0], layout=torch.sparse_csc),
    ):
        assert made.layout is torch.sparse_csc and made.to_dense().tolist() == [[0, 4], [3, 0]]
    assert torch.zeros(2, 3, layout=torch.sparse_csc).ccol_indices().tolist() == [0, 0, 0, 0]
    with pytest.raises(RuntimeError, match="`0 <= row_indices < nrows` is not satisfied"):
        torch.sparse_csc_tensor([0, 1, 2], [5, 0], [3.0, 4.0], (2, 2), check_invariants=True)
    with pytest.raises(
        RuntimeError, match="for all i = 1, ..., ncols are sorted and distinct along the last dimension"
    ):
        torch.sparse_csc_tensor([0, 2, 2], [1, 0], [3.0, 4.0], (2, 2), check_invariants=True)


def test_saved(columns):
    file = io.BytesIO()
    torch.save(columns, file)
    file.seek(0)
    assert repr(torch.load(file)) == repr(columns)


def test_gradients(dense, columns):
    weight, x = columns.detach().requires_grad_(), torch.ones(4, 2, requires_grad=True)
    (weight @ x).sum().backward()
    assert weight.grad.tolist() == [[2] * 4] * 3 and x.grad.tolist() == [[3, 3], [7, 7], [0, 0], [5, 5]]
    source = dense.clone().requires_grad_()
    (source.to_sparse_csc() @ torch.ones(4, 2)).sum().backward()
    assert source.grad.tolist() == [[2] * 4] * 3
    values = torch.ones(5, requires_grad=True)
    made = torch.sparse_csc_tensor(columns.ccol_indices(), columns.row_indices(), values, (3, 4))
    (made @ torch.arange(8.0).view(4, 2)).sum().backward()
    assert values.grad.tolist() == [1, 5, 5, 13, 13]


def test_the_gradient_of_a_matrix_of_rows_in_a_dense_product(dense):
    rows = dense.to_sparse_csr().requires_grad_()
    (rows @ torch.ones(4, 2)).sum().backward()
    assert rows.grad.tolist() == [[2] * 4] * 3


@pytest.mark.parametrize(
    ("reduce", "result", "of_matrix", "of_dense"),
    [
        ("sum", [[5, 16], [-1, 26], [0, 0]], [158, 246, -106, 418], [[-6, 156], [20, 64], [0, 0], [2, 240]]),
        ("mean", [[2.5, 8], [-0.5, 13], [0, 0]], [39.5, 61.5, -26.5, 104.5], [[-1.5, 39], [5, 16], [0, 0], [0.5, 60]]),
        ("amax", [[6, 8], [3, 32], [0, 0]], [100, 0, 6, 512], [[18, 0], [24, 32], [0, 0], [0, 256]]),
        ("amin", [[-1, 8], [-4, -6], [0, 0]], [64, 2, 24, 8], [[0, -36], [0, 32], [0, 0], [-34, 0]]),
    ],
)
def test_products_that_are_reduced(reduce, result, of_matrix, of_dense):
    matrix = torch.tensor([[0.0, 2, 0, 1], [3, 0, 0, 4], [0, 0, 0, 0]]).to_sparse_csr().requires_grad_()
    x = torch.tensor([[1.0, -2], [3, 4], [5, 6], [-1, 8]], requires_grad=True)
    made = torch.sparse.mm(matrix, x, reduce)
    made.square().sum().backward()
    assert made.tolist() == result and matrix.grad.layout is torch.sparse_csr
    assert matrix.grad.values().tolist() == of_matrix and x.grad.tolist() == of_dense


def test_products_that_cannot_be_reduced(dense, columns):
    x = torch.ones(4, 2)
    with pytest.raises(RuntimeError, match="sparse_mm_reduce: expect self to be SparseCsr, got SparseCsc"):
        torch.sparse.mm(columns, x, "mean")
    with pytest.raises(NotImplementedError, match="_sparse_mm_reduce_impl"):
        torch.sparse.mm(dense.to_sparse(), x, "mean")
    with pytest.raises(RuntimeError, match="reduce type of prod has not been enabled"):
        torch.sparse.mm(dense.to_sparse_csr(), x, "prod")
