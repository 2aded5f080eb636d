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
