"""Operators as people write them, one a line, with their backward pass, on an NPU and on the CPU. Each says how it ran: by functions of aclnn, composed of other
operators of the device, or by the CPU; few may run by the CPU, and none of those that CANN has something for.

`MINDTORCH_NPU_EMULATOR=1 python tests/npu/test_one_liners.py` prints the table.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from _more_one_liners import MORE

import mindtorch_v2 as torch
from mindtorch_v2._backends.npu import fallback, run

# What a line may name: x [4, 6], y [4, 6] positive, v [6], m [5, 5] with a good inverse, b [2, 3, 8, 8] images, s [2, 3, 16] signals, c [1, 2, 4, 6, 6] volumes,
# i [4, 6] integers, t [4] classes, g [2, 5, 5, 2] a grid, w [3, 6] others.
LINES = """
F.pad(b, (1, 2, 1, 1), mode="reflect")
F.pad(b, (1, 2, 1, 1), mode="replicate")
F.pad(b, (1, 2, 1, 1), mode="circular")
F.pad(s, (2, 1), mode="reflect")
F.pad(s, (2, 1), mode="replicate")
F.pad(c, (1, 1, 1, 1, 1, 1), mode="reflect")
F.pad(c, (1, 1, 1, 1, 1, 1), mode="replicate")
F.pad(x, (1, 1), value=2.0)
F.interpolate(s, scale_factor=2)
F.interpolate(b, scale_factor=2)
F.interpolate(b, size=(5, 3), mode="nearest-exact")
F.interpolate(c, scale_factor=2)
F.interpolate(s, size=9, mode="linear")
F.interpolate(b, size=(5, 11), mode="bilinear")
F.interpolate(b, size=(5, 11), mode="bilinear", align_corners=True)
F.interpolate(b, size=(5, 4), mode="bilinear", antialias=True)
F.interpolate(b, size=(9, 5), mode="bicubic")
F.interpolate(b, size=(5, 4), mode="bicubic", antialias=True)
F.interpolate(c, scale_factor=2, mode="trilinear")
F.softshrink(x)
F.hardshrink(x)
F.tanhshrink(x)
torch.logit(torch.sigmoid(x))
torch.logit(torch.sigmoid(x), eps=0.2)
F.prelu(x, v)
F.rrelu(x, training=False)
F.gelu(x, approximate="tanh")
F.glu(x)
F.softplus(x)
F.celu(x)
F.mish(x)
F.hardswish(x)
F.logsigmoid(x)
F.threshold(x, 0.1, 2.0)
F.relu6(x)
F.normalize(x, dim=1)
F.huber_loss(x, y)
F.smooth_l1_loss(x, y, beta=0.5)
F.soft_margin_loss(x, torch.sign(y - 1))
F.cross_entropy(x, t)
F.cross_entropy(b, i[:2, :1].expand(2, 8).unsqueeze(1).expand(2, 8, 8) % 3)
F.nll_loss(F.log_softmax(b, 1), i[:2, :1].expand(2, 8).unsqueeze(1).expand(2, 8, 8) % 3, reduction="none")
F.binary_cross_entropy_with_logits(x, torch.sigmoid(y))
F.kl_div(F.log_softmax(x, 1), F.softmax(y, 1), reduction="batchmean")
F.mse_loss(x, y)
F.l1_loss(x, y)
F.poisson_nll_loss(x, y)
F.gaussian_nll_loss(x, y, y)
F.cosine_embedding_loss(x, y, torch.ones_like(t))
F.triplet_margin_loss(x, y, y + 1)
F.margin_ranking_loss(x[:, 0], y[:, 0], torch.ones_like(t))
F.max_pool1d(s, 3, 2, 1)
F.max_pool2d(b, 2)
F.max_pool3d(c, 2)
F.avg_pool1d(s, 3, 2, 1)
F.avg_pool2d(b, 2)
F.avg_pool3d(c, 2, 1, 1)
F.adaptive_max_pool1d(s, 5)
F.adaptive_max_pool2d(b, (3, 5))
F.adaptive_max_pool3d(c, 3)
F.adaptive_avg_pool1d(s, 5)
F.adaptive_avg_pool2d(b, 3)
F.adaptive_avg_pool3d(c, 3)
F.lp_pool2d(b, 2, 2)
F.max_unpool2d(*F.max_pool2d(b, 2, return_indices=True), 2)
F.pixel_shuffle(b.reshape(2, 12, 4, 4), 2)
F.pixel_unshuffle(b, 2)
F.channel_shuffle(b.reshape(2, 6, 4, 8), 3)
F.unfold(b, 3)
F.fold(F.unfold(b, 3), (8, 8), 3)
x.unfold(1, 3, 2)
F.grid_sample(b, g, align_corners=False)
F.grid_sample(b, g, mode="nearest", padding_mode="border", align_corners=True)
F.grid_sample(b, g, mode="bicubic", padding_mode="reflection", align_corners=False)
F.affine_grid(x[:2].reshape(2, 2, 3), (2, 1, 4, 5), align_corners=False)
torch.cdist(x, w)
torch.cdist(x, w, p=1.0)
torch.pdist(x)
F.pairwise_distance(x, y)
F.cosine_similarity(x, y)
torch.diag(v)
torch.diag(m)
torch.diag_embed(x)
torch.diagonal(m, 1)
torch.complex(x, y).abs()
torch.polar(y, x).real
torch.angle(torch.complex(x, y))
torch.view_as_real(torch.complex(x, y).conj())
torch.digamma(y)
torch.lgamma(y)
torch.erfinv(torch.tanh(x))
torch.logaddexp(x, y)
torch.logaddexp2(x, y)
torch.xlogy(x, y)
torch.special.xlog1py(x, y)
torch.special.entr(y)
torch.hypot(x, y)
torch.atan2(x, y)
torch.bucketize(x, torch.sort(v)[0])
torch.searchsorted(torch.sort(v)[0], x)
torch.unique_consecutive(i)
torch.unique(i)
torch.unique(i, dim=0)
torch.histc(x, 5, -2, 2)
torch.bincount(i.reshape(-1))
i << 2
i >> 1
torch.bitwise_right_shift(i, 1)
torch.lcm(i, i + 2)
torch.gcd(i, i + 2)
torch.isin(i, torch.tensor([1, 3], device=i.device))
torch.linalg.qr(m)[1].abs()
torch.linalg.svdvals(m)
torch.linalg.inv(m)
torch.inverse(m)
torch.linalg.slogdet(m)[1]
torch.linalg.det(m)
torch.logdet(m @ m.T)
torch.linalg.solve(m, w[:1, :5].T)
torch.linalg.solve_triangular(torch.triu(m), w[:1, :5].T, upper=True)
torch.linalg.matrix_norm(m)
torch.linalg.vector_norm(x, 3)
torch.linalg.norm(m, "nuc")
torch.linalg.matrix_exp(m / 9)
torch.linalg.matrix_power(m, 3)
torch.linalg.cross(x[:, :3], y[:, :3])
torch.nanmedian(x)
torch.median(x, 1)[0]
torch.quantile(x, 0.3)
torch.kthvalue(x, 2)[0]
torch.cumprod(y, 1)
torch.cummax(x, 1)[0]
torch.logcumsumexp(x, 1)
torch.std_mean(x, 1)[0]
torch.var(x, 1)
torch.renorm(x, 2, 0, 1.0)
torch.index_reduce(x, 0, t % 4, y, "amax")
x.scatter_reduce(1, i, y, "amin")
x.masked_scatter(x > 0, y)
torch.index_fill(x, 0, t % 4, 2.0)
x.index_add(0, t % 4, y)
torch.take_along_dim(x, i, 1)
torch.repeat_interleave(x, 2, dim=0)
torch.einsum("ab,cb->ac", x, w)
torch.tensordot(x, w, dims=([1], [1]))
torch.kron(m, m[:2, :2])
torch.roll(x, 1, 1)
torch.rot90(x)
torch.tril(m)
torch.block_diag(m, x)
torch.cartesian_prod(v, v)
torch.combinations(v)
torch.trapezoid(x, dim=1)
torch.vander(v)
torch.cov(x)
torch.corrcoef(x)
torch.hann_window(8, device=x.device) * s[..., :8]
torch.logspace(0, 1, 6, device=x.device) * x
torch.tril_indices(3, 4, device=x.device)
torch.vdot(v, v + 1)
F.embedding(t % 4, x, max_norm=1.0)
F.instance_norm(b)
F.group_norm(b.reshape(2, 6, 4, 8), 3)
F.local_response_norm(b, 2)
F.conv_transpose2d(b, torch.ones(3, 2, 3, 3, device=b.device))
F.multi_head_attention_forward(x.unsqueeze(1), x.unsqueeze(1), x.unsqueeze(1), 6, 2, torch.cat([w.T @ w] * 3), None, None, None, False, 0.0, w.T @ w, None)[0]
torch.fft.rfft(s).abs()
torch.fft.fft2(b).real
torch.stft(s[0], 8, window=torch.hann_window(8, device=s.device), return_complex=True).abs()
torch.linalg.eigvalsh(m @ m.T)
torch.linalg.cholesky(m @ m.T)
torch.special.i0(x)
torch.polygamma(1, y)
torch.mode(i, 1)[0]
""".strip().splitlines()
MOST_FALLBACKS = {
    12: LINES,
    20: MORE,
}  # of the second, those of linear algebra, Fourier transforms and special functions, for which aclnn has nothing


def arguments(device: str) -> dict[str, Any]:
    numbers = np.random.default_rng(7)

    def tensor(*shape: int) -> Any:
        return torch.tensor(numbers.normal(size=shape).astype(np.float32)).to(device).requires_grad_()

    given = {
        "x": tensor(4, 6),
        "v": tensor(6),
        "w": tensor(3, 6),
        "b": tensor(2, 3, 8, 8),
        "s": tensor(2, 3, 16),
        "c": tensor(1, 2, 4, 6, 6),
    }
    given["y"] = (tensor(4, 6).detach().abs() + 0.3).requires_grad_()
    given["m"] = (tensor(5, 5).detach() + 3 * torch.eye(5, device=device)).requires_grad_()
    given["g"] = (tensor(2, 5, 5, 2).detach().clamp(-1.2, 1.2)).requires_grad_()
    given["i"] = torch.tensor(numbers.integers(1, 6, (4, 6))).to(device)
    given["t"] = torch.tensor([0, 2, 5, 1]).to(device)
    return given


def outcome(line: str, device: str) -> tuple[str, list[np.ndarray]]:
    """How it ran on an NPU, and the results with the gradients of whatever the line reads."""
    given = arguments(device)
    weights = torch.linspace(0.5, 1.5, 4096).to(device)
    with watched() as notes:
        made = eval(line, {"torch": torch, "F": torch.nn.functional}, given)
        made = [made] if isinstance(made, torch.Tensor) else list(made)
        floating = [t for t in made if t.requires_grad]
        torch.autograd.backward(floating, [weights[: t.numel()].reshape(t.shape) for t in floating])
    gradients = [given[name].grad for name in sorted(given) if given[name].grad is not None]
    assert all(t.device.type == device for t in [*made, *gradients]), "a result or a gradient is elsewhere"
    worst = next((word for word in ("fallback", "composed") if word in notes), "aclnn")
    return worst, [t.detach().cpu().numpy() for t in [*made, *gradients]]


@contextmanager
def watched() -> Iterator[list[str]]:
    """Notes how the operators inside ran: `aclnn`, `composed` where a kernel calls other operators, `fallback`."""
    notes: list[str] = []
    execute, depth = run._execute, 0

    def noted(*args: Any) -> None:
        nonlocal depth
        if depth:
            notes.append("composed")
        before = sum(found["calls"] for found in fallback.counts().values())
        depth += 1
        try:
            execute(*args)
        finally:
            depth -= 1
        notes.append("fallback" if sum(found["calls"] for found in fallback.counts().values()) > before else "aclnn")

    run._execute = noted
    try:
        yield notes
    finally:
        run._execute = execute


HOW: dict[str, str] = {}


def on_npu(line: str) -> list[np.ndarray]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        HOW[line], found = outcome(line, "npu")
    return found


@pytest.mark.parametrize("line", [*LINES, *MORE])
def test_as_on_the_cpu(line: str) -> None:
    expected, found = outcome(line, "cpu")[1], on_npu(line)
    print(f"{HOW[line]:9} {line}")
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("most", MOST_FALLBACKS)
def test_few_run_by_the_cpu(most: int) -> None:
    lines = MOST_FALLBACKS[most]
    for line in lines:
        if line not in HOW:
            on_npu(line)
    by_the_cpu = [line for line in lines if HOW[line] == "fallback"]
    assert len(lines) >= 100
    assert len(by_the_cpu) <= most, by_the_cpu


if __name__ == "__main__":
    for each in LINES:
        on_npu(each)
        print(f"{HOW[each]:9} {each}")
    print(dict(Counter(HOW.values())))
