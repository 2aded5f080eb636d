"""Sparse tensors: results, gradients and errors as recorded with PyTorch 2.13, and what no recorded text can say."""

from __future__ import annotations

import copy
import io
import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import sparse_cases as cases

import mindtorch_v2 as torch

RECORDED = json.loads((Path(__file__).parent / "data" / "sparse.json").read_text(encoding="utf-8"))
NAMES = cases.Names(torch)
A, U, H, R, D = NAMES.A, NAMES.U, NAMES.H, NAMES.R, NAMES.D
S = torch.sparse_coo_tensor


@pytest.mark.parametrize("call", cases.CASES)
def test_as_recorded(call):
    assert cases.outcome(NAMES, call) == RECORDED[call]


def _same(found, expected):
    assert found.shape == expected.shape and found.dtype == expected.dtype
    assert torch.equal(found, expected)


@pytest.mark.parametrize("shape", [(4, 5), (3, 2, 4), (1,), (0, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool, torch.bfloat16, torch.complex64])
def test_there_and_back(shape, dtype):
    torch.manual_seed(1)
    dense = torch.randint(0, 3, shape).to(dtype)
    for sparse_dim in range(1, len(shape) + 1):
        sparse = dense.to_sparse(sparse_dim)
        assert sparse.is_coalesced() and sparse.sparse_dim() == sparse_dim and sparse.layout is torch.sparse_coo
        _same(sparse.to_dense(), dense)
    if len(shape) == 2:
        _same(dense.to_sparse_csr().to_dense(), dense)
        _same(dense.to_sparse_csr().to_sparse().to_dense(), dense)


@pytest.mark.parametrize("layout", ["coo", "csr"])
@pytest.mark.parametrize("rows, inner, columns", [(7, 5, 3), (1, 8, 1), (4, 0, 2), (0, 3, 2), (60, 70, 50)])
def test_products_are_those_of_dense_matrices(layout, rows, inner, columns):
    torch.manual_seed(2)
    first = torch.randn(rows, inner, dtype=torch.float64) * (torch.rand(rows, inner) < 0.3)
    second = torch.randn(inner, columns, dtype=torch.float64) * (torch.rand(inner, columns) < 0.3)
    a, b = (x.to_sparse() if layout == "coo" else x.to_sparse_csr() for x in (first, second))
    expected = first @ second
    for found in (a @ second, first @ b, torch.sparse.mm(a, b).to_dense(), torch.addmm(expected, a, second, beta=0)):
        torch.testing.assert_close(found, expected)
    if columns:
        torch.testing.assert_close(a @ second[:, 0], expected[:, 0])


@pytest.mark.parametrize("rounds", [1, 2, 32])
def test_long_runs_are_summed_in_parts(monkeypatch, rounds):
    from mindtorch_v2._backends.cpu.sparse import pieces

    monkeypatch.setattr(pieces, "_MOST", 8)
    monkeypatch.setattr(pieces, "_ROUNDS", rounds)
    torch.manual_seed(3)
    first = torch.randn(9, 60) * (torch.rand(9, 1) > torch.rand(9, 60))
    second = torch.randn(60, 3)
    torch.testing.assert_close(first.to_sparse() @ second, first @ second)
    for dtype in (torch.float64, torch.bfloat16, torch.int8, torch.bool):
        places, values = torch.randint(0, 4, (1, 90)), torch.randint(-3, 4, (90, 2)).to(dtype)
        expected = torch.zeros(4, 2, dtype=torch.int64).index_add(0, places[0], values.long())
        found = S(places, values, (4, 2)).to_dense()
        _same(found, expected.to(dtype) if dtype is not torch.bool else expected > 0)


def test_gradients_of_products_by_differences():
    torch.manual_seed(4)
    dense = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    for make in (lambda x: x.to_sparse(), lambda x: x.to_sparse_csr()):
        sparse = make(torch.eye(3, dtype=torch.float64) * 2 + torch.ones(3, 3, dtype=torch.float64).triu(1))
        sparse.requires_grad_(True)
        check = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
        assert check(lambda a, b: torch.sparse.mm(a, b), (sparse, dense), masked=True)
        assert check(lambda a: a * 3, (sparse,), masked=True)


def test_values_share_memory():
    values = torch.ones(3)
    sparse = S(torch.tensor([[0, 1, 2]]), values, (4,))
    values[0] = 7
    sparse._values()[1] = 8
    assert sparse.to_dense().tolist() == [7, 8, 1, 0]
    assert values.tolist() == [7, 8, 1]
    assert sparse.detach()._values().data_ptr() == values.data_ptr()
    assert sparse.clone()._values().data_ptr() != values.data_ptr()


def test_versions_count_what_is_changed():
    values = torch.ones(2, requires_grad=True)
    sparse = S(torch.tensor([[0, 1]]), values, (2,))
    product = sparse * sparse
    sparse.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.to_dense().sum().backward()


def test_changes_in_place_are_recorded():
    leaf = A().requires_grad_(True)
    made = leaf.clone()
    made.mul_(3)
    made.add_(U())
    made.to_dense().sum().backward()
    assert leaf.grad.to_dense().tolist() == [[3, 3, 3], [3, 0, 0], [0, 3, 0]]  # wherever the result has elements


def test_a_gradient_has_the_memory_of_its_rows_as_far_as_they_are_contiguous():
    module = torch.nn.Embedding(4, 2, sparse=True)
    out = module(torch.tensor([1, 3, 1]))
    given = torch.ones(3, 2)
    out.backward(given)
    grad = module.weight.grad
    assert grad.is_sparse and not grad.is_coalesced()
    grad._values().zero_()
    assert given.tolist() == [[0, 0]] * 3
    module.weight.grad, given = None, torch.ones(2, 3)
    module(torch.tensor([1, 3, 1])).backward(given.t())
    module.weight.grad._values().zero_()
    assert given.tolist() == [[1, 1, 1]] * 2


def test_gradients_of_embeddings_are_rows_as_they_came():
    """What arrives by `sum` is spread, so that rows are put behind each other and not summed; the indices are copied with it."""
    weight = torch.zeros(10, 2, requires_grad=True)
    indices = torch.tensor([7, 1, 3])
    for _ in range(2):
        torch.nn.functional.embedding(indices, weight, sparse=True).sum().backward()
    indices[0] = 8
    assert weight.grad._indices().tolist() == [[7, 1, 3, 7, 1, 3]]
    assert weight.grad._values().tolist() == [[1.0, 1.0]] * 6


def test_a_contiguous_gradient_becomes_that_of_one_leaf():
    places = []

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b

        @staticmethod
        def backward(ctx, grad):
            places.append(grad._values().data_ptr())
            return grad, grad

    a, b = (torch.zeros(10, 2, requires_grad=True) for _ in range(2))
    table = Twice.apply(a, b)
    (torch.nn.functional.embedding(torch.tensor([2, 3]), table, sparse=True) * torch.ones(2, 2)).sum().backward()
    found = {a.grad._values().data_ptr(), b.grad._values().data_ptr()}
    assert len(found) == 2 and places[0] in found


def test_embeddings_of_dense_and_sparse_gradients_train_alike():
    tables = []
    for sparse in (False, True):
        torch.manual_seed(5)
        module = torch.nn.Embedding(10, 3, sparse=sparse)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        for step in range(4):
            optimizer.zero_grad()
            ids = torch.randint(0, 10, (6,), generator=torch.Generator().manual_seed(step))
            module(ids).pow(2).sum().backward()
            optimizer.step()
        tables.append(module.weight.detach())
    torch.testing.assert_close(*tables)


def test_norms_of_sparse_gradients_are_clipped():
    """PyTorch has no vector_norm of sparse tensors; that of what is specified is meant."""
    module = torch.nn.Embedding(5, 2, sparse=True)
    module(torch.tensor([1, 2, 1])).sum().backward()
    dense = module.weight.grad.to_dense()
    total = torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
    torch.testing.assert_close(total, dense.norm())
    torch.testing.assert_close(module.weight.grad.to_dense(), dense / (dense.norm() + 1e-6))


@pytest.mark.parametrize("layout", ["sparse_bsr", "sparse_bsc"])
def test_other_layouts_say_that_they_are_not_there(layout):
    kind = getattr(torch, layout)
    for call in (
        lambda: torch.sparse_compressed_tensor([0, 1], [0], [1.0], (1, 1), layout=kind),
        lambda: getattr(torch, f"{layout}_tensor")([0, 1], [0], [1.0], (1, 1)),
        lambda: torch.zeros(2, 2, layout=kind),
        lambda: torch.eye(2).to_sparse(layout=kind),
        lambda: getattr(torch.eye(2), f"to_{layout}")((1, 1)),
    ):
        with pytest.raises(NotImplementedError, match=layout):
            call()


def test_operators_without_a_kernel_say_so():
    for sparse, backend in ((A(), "SparseCPU"), (R(), "SparseCsrCPU")):
        with pytest.raises(
            NotImplementedError, match=f"Could not run 'aten::exp' with arguments from the '{backend}' backend"
        ):
            torch.exp(sparse)
        with pytest.raises(NotImplementedError, match="aten::cumsum"):
            sparse.cumsum(0)


def test_factories_of_layouts_are_not_planned():
    for _ in range(4):
        assert torch.zeros(2, 3, layout=torch.sparse_coo).is_sparse
        assert torch.zeros(2, 3, layout=torch.sparse_csr).is_sparse_csr
        assert torch.zeros(2, 3, layout=torch.strided).layout is torch.strided
        assert torch.empty((2, 3), layout=torch.sparse_coo)._nnz() == 0
        assert torch.zeros_like(D, layout=torch.sparse_coo).is_sparse


def test_checks_of_what_tensors_are_made_of():
    checks = torch.sparse.check_sparse_tensor_invariants
    assert not checks.is_enabled()
    wrong = S([[5]], [1.0], (2,))
    with pytest.raises(RuntimeError, match="size is 2 but found index 5"):
        wrong.to_dense()
    with checks():
        assert checks.is_enabled()
        with pytest.raises(
            RuntimeError, match="size is inconsistent with indices: for dim 0, size is 2 but found index 5"
        ):
            S([[5]], [1.0], (2,))
        S([[5]], [1.0], (2,), check_invariants=False)
        with checks(False):
            S([[5]], [1.0], (2,))
    assert not checks.is_enabled()
    checks.enable()
    try:
        assert checks(False)(checks.is_enabled)() is False
    finally:
        checks.disable()


@pytest.mark.parametrize(
    "call",
    [
        lambda s, d: s.to_dense(),
        lambda s, d: s @ d,
        lambda s, d: s.coalesce(),
        lambda s, d: d + s,
        lambda s, d: d.sparse_mask(s),
        lambda s, d: s.to_sparse_csr(),
        lambda s, d: torch.sparse.mm(s, s),
        lambda s, d: torch.sparse.softmax(s, 0),
        lambda s, d: s * s,
        lambda s, d: s * d,
    ],
)
@pytest.mark.parametrize("place", [-1, 3])
def test_coordinates_outside_of_the_shape_never_reach_memory(call, place):
    for sparse in (S([[0, place], [0, 0]], [1.0, 2.0], (3, 3)), S([[0, 0], [place, 0]], [1.0, 2.0], (3, 3))):
        with pytest.raises(RuntimeError, match="index"):
            call(sparse, D)


# Files


def _file(value, **options):
    file = io.BytesIO()
    torch.save(value, file, **options)
    file.seek(0)
    return file


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("weights_only", [True, False])
def test_files(zipped, weights_only):
    state = {"coo": A(), "once": U().coalesce(), "hybrid": H(), "rows": R(), "half": A().half()}
    read = torch.load(_file(state, _use_new_zipfile_serialization=zipped), weights_only=weights_only)
    for name, expected in state.items():
        found = read[name]
        assert found.layout is expected.layout and found.dtype is expected.dtype
        assert not expected.is_sparse or found.is_coalesced() == expected.is_coalesced()
        _same(found.to_dense(), expected.to_dense())


def test_files_of_wrong_members():
    checks = torch.sparse.check_sparse_tensor_invariants
    for wrong in (
        S([[5]], [1.0], (2,)),
        torch.sparse_csr_tensor([0, 3], [0], [1.0], (1, 2)),
        S([[1, 0]], [1.0, 2.0], (2,))._coalesced_(True),
    ):
        file = _file(wrong)
        assert torch.load(file)._nnz() == wrong._nnz()
        file.seek(0)
        with checks(), pytest.raises(RuntimeError):
            torch.load(file)
        file.seek(0)
        torch.load(file)  # what was refused is forgotten


def test_files_of_hostile_members():
    rebuild = torch._utils._rebuild_sparse_tensor
    coo, csr = torch.sparse_coo, torch.sparse_csr
    for layout, data in (
        ("torch.sparse_coo", (torch.zeros(1, 1), torch.ones(1), (2,))),
        (coo, None),
        (coo, (torch.zeros(1, 1, dtype=torch.long),)),
        (coo, (torch.zeros(1, 1, dtype=torch.long), torch.ones(1), "size", True)),
        (coo, (torch.zeros(1, 1, dtype=torch.long), torch.ones(2), (2,), True)),
        (coo, (torch.zeros(1, 1, dtype=torch.long), A(), (2,), True)),
        (coo, (torch.zeros(1, 1, dtype=torch.long), torch.ones(1), (2, 3), True)),
        (coo, (torch.zeros(1, 1, dtype=torch.long), torch.ones(1), (-2,), True)),
        (csr, (torch.zeros(2, dtype=torch.long), torch.ones(1), (2, 3))),
        (csr, (torch.zeros(2), torch.ones(1), torch.ones(1), (1, 3))),
        (csr, (torch.zeros(9, dtype=torch.long), torch.zeros(1, dtype=torch.long), torch.ones(1), (1, 3))),
    ):
        with pytest.raises(RuntimeError):
            rebuild(layout, data)
    with pytest.raises(NotImplementedError):
        rebuild(torch.sparse_bsr, (torch.zeros(2), torch.ones(1), torch.ones(1), (1, 3)))


def test_copies():
    leaf = A().requires_grad_(True)
    for made in (copy.deepcopy(leaf), copy.deepcopy([leaf])[0]):
        assert made.requires_grad and made._values().data_ptr() != leaf._values().data_ptr()
        _same(made.detach().to_dense(), A().to_dense())
    rows = copy.deepcopy(R())
    assert rows.is_sparse_csr and rows.values().data_ptr() != R().values().data_ptr()
    assert pickle.loads(pickle.dumps(R())).is_sparse_csr


# Elsewhere


def test_in_a_pipeline():
    with torch.pipeline():
        values = torch.ones(4) * 2
        sparse = S(torch.tensor([[0, 0, 1, 2], [1, 2, 0, 1]]), values, (3, 3))
        found = (sparse @ (D + 0)) * 2
        added = (D * 0) + sparse
        values.mul_(5)
        again = sparse.to_dense()
    torch.testing.assert_close(found, ((A().to_dense() != 0) * 2.0) @ D * 2)
    assert added.sum() == 8 and again.sum() == 40


def test_what_a_pipeline_reads_before_a_sparse_tensor_is_added_in_place():
    dense, rows = torch.zeros(3, 2), S(torch.tensor([[0, 2]]), torch.ones(2, 2), (3, 2))
    with torch.pipeline():
        before = dense.clone()
        dense.add_(rows)
        between = dense * 2
        dense.add_(rows)
    assert before.tolist() == [[0.0, 0.0]] * 3
    assert between.tolist() == [[2.0, 2.0], [0.0, 0.0], [2.0, 2.0]]
    assert dense.tolist() == [[2.0, 2.0], [0.0, 0.0], [2.0, 2.0]]


def test_without_elements():
    """Shapes on the meta device."""
    made = torch.empty(2, 3, layout=torch.sparse_coo, device="meta")
    assert made.is_sparse and made.device.type == "meta" and made.shape == (2, 3)
    moved = H().to("meta")
    assert moved._indices().shape == (1, 0) and moved._values().shape == (0, 2)
    assert torch.zeros_like(H(), device="meta").device.type == "meta"
    given = S(torch.zeros(2, 4, dtype=torch.long, device="meta"), torch.zeros(4, device="meta"), (3, 3))
    assert given._nnz() == 4 and (given * 2)._values().device.type == "meta"


def test_meta_tensors_know_shapes():
    sparse, dense = A().to("meta"), D.to("meta")
    assert sparse.to_dense().shape == (3, 3) and (sparse @ dense).device.type == "meta"
    assert (sparse * 2).t().is_sparse and sparse.coalesce().is_coalesced()
    given = S(torch.zeros(2, 3, dtype=torch.long, device="meta"), torch.zeros(3, device="meta"), (3, 3))
    with pytest.raises(NotImplementedError, match="only the CPU has kernels for it"):
        dense + given


def test_mixed_precision():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (A() @ D).dtype is torch.sparse.mm(A(), D).dtype is torch.bfloat16
    scaler = torch.amp.GradScaler("cpu")
    module = torch.nn.Embedding(4, 2, sparse=True)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    scaler.scale(module(torch.tensor([1, 1])).sum()).backward()
    scaler.unscale_(optimizer)
    assert module.weight.grad._values().tolist() == [[1, 1], [1, 1]]
    before = module.weight.detach().clone()
    scaler.step(optimizer)
    torch.testing.assert_close(
        before - module.weight.detach(), torch.tensor([[0.0] * 2, [0.2] * 2, [0.0] * 2, [0.0] * 2])
    )


def test_modes_see_sparse_operators():
    from mindtorch_v2.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Listening(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    sparse = U()
    with Listening():
        found = (sparse * 2).coalesce()
    assert seen == ["aten.mul.Tensor", "aten._coalesce.default"]
    _same(found.to_dense(), U().to_dense() * 2)


def test_there_are_no_tangents():
    with torch.autograd.forward_ad.dual_level():
        values = torch.autograd.forward_ad.make_dual(torch.ones(2), torch.ones(2))
        with pytest.raises(
            NotImplementedError, match="Trying to use forward AD with _sparse_coo_tensor_with_dims_and_tensors"
        ):
            S(torch.tensor([[0, 1]]), values, (2,))


def test_hooks_and_modules():
    module = torch.nn.Embedding(4, 2, sparse=True)
    seen = []
    module.weight.register_hook(lambda grad: seen.append(grad.is_sparse))
    module(torch.tensor([1, 2])).sum().backward()
    module.zero_grad(set_to_none=False)
    assert seen == [True] and module.weight.grad.is_sparse and module.weight.grad._nnz() == 0
    holder = torch.nn.Module()
    holder.weight = torch.nn.Parameter(A())
    other = torch.nn.Module()
    other.weight = torch.nn.Parameter(S((3, 3)))
    other.load_state_dict(holder.state_dict())
    _same(other.double().weight.detach().to_dense(), A().to_dense().double())


def test_names_of_old():
    sparse = torch.sparse.DoubleTensor(torch.tensor([[0, 1]]), torch.tensor([1.0, 2.0]), torch.Size([3]))
    assert sparse.dtype is torch.float64 and sparse.type() == "torch.sparse.DoubleTensor"
    assert isinstance(sparse, torch.sparse.DoubleTensor) and not isinstance(sparse, torch.sparse.FloatTensor)
    assert not isinstance(sparse, torch.DoubleTensor)
    assert torch.sparse.FloatTensor(2, 3).shape == (2, 3)


def test_refusals_of_optimizers():
    embedding = torch.nn.Embedding(3, 2)
    embedding(torch.tensor([0])).sum().backward()
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients"):
        torch.optim.SparseAdam(embedding.parameters()).step()
    for options, message in (
        ({"lr": 0.0}, "Invalid learning rate: 0.0"),
        ({"eps": 0.0}, "Invalid epsilon value: 0.0"),
        ({"betas": (1.0, 0.9)}, "Invalid beta parameter at index 0: 1.0"),
    ):
        with pytest.raises(ValueError, match=message):
            torch.optim.SparseAdam(embedding.parameters(), **options)
    with pytest.raises(ValueError, match=r"Sparse params at indices \[\[0, 0\]\]"):
        torch.optim.SparseAdam([A().requires_grad_(True)])


def test_comparisons_take_what_is_sorted_for_what_is_not():
    torch.testing.assert_close(U(), U().coalesce())
    with pytest.raises(AssertionError, match="Sparse COO values are not close"):
        torch.testing.assert_close(U() * 2, U().coalesce())


def test_rows_change_their_shape():
    rows = R()
    rows.resize_(4, 5)
    assert rows.shape == (4, 5) and rows._nnz() == 4 and rows.crow_indices().tolist() == [0, 2, 3, 4, 4]
    rows.resize_(2, 5)
    assert rows.shape == (2, 5) and rows._nnz() == 4
    with pytest.raises(
        RuntimeError, match="Resizing columns of sparse CSR tensors to a smaller value is not supported"
    ):
        R().resize_(3, 2)
    with pytest.raises(RuntimeError, match="Only batched sparse CSR matrices are supported"):
        R().resize_(4)


def test_gradients_of_rows():
    leaf = R().requires_grad_(True)
    leaf.sum().backward()
    assert leaf.grad.tolist() == [[1, 1, 1]] * 3  # dense, as that of a sum is
    dense = D.clone().requires_grad_(True)
    with pytest.raises(RuntimeError, match="at index 0 - expected layout Strided but got SparseCsr"):
        (dense * R()).sum().backward()


def test_products_with_batches_of_dense_matrices():
    batch = torch.arange(12.0).reshape(2, 3, 2)
    torch.testing.assert_close(A() @ batch, A().to_dense() @ batch)
    torch.testing.assert_close(batch.mT @ A(), batch.mT @ A().to_dense())
    vectors = batch[:, :, 0]
    torch.testing.assert_close(torch.vmap(lambda v: A() @ v)(vectors), vectors @ A().to_dense().T)


def test_small_ones():
    assert S([[0]], [1.0], (1,)).is_nonzero() and not S((1,)).is_nonzero()
    hybrid = torch.ones(2, 3, 4).to_sparse_csr(dense_dim=1)
    made = torch.zeros_like(hybrid)
    assert made.dense_dim() == 1 and made.shape == (2, 3, 4) and made._nnz() == 0
    assert S((2, 3)).coalesce().t().is_coalesced() and not A().coalesce().t().is_coalesced()


def test_operators_of_values_in_a_process_that_called_none_before() -> None:
    program = (
        "import mindtorch_v2 as torch\n"
        "x = torch.sparse_coo_tensor(torch.tensor([[0, 2]]), torch.tensor([-1.0, 2.0]), (3,))\n"
        "print(x.relu().to_dense().tolist(), x.abs().to_dense().tolist())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[0.0, 0.0, 2.0] [1.0, 0.0, 2.0]"
