"""Convolutions of all kinds against a sum that is written out: blocks of patches, rows of channels, their adjoints, and their derivatives."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional as F

pytestmark = pytest.mark.usefixtures("vectors")


def plain(x: np.ndarray, weight: np.ndarray, stride: tuple, padding: tuple, dilation: tuple, groups: int) -> np.ndarray:
    """A convolution as its definition has it, in float64."""
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *[(p, p) for p in padding]])
    kernel = weight.shape[2:]
    out = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], kernel, stride, dilation, strict=True)]
    result = np.zeros((x.shape[0], weight.shape[0], *out))
    each, inputs = weight.shape[0] // groups, weight.shape[1]
    for place in itertools.product(*map(range, kernel)):
        taken = tuple(
            slice(p * d, p * d + s * (o - 1) + 1, s) for p, d, s, o in zip(place, dilation, stride, out, strict=True)
        )
        for g in range(groups):
            part = x[(slice(None), slice(g * inputs, (g + 1) * inputs), *taken)].reshape(len(x), inputs, math.prod(out))
            by = weight[(slice(g * each, (g + 1) * each), slice(None), *place)]
            result[:, g * each : (g + 1) * each] += np.einsum("oi,nip->nop", by, part).reshape(len(x), each, *out)
    return result


CASES: list[dict[str, Any]] = [
    {"x": (2, 16, 30, 20), "w": (8, 16, 3, 3), "padding": (1, 2)},
    {"x": (1, 70, 40, 41), "w": (9, 70, 3, 3), "padding": (1, 1)},  # several blocks, the last one smaller
    {"x": (2, 8, 19, 23), "w": (12, 4, 5, 2), "stride": (2, 3), "dilation": (2, 1), "padding": (3, 0), "groups": 2},
    {"x": (2, 14, 30, 45), "w": (35, 14, 3, 3), "padding": (1, 1)},  # three vectors, not all full
    {"x": (1, 40, 9, 16), "w": (48, 20, 3, 5), "padding": (0, 2), "stride": (1, 2), "dilation": (1, 2), "groups": 2},
    {"x": (2, 13, 4, 9, 16), "w": (14, 13, 2, 3, 3), "padding": (1, 1, 0)},
    {"x": (1, 24, 20, 20), "w": (24, 24, 1, 1), "stride": (1, 2)},
    {"x": (2, 64, 900), "w": (16, 64, 5), "padding": (2,)},  # rows that are taken in parts
    {"x": (3, 32, 7, 9), "w": (24, 32, 1, 1)},
    {"x": (3, 32, 7, 9), "w": (24, 32, 1, 1), "stride": (2, 2)},
    {"x": (1, 4, 6, 9, 8), "w": (10, 4, 2, 3, 3), "padding": (1, 1, 0), "stride": (1, 2, 1)},
    {"x": (2, 6, 13, 11), "w": (6, 1, 3, 3), "padding": (1, 1), "groups": 6},
    {"x": (2, 6, 13, 11), "w": (12, 1, 3, 5), "padding": (4, 2), "stride": (2, 2), "dilation": (2, 1), "groups": 6},
    {"x": (2, 6, 40), "w": (6, 1, 4), "padding": (3,), "groups": 6},
    {"x": (1, 4, 30, 30), "w": (4, 1, 8, 8), "stride": (8, 8), "groups": 4},
    {"x": (2, 3, 5, 6, 7), "w": (3, 1, 3, 2, 3), "padding": (1, 0, 2), "groups": 3},
]


@pytest.mark.parametrize("kind", (torch.float32, torch.float64, torch.bfloat16))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_convolution_and_its_derivatives(case: dict[str, Any], kind: torch.dtype) -> None:
    dims = len(case["x"]) - 2
    stride, padding, dilation = (case.get(k, (d,) * dims) for k, d in (("stride", 1), ("padding", 0), ("dilation", 1)))
    groups = case.get("groups", 1)
    draw = np.random.default_rng(0)
    x = torch.from_numpy(draw.standard_normal(case["x"])).to(kind).requires_grad_()
    weight = torch.from_numpy(draw.standard_normal(case["w"])).to(kind).requires_grad_()
    shift = torch.from_numpy(draw.standard_normal(case["w"][0])).to(kind).requires_grad_()
    near = {torch.float32: 1e-5, torch.float64: 1e-13, torch.bfloat16: 2e-2}[kind]
    run = getattr(F, f"conv{dims}d")
    wanted = plain(x.detach().double().numpy(), weight.detach().double().numpy(), stride, padding, dilation, groups)
    grad = torch.from_numpy(draw.standard_normal(wanted.shape)).to(kind)
    wide = grad.double().numpy()
    for _ in range(2):
        x.grad = weight.grad = shift.grad = None
        out = run(x, weight, shift, stride, padding, dilation, groups)
        out.backward(grad)

    def close(found: torch.Tensor, exact: np.ndarray) -> None:
        np.testing.assert_allclose(
            found.detach().double().numpy(), exact, rtol=near, atol=near * max(1, np.abs(exact).max())
        )

    close(out, wanted + shift.detach().double().numpy().reshape(-1, *[1] * dims))
    close(shift.grad, wide.sum((0, *range(2, dims + 2))))
    # The derivatives are adjoints: <grad, conv(u, w)> is <grad_x, u>, and <grad, conv(x, u)> is <grad_w, u>, whatever u is.
    for leaf in (x, weight):
        other = draw.standard_normal(tuple(leaf.shape))
        pair = (other, weight.detach().double().numpy()) if leaf is x else (x.detach().double().numpy(), other)
        one = float((wide * plain(*pair, stride, padding, dilation, groups)).sum())
        two = float((leaf.grad.double().numpy() * other).sum())
        assert math.isclose(one, two, rel_tol=0, abs_tol=near * np.abs(wide).sum())
    # A transposed convolution is the gradient of the input, where all of it is seen.
    if kind is not torch.bfloat16:
        seen = [
            (o - 1) * s - 2 * p + d * (k - 1) + 1
            for o, s, p, d, k in zip(out.shape[2:], stride, padding, dilation, weight.shape[2:], strict=True)
        ]
        more = [n - s for n, s in zip(x.shape[2:], seen, strict=True)]
        back = getattr(F, f"conv_transpose{dims}d")(grad, weight, None, stride, padding, more, groups, dilation)
        close(back, x.grad.double().numpy())


@pytest.mark.parametrize("case", CASES[:8:3], ids=str)
def test_layouts_of_the_operands_do_not_matter(case: dict[str, Any]) -> None:
    draw = np.random.default_rng(1)
    x, weight = (torch.from_numpy(draw.standard_normal(case[k]).astype(np.float32)) for k in "xw")
    options = {k: case[k] for k in ("stride", "padding", "dilation", "groups") if k in case}
    run = getattr(F, f"conv{x.dim() - 2}d")
    wanted = run(x, weight, **options)
    turned = x.transpose(0, -1).contiguous().transpose(0, -1)
    assert torch.allclose(
        run(turned, weight.transpose(0, 1).contiguous().transpose(0, 1), **options), wanted, atol=1e-4
    )
    assert torch.allclose(run(x[0], weight, **options), wanted[0], atol=1e-4)
    assert run(x[:0], weight, **options).shape == (0, *wanted.shape[1:])


def test_what_is_not_finite_stays_where_it_is() -> None:
    x = torch.zeros(1, 6, 9, 9)
    x[0, 2, 4, 4] = float("nan")
    out = F.conv2d(x, torch.ones(6, 1, 3, 3), padding=1, groups=6)
    assert out.isnan().sum() == 9 and out[0, 2, 3:6, 3:6].isnan().all()
