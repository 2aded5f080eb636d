"""Lists of one size, and pooling without samples or elements. Shapes and sentences are PyTorch's."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional as F

_IMAGE = torch.zeros(1, 2, 6, 6)
_VOLUME = torch.zeros(1, 2, 6, 6, 6)
_N = torch.ops.aten


@pytest.mark.parametrize(
    ("call", "shape"),
    [
        (lambda: F.max_pool2d(_IMAGE, (2,)), (1, 2, 3, 3)),
        (lambda: F.max_pool3d(_VOLUME, [2], (2,), (1,)), (1, 2, 4, 4, 4)),
        (lambda: F.avg_pool2d(_IMAGE, [2], (3,)), (1, 2, 2, 2)),
        (lambda: torch.conv2d(_IMAGE, torch.zeros(2, 2, 3, 3), None, (1,), (1,), (1,)), (1, 2, 6, 6)),
        (lambda: torch.conv_transpose2d(_IMAGE, torch.zeros(2, 2, 3, 3), None, [2], [1], [1]), (1, 2, 12, 12)),
    ],
)
def test_one_size_for_all_dimensions(call, shape):
    assert call().shape == shape


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: F.fractional_max_pool2d(_IMAGE, (2,), output_size=(3, 3)),
            r"fractional_max_pool2d: kernel_size must either be a single Int or tuple of Ints",
        ),
        (
            lambda: F.fractional_max_pool3d(_VOLUME, (2, 2, 2), output_size=(2,)),
            r"fractional_max_pool3d: output_size must either be a single Int or tuple of three Ints",
        ),
        (lambda: _N.adaptive_avg_pool2d(_IMAGE, (2,)), "adaptive_avg_pool2d: output_size must be 2"),
        (
            lambda: _N.adaptive_max_pool3d(_VOLUME, (2,)),
            r"adaptive_max_pool3d\(\): internal error: output_size.size\(\) must be 3",
        ),
        (
            lambda: _N.max_unpool2d(_IMAGE, torch.zeros(1, 2, 6, 6, dtype=torch.int64), (12,)),
            r"There should be exactly two elements \(height, width\) in output_size, but got 1 elements.",
        ),
        (
            lambda: _N.im2col(_IMAGE, (2,), (1, 1), (0, 0), (1, 1)),
            "It is expected kernel_size equals to 2, but got size 1",
        ),
        (
            lambda: _N.col2im(torch.zeros(1, 18, 16), (6, 6), (3, 3), (1, 1), (0, 0), (1,)),
            "It is expected stride equals to 2, but got size 1",
        ),
        (
            lambda: _N.slow_conv3d(_VOLUME, torch.zeros(2, 2, 3, 3, 3), (3,), None, (1, 1, 1), (1, 1, 1)),
            "It is expected kernel_size equals to 3, but got size 1",
        ),
        (lambda: _N.upsample_bilinear2d(_IMAGE, (2,), False), "It is expected output_size equals to 2, but got size 1"),
        (lambda: _N.reflection_pad2d(_IMAGE, (1,)), "padding size is expected to be 4, but got: 1"),
    ],
)
def test_one_size_where_all_are_asked_for(call, words):
    with pytest.raises(RuntimeError, match=words):
        call()


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_gradients_without_samples(ndim):
    x = torch.zeros(0, 3, *[4] * ndim, requires_grad=True)
    adaptive, _ = getattr(F, f"adaptive_max_pool{ndim}d")(x, 2, return_indices=True)
    values, places = getattr(F, f"max_pool{ndim}d")(x, 2, return_indices=True)
    back = getattr(F, f"max_unpool{ndim}d")(values, places, 2)
    (adaptive.sum() + back.sum()).backward()
    assert x.grad.shape == back.shape == x.shape


@pytest.mark.parametrize("ndim", [2, 3])
@pytest.mark.parametrize("kind", ["avg", "max"])
def test_gradients_of_results_without_elements_are_refused(ndim, kind):
    x = torch.zeros(1, 3, *[4] * ndim, requires_grad=True)
    out = getattr(F, f"adaptive_{kind}_pool{ndim}d")(x, 0)
    words = (
        r"_backward\(\): Expected grad_output to have non-zero size for non-batch dimensions, but grad_output has sizes"
    )
    with pytest.raises(RuntimeError, match=words):
        out.sum().backward()
