"""float16 and bfloat16: every call gives what float32 gives, rounded once, whatever way it takes (chunks, slabs, kernels that read half types)."""

from collections.abc import Callable

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional as F

HALVES = (torch.bfloat16, torch.float16)


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def agree(function: Callable, *args: torch.Tensor, exact: bool = True) -> None:
    for kind in HALVES:
        given = [x.to(kind) for x in args]
        wanted = function(*[x.float() for x in given])
        wanted = wanted.to(kind) if wanted.is_floating_point() else wanted
        for _ in range(3):  # the second call is planned
            result = function(*given)
        assert (result.dtype, result.shape, result.stride()) == (wanted.dtype, wanted.shape, wanted.stride())
        a, b = result.double().numpy(), wanted.double().numpy()
        if exact:
            np.testing.assert_array_equal(a, b)
        else:
            near = 1e-2 if kind is torch.bfloat16 else 2e-3
            np.testing.assert_allclose(a, b, rtol=near, atol=near * max(1, np.abs(b[np.isfinite(b)]).max(initial=0)))


POINTWISE = {
    "same array twice": lambda a, b: a + a,
    "two arrays": lambda a, b: a * b,
    "factor": lambda a, b: torch.add(a, b, alpha=3),
    "number": lambda a, b: a * 2.5,
    "0-dim": lambda a, b: a + b[0, 0],
    "row": lambda a, b: a + b[0],
    "column": lambda a, b: a * b[:, :1],
    "outer": lambda a, b: a[:, 0].reshape(-1, 1) * b[0],
    "transposed": lambda a, b: a.t() + b.t(),
    "mixed layouts": lambda a, b: a.t().contiguous().t() * b,
    "steps": lambda a, b: a[::2, 1::2] + b[::2, 1::2],
    "three dimensions": lambda a, b: a.reshape(300, 7, 43) + b[0, :43],
    "comparison": lambda a, b: a < b,
    "block": lambda a, b: F.gelu(a),
    "relu": lambda a, b: a.relu(),
    "three operands": lambda a, b: torch.where(a > 0, a, b),
    "in place": lambda a, b: a.clone().add_(b),
    "out": lambda a, b: torch.mul(a, b, out=torch.empty_like(a)),
    "in Python": lambda a, b: a.digamma(),
    "clamp": lambda a, b: a.clamp(-1, 1),
}


@pytest.mark.parametrize("name", POINTWISE)
def test_pointwise(name: str) -> None:
    a, b = drawn(300, 301), drawn(300, 301, seed=1)
    a[3, 4], a[5, 6], b[7] = float("nan"), float("inf"), -0.0
    agree(POINTWISE[name], a, b)


@pytest.mark.parametrize("n", (1, 7, 64, 5000))
def test_reductions(n: int) -> None:
    x = drawn(6, n, 5)
    x[1, 0], x[2, 0, 1] = float("nan"), float("inf")
    for dim in (0, 1, 2, (0, 2), None):
        agree(lambda x, dim=dim: x.sum(dim), x, exact=False)
        agree(lambda x, dim=dim: x.amax(dim, keepdim=True) if dim is not None else x.amax(), x)
    agree(lambda x: x.permute(2, 0, 1).mean(1), x, exact=False)
    agree(lambda x: x[:, ::2, ::2].norm(dim=1), x, exact=False)
    agree(lambda x: x.var(0), x[3:], exact=False)
    agree(lambda x: x.logsumexp(2), x[3:], exact=False)
    agree(lambda x: x[:0].sum(0), x)
    agree(lambda x: x[:0].sum((1, 2)), x)


@pytest.mark.parametrize(
    "shape",
    [(1, 1), (37, 12), (5, 700), (300, 33), (3, 4096), (3, 4097), (2, 140000), (4, 7, 9), (2, 70, 100)],
    ids=str,
)
def test_rows(shape: tuple) -> None:
    x, upper, width = drawn(*shape), drawn(*shape, seed=1), shape[-1]
    weight, bias = drawn(width, seed=2), drawn(width, seed=3)
    for dim in range(-1, len(shape) - 1):
        for function in (torch.softmax, torch.log_softmax):
            agree(lambda x, dim=dim, function=function: function(x, dim), x)
            agree(lambda x, dim=dim, function=function: function(x.transpose(0, 1), dim), x)
        for name in ("_softmax_backward_data", "_log_softmax_backward_data"):
            back, made = getattr(torch, name), torch.softmax(x, dim)
            agree(lambda g, y, dim=dim, back=back: back(g, y, dim, g.dtype), upper, made)
    agree(lambda x, weight, bias: F.layer_norm(x, (width,), weight, bias), x, weight, bias)
    agree(lambda x: F.layer_norm(x, shape[1:], eps=0.1), x)
    agree(lambda x, weight: F.rms_norm(x, (width,), weight, eps=1e-3), x, weight)
    agree(lambda x: F.rms_norm(x.transpose(0, 1), (x.transpose(0, 1).shape[-1],), eps=1e-3), x)
    agree(lambda x: F.layer_norm(x[:0], (width,)), x)
    for kind in HALVES:  # parameters of another type than the rows
        made = F.layer_norm(x.to(kind), (width,), weight, bias) if kind is torch.bfloat16 else None
        assert made is None or torch.equal(made, F.layer_norm(x.to(kind).float(), (width,), weight, bias).to(kind))
    x[0, 0], x[-1, -1] = float("nan"), float("inf")
    agree(lambda x: torch.softmax(x, -1), x)


@pytest.mark.usefixtures("vectors")
@pytest.mark.parametrize(
    "shape", [(4, 5, 3, 3), (2, 3, 50, 51), (6, 300), (3, 3000), (2, 5, 2048), (1, 2, 2049), (0, 3, 4)], ids=str
)
def test_channels_by_running_statistics(shape: tuple) -> None:
    weight, bias, mean, variance = (drawn(shape[1], seed=seed) for seed in range(1, 5))
    x, variance = drawn(*shape), variance.abs() + 0.1
    agree(lambda x, *of: F.batch_norm(x, of[2], of[3], of[0], of[1]), x, weight, bias, mean, variance)
    agree(lambda x, *of: F.batch_norm(x, of[2], of[3], of[0]), x, weight, bias, mean, variance)
    agree(lambda x, *of: F.batch_norm(x, of[0], of[1]), x, mean, variance)
    if shape[0]:
        few = [v[:1].repeat(shape[0]) for v in (mean, variance)]
        agree(lambda x, *of: F.batch_norm(x.transpose(0, 1), of[0], of[1], of[1]), x, *few)
    for kind in HALVES:
        of = [v.to(kind) for v in (weight, bias, mean, variance)]
        made = [torch.native_batch_norm(x.to(kind), *of, False, 0.1, 1e-5) for _ in range(3)][-1]
        assert [t.dtype for t in made] == [kind] * 3 and made[1].shape == made[2].shape == (0,)


@pytest.mark.parametrize("dim", [0, 1])
def test_sums_by_index(dim: int) -> None:
    x, source, index = (
        drawn(40, 50),
        drawn(40, 50, seed=1),
        torch.from_numpy(np.random.default_rng(2).integers(0, 40, (40, 50))),
    )
    rows = index[0, : x.shape[dim]]
    agree(lambda x, source: x.index_add(dim, rows, source), x, source)
    agree(lambda x, source: x.t().index_add(1 - dim, rows, source.t()), x, source)
    agree(lambda x, source: x.scatter_add(dim, index, source), x, source)
    agree(lambda x, source: x.scatter_reduce(dim, index, source, "amax", include_self=False), x, source)
    agree(lambda x, source: x.index_put((index[0],), source[:1], accumulate=True), x, source)
    agree(lambda x, source: x.put(index, source, accumulate=True), x, source)
    agree(lambda x: x.cummax(dim)[0], x)
    agree(lambda x: x.argmax(dim), x)
    agree(lambda x: x.topk(5, dim)[0], x)


def test_what_is_no_number_is_told_by_bits() -> None:
    bits = torch.from_numpy(np.arange(1 << 16, dtype=np.uint16).view(np.int16))
    for kind in HALVES:
        x = bits.view(kind)
        most = torch.tensor(torch.finfo(kind).max, dtype=kind)
        wanted = torch.where(x.isnan(), torch.zeros_like(x), torch.where(x.isinf(), torch.copysign(most, x), x))
        strided = torch.stack([x, x], 1)[:, 0]
        for _ in range(3):  # the second call is planned
            assert torch.equal(x.nan_to_num().view(torch.int16), wanted.view(torch.int16))
            assert torch.equal(strided.nan_to_num(), wanted) and torch.equal(x.clone().nan_to_num_(), wanted)
            assert torch.equal(torch.nan_to_num(x, out=torch.empty_like(x)), wanted)
        assert x.nan_to_num(1, 2, 3)[~x.isfinite()].unique().tolist() == [1, 2, 3]


def test_traces_and_ranges() -> None:
    for shape in ((1, 1), (3, 3), (40, 70), (70, 40), (0, 4)):
        agree(lambda x: x.trace(), drawn(*shape), exact=False)
        agree(lambda x: x.t()[::2].trace(), drawn(*shape), exact=False)
    for kind in HALVES:
        for given in ((0,), (7,), (3000,), (5, -40, -3), (-2000, 2001, 7), (1 << 24, (1 << 24) + 5)):
            made, wanted = torch.arange(*given, dtype=kind), torch.arange(*given, dtype=torch.float64).float().to(kind)
            assert made.dtype is kind and torch.equal(made, wanted)


def test_other_integers_of_two_bytes_are_cast() -> None:
    x = torch.full((2, 70), 2, dtype=torch.int16)
    for _ in range(3):  # the second call is planned
        assert x[0].prod(dtype=torch.float32).item() == 2.0**70
        assert x.prod(1, dtype=torch.float32).tolist() == [2.0**70] * 2


@pytest.mark.parametrize("k", (1, 8, 33, 600))
def test_products(k: int) -> None:
    for m in (1, 3, 4, 8, 9):
        agree(lambda a, b, c: F.linear(a, b, c), drawn(m, k), drawn(20, k), drawn(20), exact=False)
        agree(lambda a, b: a @ b, drawn(m, k), drawn(k, 20), exact=False)
        agree(lambda a, b: a.t() @ b.t(), drawn(k, m), drawn(20, k), exact=False)
        agree(lambda a, b: a @ b.transpose(1, 2), drawn(2, 1, m, k), drawn(3, 20, k), exact=False)
    agree(lambda a, b: a @ b, drawn(40, k), drawn(k), exact=False)
    agree(lambda a, b: b @ a, drawn(k, 40), drawn(k), exact=False)
    agree(lambda a, b: a[::2] @ b, drawn(40, k), drawn(k), exact=False)
    agree(torch.dot, drawn(k), drawn(k), exact=False)
    x = drawn(4, k)
    x[1, 0] = float("nan")
    agree(F.linear, x, drawn(5, k), exact=False)
    agree(F.linear, x[:0], drawn(5, k))
    agree(F.linear, x[:, :0], drawn(5, k)[:, :0])


def test_every_half_is_converted_exactly() -> None:
    bits = np.arange(1 << 16).astype(np.uint16)
    for kind in HALVES:
        x = torch.from_numpy(bits).view(kind)
        wide = x.float()
        back = wide.to(kind)
        assert torch.equal(back[~wide.isnan()].view(torch.int16), x[~wide.isnan()].view(torch.int16))
        assert back[wide.isnan()].isnan().all()
        assert torch.equal(wide.double()[~wide.isnan()], x.double()[~wide.isnan()])


def test_rounding_is_to_even_by_way_of_float32() -> None:
    assert torch.full((40,), 1 + 2**-11 + 2**-30, dtype=torch.float64).half().tolist() == [1.0] * 40
    assert torch.full((40,), 1 + 3 * 2**-11).half().tolist() == [1 + 2**-9] * 40
    assert torch.full((40,), 1 + 2**-8).bfloat16().tolist() == [1.0] * 40
    assert torch.full((40,), 3.4e38).bfloat16().isinf().all() == torch.tensor(True)
