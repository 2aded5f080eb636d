"""Decompositions of low rank, and Sobol' points: values recorded with PyTorch 2.13."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch

SCRAMBLED = [
    [0.4802905321121216, 0.11725887656211853],
    [0.9497883319854736, 0.743020236492157],
    [0.6404228806495667, 0.3272419571876526],
]


@pytest.mark.parametrize("shape", [(6, 4), (4, 7), (2, 5, 3)])
def test_svd_lowrank_gives_back_a_matrix_of_low_rank(shape):
    torch.manual_seed(0)
    a = torch.randn(*shape[:-1], 2, dtype=torch.float64) @ torch.randn(*shape[:-2], 2, shape[-1], dtype=torch.float64)
    u, s, v = torch.svd_lowrank(a, q=3)
    assert torch.allclose(u @ torch.diag_embed(s) @ v.mH, a)
    assert torch.allclose(s[..., :2], torch.linalg.svdvals(a)[..., :2])
    eye = torch.eye(3, dtype=torch.float64).expand(*shape[:-2], 3, 3)
    assert torch.allclose(u.mH @ u, eye) and torch.allclose(v.mH @ v, eye)


def test_svd_lowrank_takes_a_mean_off():
    torch.manual_seed(0)
    a = torch.randn(5, 4, dtype=torch.float64)
    mean = a.mean(0, keepdim=True)
    _, with_mean, _ = torch.svd_lowrank(a, q=4, M=mean)
    _, centred, _ = torch.pca_lowrank(a, q=4)
    assert torch.allclose(with_mean, torch.linalg.svdvals(a - mean)) and torch.allclose(with_mean, centred)


def test_pca_lowrank_refuses_what_no_matrix_has():
    with pytest.raises(ValueError, match=r"q\(=7\) must be non-negative integer and not greater than min\(m, n\)=3"):
        torch.pca_lowrank(torch.ones(3, 4), 7)
    with pytest.raises(ValueError, match=r"niter\(=-1\) must be non-negative integer"):
        torch.pca_lowrank(torch.ones(3, 4), 2, niter=-1)


def test_sobol_points():
    pytest.importorskip("scipy")
    engine = torch.quasirandom.SobolEngine(3)
    points = [[0.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.75, 0.25, 0.25], [0.25, 0.75, 0.75]]
    assert engine.draw(4).tolist() == points
    assert engine.reset().draw(1).tolist() == points[:1] and engine.draw(3).tolist() == points[1:]
    assert engine.reset().fast_forward(2).draw(2).tolist() == points[2:]
    assert engine.reset().draw_base2(2, dtype=torch.float64).dtype is torch.float64
    with pytest.raises(ValueError, match=r"then: n=4\+2\*\*1=6"):
        engine.draw_base2(1)
    with pytest.raises(ValueError, match=r"\[1, 21201\]"):
        torch.quasirandom.SobolEngine(0)


def test_scrambled_sobol_points_follow_the_seed():
    pytest.importorskip("scipy")
    engine = torch.quasirandom.SobolEngine(2, scramble=True, seed=5)
    assert engine.draw(3).tolist() == SCRAMBLED
    assert repr(engine) == "SobolEngine(dimension=2, scramble=True, seed=5)"


def test_sobol_points_of_many_dimensions_are_even():
    pytest.importorskip("scipy")
    points = torch.quasirandom.SobolEngine(50).draw(256, dtype=torch.float64)
    for column in points.T:  # 256 points have every multiple of 1 / 256 once
        assert torch.equal(column.sort().values, torch.arange(256, dtype=torch.float64) / 256)


def test_factors_of_matrices_that_are_not_definite() -> None:
    """Pivots are LAPACK's: positive for blocks of one row, twice the same negative one for blocks of two."""
    a = torch.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 0.5], [2.0, 0.5, 0.0]])
    factors, pivots = torch.linalg.ldl_factor(a)
    assert pivots.tolist() == [-3, -3, 3]
    assert factors.tolist() == [[0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.25, 0.5, -0.5]]
    x = torch.linalg.ldl_solve(factors, pivots, torch.ones(3, 2))
    assert torch.allclose(a @ x, torch.ones(3, 2))
    h = torch.tensor([[1, 1 + 2j, 0], [1 - 2j, 0, 1j], [0, -1j, 0.5]], dtype=torch.complex128)
    factors, pivots = torch.linalg.ldl_factor(h, hermitian=True)
    assert pivots.tolist() == [-2, -2, 3]
    assert torch.allclose(factors[2], torch.tensor([-0.4 - 0.2j, 0.2j, 0.7], dtype=torch.complex128))
    right = torch.ones(3, 1, dtype=torch.complex128)
    assert torch.allclose(h @ torch.linalg.ldl_solve(factors, pivots, right, hermitian=True), right)
    with pytest.raises(RuntimeError, match="torch.linalg.ldl_factor: Unknown error code: 1"):
        torch.linalg.ldl_factor(torch.zeros(2, 2))


def _definite(n: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, n, dtype=torch.float64, generator=generator)
    return x @ x.mT + torch.eye(n, dtype=torch.float64)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("general", [True, False])
def test_outer_eigenpairs(largest: bool, general: bool) -> None:
    A = torch.stack([_definite(12), 2 * _definite(12)])
    B = torch.eye(12, dtype=torch.float64) * 2 + 0.1 if general else None
    values, vectors = torch.lobpcg(A, k=3, B=B, largest=largest)
    assert values.shape == (2, 3) and vectors.shape == (2, 12, 3)
    full = torch.linalg.eigvals(A if B is None else torch.linalg.solve(B, A)).real.sort(-1, descending=largest).values
    assert torch.allclose(values, full[:, :3])
    image = vectors if B is None else B @ vectors
    assert torch.allclose(A @ vectors, image * values.unsqueeze(-2), atol=1e-5)
    assert torch.allclose(vectors.mT @ image, torch.eye(3, dtype=torch.float64).expand(2, 3, 3), atol=1e-10)


def test_outer_eigenpairs_by_steps() -> None:
    A, seen = _definite(12), []
    preconditioner = torch.diag(1 / A.diagonal())
    start = torch.ones(12, 2, dtype=torch.float64).tril()
    torch.lobpcg(A, X=start, iK=preconditioner, niter=3, tracker=lambda one: seen.append(one.ivars["istep"]))
    assert seen == [1, 2, 3]
    with pytest.raises(ValueError, match="is smaller than 3 x the number of requested"):
        torch.lobpcg(A, k=5)
    with pytest.raises(AssertionError, match="A must be square"):
        torch.lobpcg(torch.ones(3, 4))
    found = torch.lobpcg(A.to_sparse(), k=2)[0]
    assert torch.allclose(found, torch.linalg.eigvalsh(A).flip(0)[:2])


def test_derivatives_of_outer_eigenpairs() -> None:
    """Those of all eigenpairs, of which these are some."""
    A = _definite(9).requires_grad_()
    weights = torch.arange(1.0, 19.0, dtype=torch.float64).reshape(9, 2)
    gradients = []
    for values, vectors in (torch.lobpcg(A, k=2, tol=1e-11), [x.flip(-1)[..., :2] for x in torch.linalg.eigh(A)]):
        loss = (values * torch.tensor([1.0, 3.0], dtype=torch.float64)).sum() + (vectors.abs() * weights).sum()
        gradients.append(torch.autograd.grad(loss, A)[0])
    assert torch.allclose(*gradients, atol=1e-7)
