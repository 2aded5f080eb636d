"""More operators as people write them, beside those of test_one_liners.py: as there, values and gradients as on the CPU, and few by the CPU."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from test_one_liners import outcome

LINES = """
F.one_hot(t)
F.elu(x)
F.selu(x)
F.silu(x)
F.leaky_relu(x, 0.1)
F.hardsigmoid(x)
F.hardtanh(x, -0.5, 0.5)
F.softsign(x)
F.softmin(x, 1)
F.log_softmax(x, 0)
F.layer_norm(x, (6,), v, v)
F.batch_norm(b, None, None, training=True)
F.batch_norm(x, None, None, v, v, training=True)
F.rms_norm(x, (6,), v)
F.linear(x, w)
F.bilinear(x, y, torch.ones(2, 6, 6, device=x.device))
F.conv1d(s, torch.ones(4, 3, 3, device=s.device))
F.conv2d(b, torch.ones(4, 3, 3, 3, device=b.device), padding=1, stride=2)
F.conv2d(b.reshape(2, 6, 4, 8), torch.ones(6, 1, 3, 3, device=b.device), groups=6)
F.conv3d(c, torch.ones(2, 2, 3, 3, 3, device=c.device))
F.conv_transpose1d(s, torch.ones(3, 2, 3, device=s.device), stride=2)
F.conv2d(b, torch.ones(4, 3, 3, 3, device=b.device), padding="same", dilation=2)
F.avg_pool2d(b, 3, 2, 1, count_include_pad=False)
F.max_pool2d(b, 3, 2, 1, ceil_mode=True)
F.lp_pool1d(s, 3, 2)
F.cross_entropy(x, t, label_smoothing=0.1)
F.cross_entropy(x, F.softmax(y, 1))
F.cross_entropy(x, t, weight=v.detach().abs(), reduction="sum")
F.nll_loss(F.log_softmax(x, 1), t)
F.binary_cross_entropy(torch.sigmoid(x), torch.sigmoid(y))
F.hinge_embedding_loss(x, torch.sign(y - 1))
F.multilabel_soft_margin_loss(x, torch.sigmoid(y))
F.multi_margin_loss(x, t)
F.multilabel_margin_loss(x, (i % 6))
F.ctc_loss(F.log_softmax(s.permute(2, 0, 1), 2), torch.tensor([[1, 2], [2, 1]], device=s.device), torch.tensor([16, 16]), torch.tensor([2, 2]))
F.triplet_margin_with_distance_loss(x, y, y + 1)
F.scaled_dot_product_attention(b, b, b)
F.scaled_dot_product_attention(b, b, b, is_causal=True)
torch.lstm_cell(x, (y, y), torch.ones(24, 6, device=x.device) / 9, torch.ones(24, 6, device=x.device) / 9)
torch.gru_cell(x, y, torch.ones(18, 6, device=x.device) / 9, torch.ones(18, 6, device=x.device) / 9)
torch.rnn_tanh_cell(x, y, torch.ones(6, 6, device=x.device) / 9, torch.ones(6, 6, device=x.device) / 9)
x[1:3, ::2]
x[:, t]
x[t % 4, t]
x[x > 0]
x[..., None].expand(4, 6, 2)
x[[0, 2]]
torch.where(x > 0, x, y)
torch.where(x > 0, x, 0.0)
x.gather(1, i % 6)
x.scatter(1, i, y)
x.scatter_add(1, i, y)
x.scatter(1, i, 2.0)
x.scatter_reduce(1, i, y, "mean")
x.scatter_reduce(1, i, y, "prod")
x.scatter_reduce(0, i % 4, y, "sum", include_self=False)
x.index_select(1, t)
x.index_copy(0, t % 4, y)
x.index_put((t % 4,), y, accumulate=True)
x.masked_fill(x > 0, 3.0)
x.masked_select(x > 0)
x.take(t)
x.put(t, y[:, 0])
torch.select_scatter(x, v, 0, 1)
torch.slice_scatter(x, y[:2], 0, 1, 3)
torch.diagonal_scatter(m, v[:5])
x.diff(dim=1)
x.flip(0)
x.fliplr()
torch.stack([x, y], 1)
torch.cat([x, y], 1)
torch.hstack([x, y])
torch.dstack([x, y])
torch.column_stack([x, y])
torch.chunk(x, 2, 1)
torch.split(x, [1, 3], 0)
torch.tensor_split(x, 3, 1)
torch.unbind(x)
x.tile(2, 2)
x.repeat(2, 3)
x.unflatten(1, (2, 3)).movedim(0, -1)
x.as_strided((2, 3), (6, 1))
torch.meshgrid(v, v, indexing="ij")
torch.broadcast_tensors(v, x)
x.sort(1)[0]
x.sort(0, descending=True)[0]
x.argsort(1)
x.topk(3, 1)[0]
x.max(1)[0]
x.min()
x.amax(0)
x.amin((0, 1))
torch.aminmax(x, dim=1)
x.argmax(1)
torch.maximum(x, y)
torch.fmax(x, y)
x.clamp(-0.5, 0.5)
x.clamp(min=y * 0)
x.cumsum(1)
x.cummin(1)[0]
torch.cumulative_trapezoid(x, dim=1)
x.prod(1)
x.logsumexp(1)
x.norm(dim=1)
x.norm(p=1)
x.std(0)
torch.var_mean(x, 1)
x.mean((0, 1))
x.nanmean()
x.nansum(1)
x.median(1)[0]
torch.quantile(x, torch.tensor([0.1, 0.5], device=x.device), dim=1)
torch.nanquantile(x, 0.5, dim=1)
x.count_nonzero(1)
x.all(1)
(x > 0).any()
torch.histc(x.detach(), 4)
torch.bincount(t)
torch.msort(x)
torch.einsum("bchw,cd->bdhw", b, m[:3, :3])
torch.einsum("ii->i", m)
torch.einsum("bij,bjk->bik", s, s.transpose(1, 2))
torch.bmm(s, s.transpose(1, 2))
torch.baddbmm(s[..., :3], s, s.transpose(1, 2), alpha=0.5)
torch.addmm(v, x, w.T @ w)
torch.addmv(v, w.T @ w, v)
torch.addr(m, v[:5], v[:5])
torch.addbmm(m[:3, :3], s, s.transpose(1, 2))
torch.addcmul(x, x, y, value=0.5)
torch.addcdiv(x, x, y)
torch.chain_matmul(m, m, m)
torch.linalg.multi_dot([m, m, m])
torch.mv(x, v)
torch.dot(v, v)
torch.outer(v, v)
torch.inner(x, w)
torch.trace(m)
torch.matrix_exp(m / 9)
torch.linalg.pinv(m)
torch.linalg.lstsq(m, w[:1, :5].T)[0]
torch.linalg.cholesky_ex(m @ m.T)[0]
torch.cholesky_inverse(torch.linalg.cholesky(m @ m.T))
torch.cholesky_solve(w[:1, :5].T, torch.linalg.cholesky(m @ m.T))
torch.linalg.lu(m)[2]
torch.linalg.eigh(m @ m.T)[0]
torch.linalg.cond(m)
torch.linalg.matrix_rank(m)
torch.linalg.tensorinv(m.reshape(5, 5), ind=1)
torch.linalg.householder_product(m, v[:5])
torch.linalg.vecdot(x, y)
torch.linalg.norm(x, dim=1)
torch.triu(m, 1)
torch.lerp(x, y, 0.3)
torch.lerp(x, y, torch.sigmoid(x))
torch.fmod(x, y)
torch.remainder(x, y)
torch.div(x, y, rounding_mode="trunc")
x ** 2 + y ** 0.5
torch.pow(y, x)
torch.pow(2.0, x)
torch.float_power(y, 2)
torch.exp2(x) + torch.expm1(x)
torch.log1p(y) + torch.log2(y) + torch.log10(y)
torch.rsqrt(y) + torch.sqrt(y) + y.reciprocal()
torch.sinh(x) + torch.cosh(x) + torch.asinh(x)
torch.atanh(torch.tanh(x)) + torch.acosh(y + 1)
torch.asin(torch.tanh(x)) + torch.acos(torch.tanh(x))
torch.sinc(x)
torch.erf(x) + torch.erfc(x)
torch.special.erfcx(x)
torch.special.ndtri(torch.sigmoid(x))
torch.special.log_ndtr(x)
torch.special.i1(x)
torch.mvlgamma(y + 2, 2)
torch.frac(x) + torch.trunc(x) + torch.round(x, decimals=1)
torch.copysign(x, y)
torch.nextafter(x, y)
torch.ldexp(x, i)
torch.frexp(x)[0]
torch.deg2rad(x) + torch.rad2deg(x)
torch.nan_to_num(x / (x > 0))
torch.isclose(x, x + 1e-9)
torch.signbit(x)
torch.logical_xor(x > 0, y > 1)
torch.bitwise_xor(i, i + 1)
~i
torch.complex(x, y).exp().real
torch.view_as_complex(torch.stack([x, y], -1)).conj().imag
torch.fft.ifft(torch.fft.fft(s)).real
torch.fft.irfft(torch.fft.rfft(s))
torch.fft.fftshift(x)
torch.istft(torch.stft(s[0], 8, window=torch.ones(8, device=s.device), return_complex=True), 8, window=torch.ones(8, device=s.device))
F.pad(x, (1, -1), mode="constant")
F.pad(b, (0, 0, 1, 1, 1, 0))
F.dropout(x, 0.0)
F.alpha_dropout(x, 0.0)
torch.bucketize(x.detach(), torch.tensor([0.0, 1.0], device=x.device))
torch.searchsorted(torch.tensor([0.0, 1.0], device=x.device), x.detach(), right=True)
torch._foreach_add([x, y], 1.0)
torch._foreach_mul([x, y], [y, x])
torch._foreach_norm([x, y])
torch._foreach_sqrt([y, y + 1])
torch._foreach_addcmul([x], [x], [y], 0.5)
torch._foreach_lerp([x], [y], 0.5)
torch._foreach_exp([x, y])
torch._foreach_maximum([x], [y])
torch._foreach_pow([y], 2.0)
torch.segment_reduce(x, "sum", lengths=torch.tensor([1, 3], device=x.device))
torch.unravel_index(t, (2, 3))
torch.triu_indices(3, 4, device=x.device)
torch.nonzero(x > 0)
torch.argwhere(x > 0)
torch.bernoulli(torch.ones(3, device=x.device)) * v[:3]
torch.multinomial(torch.tensor([0.0, 1.0], device=x.device), 1)
torch.full_like(x, 2) * x
torch.eye(5, device=x.device) * m
torch.linspace(0, 1, 6, device=x.device) * x
torch.arange(6, device=x.device) * x
x.to(torch.float16).float()
x.bfloat16().float()
x.double().sum().float()
x.int()
x.view(torch.int32)
x.contiguous().t().reshape(-1)
torch.ormqr(m, v[:5], m)
torch.lu_solve(w[:1, :5].T, *torch.linalg.lu_factor(m))
F.embedding_bag(t % 4, x, torch.tensor([0, 2], device=x.device))
F.embedding_bag(t % 4, x, torch.tensor([0, 2, 4], device=x.device), include_last_offset=True)
F.embedding_bag(t.int() % 4, x, torch.tensor([0, 0, 3], device=x.device, dtype=torch.int32), mode="sum")
F.embedding_bag(i % 4, x, mode="sum", per_sample_weights=y)
F.embedding_bag(i % 4, x.detach(), mode="sum") * v
F.embedding_bag(i % 4, x.detach(), mode="mean") * v
torch.mode(x, 1)[0]
torch.mode(i, 1)
torch.mode(i % 3, 0, True)
torch.mode(i.int() % 2, 1)
""".strip().splitlines()
MOST_FALLBACKS = 20  # of linear algebra, Fourier transforms and special functions, for which aclnn has nothing
HOW: dict[str, str] = {}


def on_npu(line: str) -> list[np.ndarray]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        HOW[line], found = outcome(line, "npu")
    return found


@pytest.mark.parametrize("line", LINES)
def test_as_on_the_cpu(line: str) -> None:
    expected, found = outcome(line, "cpu")[1], on_npu(line)
    print(f"{HOW[line]:9} {line}")
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4)


def test_few_run_by_the_cpu() -> None:
    for line in LINES:
        if line not in HOW:
            on_npu(line)
    by_the_cpu = [line for line in LINES if HOW[line] == "fallback"]
    assert len(by_the_cpu) <= MOST_FALLBACKS, by_the_cpu
