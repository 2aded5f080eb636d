"""Sampling images at given places: grids, resizing without aliasing, unpooling. Expected values are PyTorch's; C is compared with numpy."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from _native_outcomes import assert_close, needs_extension

import mindtorch_v2 as torch
from mindtorch_v2._backends.cpu.ops import grid as kernels
from mindtorch_v2.func import vmap
from mindtorch_v2.nn import functional as F

_GRID = [[-1.0, -1.0], [-0.4, 0.3], [0.9, 0.95], [1.3, -1.2], [0.0, 0.0]]
_SAMPLES = {
    ("bilinear", "zeros", False): [0.0, 6.5, 4.4275, 0.0, 5.5],
    ("bilinear", "zeros", True): [0.0, 6.1, 10.65, 1.32, 5.5],
    ("bilinear", "border", False): [0.0, 6.5, 11.0, 3.0, 5.5],
    ("bilinear", "reflection", False): [0.0, 6.5, 11.0, 2.9, 5.5],
    ("bilinear", "reflection", True): [0.0, 6.1, 10.65, 3.35, 5.5],
    ("nearest", "zeros", False): [0.0, 5.0, 11.0, 0.0, 6.0],
    ("nearest", "zeros", True): [0.0, 5.0, 11.0, 3.0, 6.0],
    ("nearest", "reflection", True): [0.0, 5.0, 11.0, 3.0, 6.0],
    ("bicubic", "zeros", False): [-0.2344, 7.8374, 5.0013, -0.0262, 5.5],
    ("bicubic", "zeros", True): [0.0, 6.8728, 12.0171, 1.2454, 5.5],
    ("bicubic", "border", False): [-0.4688, 6.7944, 11.5318, 2.904, 5.5],
    ("bicubic", "border", True): [0.0, 6.4142, 10.7365, 2.7181, 5.5],
    ("bicubic", "reflection", False): [-0.9375, 6.7944, 11.8906, 2.4447, 5.5],
    ("bicubic", "reflection", True): [0.0, 6.5965, 10.9532, 2.9658, 5.5],
}


@pytest.mark.parametrize(("mode", "padding", "corners"), _SAMPLES)
def test_samples(mode: str, padding: str, corners: bool) -> None:
    x = torch.arange(12.0).reshape(1, 1, 3, 4)
    grid = torch.tensor(_GRID).reshape(1, 1, 5, 2)
    found = F.grid_sample(x, grid, mode, padding, corners)
    assert found.flatten().tolist() == pytest.approx(_SAMPLES[mode, padding, corners], abs=1e-4)


def test_places_that_are_no_numbers() -> None:
    nan, inf = float("nan"), float("inf")
    x = torch.arange(1.0, 13.0).reshape(1, 1, 3, 4)
    grid = torch.tensor([[nan, 0.0], [0.0, nan], [inf, 0.0], [-inf, 0.0]]).reshape(1, 1, 4, 2)
    assert torch.isnan(F.grid_sample(x, grid, align_corners=False)).all()
    assert F.grid_sample(x, grid, "nearest", align_corners=False).flatten().tolist() == [0.0] * 4
    border = F.grid_sample(x, grid, padding_mode="border", align_corners=False)
    assert border.flatten().tolist() == [5.0, 2.5, 8.0, 5.0]
    volume = torch.cat([grid, torch.zeros(1, 1, 4, 1)], -1).unsqueeze(1)
    of_volume = F.grid_sample(x.unsqueeze(2), volume, padding_mode="border", align_corners=False)
    assert of_volume.flatten().tolist() == [8.0, 10.5, 8.0, 5.0]
    assert F.grid_sample(x.unsqueeze(2), volume, align_corners=False).flatten().tolist() == [0.0] * 4


def test_gradients_of_samples() -> None:
    x = torch.arange(12.0).reshape(1, 1, 3, 4).requires_grad_()
    grid = torch.tensor(_GRID[1:3]).reshape(1, 1, 2, 2).requires_grad_()
    F.grid_sample(x, grid, align_corners=True).sum().backward()
    assert x.grad is not None and grid.grad is not None
    assert x.grad.flatten().tolist() == pytest.approx(
        [0, 0, 0, 0, 0.07, 0.63, 0.0075, 0.0425, 0.03, 0.27, 0.1425, 0.8075], abs=1e-5
    )
    assert grid.grad.flatten().tolist() == pytest.approx([1.5, 4.0, 1.5, 4.0], abs=1e-4)


def test_refusals() -> None:
    x, grid = torch.ones(1, 2, 3, 4), torch.zeros(1, 2, 2, 2)
    with pytest.raises(RuntimeError, match="expected grid to have size 2 in last dimension"):
        torch.grid_sampler(x, torch.zeros(1, 2, 2, 3), 0, 0, False)
    with pytest.raises(RuntimeError, match="bicubic interpolation only supports 4D input"):
        F.grid_sample(x.unsqueeze(2), torch.zeros(1, 1, 2, 2, 3), "bicubic", align_corners=False)
    with pytest.raises(RuntimeError, match="expected scalar type Float but found Double"):
        torch.grid_sampler(x, grid.double(), 0, 0, False)
    indices = torch.tensor([[[[12]]]])
    with pytest.raises(RuntimeError, match=r"Found an invalid max index: 12 \(output volumes are of size 3x4\)"):
        torch.ops.aten.max_unpool2d(torch.ones(1, 1, 1, 1), indices, [3, 4]).tolist()


def test_batches_of_examples() -> None:
    x, grid = torch.rand(3, 1, 2, 3, 4), torch.rand(3, 1, 2, 2, 2)

    def sample(x: Any, grid: Any) -> Any:
        return F.grid_sample(x, grid, align_corners=False)

    assert torch.equal(vmap(sample)(x, grid), torch.stack([sample(a, b) for a, b in zip(x, grid)]))


def test_affine_grids() -> None:
    theta = torch.tensor([[[1.0, 0.5, 0.0], [0.0, 2.0, -0.25]]])
    inner = F.affine_grid(theta, [1, 1, 2, 3], False)
    assert inner.flatten().tolist() == pytest.approx(
        [-0.91667, -1.25, -0.25, -1.25, 0.41667, -1.25, -0.41667, 0.75, 0.25, 0.75, 0.91667, 0.75], abs=1e-4
    )
    outer = F.affine_grid(theta, [1, 1, 2, 3], True)
    assert outer.flatten().tolist() == [-1.5, -2.25, -0.5, -2.25, 0.5, -2.25, -0.5, 1.75, 0.5, 1.75, 1.5, 1.75]


def test_resizing_without_aliasing() -> None:
    x = torch.arange(42.0).reshape(1, 1, 6, 7) ** 1.5
    expected = {
        "bilinear": [35.65406, 45.50201, 56.49283, 144.55588, 161.50949, 179.05994],
        "bicubic": [29.80597, 39.84328, 51.28577, 148.30263, 166.7213, 185.80588],
        "lanczos": [26.04615, 36.14685, 47.81929, 150.12021, 169.36253, 189.29799],
    }
    for mode, values in expected.items():
        found = F.interpolate(x, size=(2, 3), mode=mode, antialias=True)
        assert found.flatten().tolist() == pytest.approx(values, rel=1e-5)
    whole = (x % 256).to(torch.uint8)
    assert F.interpolate(whole, size=(2, 3), mode="bilinear", antialias=True).flatten().tolist() == [
        36,
        45,
        56,
        145,
        161,
        156,
    ]
    assert F.interpolate(whole, size=(2, 3), mode="bicubic", antialias=True).flatten().tolist() == [
        30,
        39,
        53,
        148,
        168,
        158,
    ]


@pytest.mark.parametrize(
    "shape, size, options, expected",
    [
        ((2, 3, 9, 7), (20, 30), {}, (3913639861708, 3913639861708)),
        ((1, 9, 9, 7), (33, 11), {}, (3550316267042, 3550316267042)),
        ((1, 17, 5, 6), (5, 13), {}, (1198737527245, 1198737527245)),
        ((1, 4, 9, 7), (64, 65), {}, (18078957760525, 18078957760502)),
        ((1, 4, 9, 7), (64, 65), {"align_corners": True}, (18101752282109, 18101752281898)),
    ],
)
def test_bilinear_resizing_rounds_as_pytorch_does(shape, size, options, expected) -> None:
    """The sums of the bits, as PyTorch 2.13 gave them: images that are rounded to bytes afterwards differ by one elsewhere."""
    x = (torch.arange(math.prod(shape), dtype=torch.int32) * 37 % 101).float().div(7).reshape(shape)
    for layout, bits in zip((torch.contiguous_format, torch.channels_last), expected, strict=True):
        y = F.interpolate(x.contiguous(memory_format=layout), size, mode="bilinear", **options)
        assert y.contiguous().view(torch.int32).long().sum().item() == bits


def test_unpooling_is_the_way_back() -> None:
    for n in (1, 2, 3):
        x = torch.rand(2, 3, *[4, 6, 4][:n])
        pool = getattr(torch.nn, f"MaxPool{n}d")(2, return_indices=True)
        unpool = getattr(torch.nn, f"MaxUnpool{n}d")(2)
        values, indices = pool(x)
        back = unpool(values, indices)
        assert back.shape == x.shape
        again, places = pool(back)
        assert torch.equal(again, values) and torch.equal(places, indices)
        assert back.count_nonzero() == values.numel()


@needs_extension
@pytest.mark.parametrize("dims", [2, 3])
def test_c_as_numpy(dims: int) -> None:
    generator = np.random.default_rng(3)
    forward: Any = getattr(kernels, f"grid_sampler_{dims}d")
    backward: Any = getattr(kernels, f"grid_sampler_{dims}d_backward")
    modes = itertools.product(range(3 if dims == 2 else 2), range(3), (False, True), (np.float32, np.float64))
    for mode, padding, corners, dtype in modes:
        for sizes, out in (((5, 4, 3)[:dims], (7, 11, 2)[:dims]), ((1, 2, 1)[:dims], (3, 3, 3)[:dims])):
            x = generator.normal(size=(2, *sizes, 3)).astype(dtype)
            strided = np.moveaxis(x, -1, 1)
            grid = (generator.random((2, *out, dims)) * 3 - 1.5).astype(dtype)
            grid[0].flat[:4] = np.nan, np.inf, 1e9, -np.inf
            what = f"{dims} {mode} {padding} {corners} {dtype.__name__} {sizes}"
            args = (mode, padding, corners)
            found = forward(strided, grid, *args)
            with np.errstate(invalid="ignore"):
                assert_close(found, forward.__wrapped__(strided, grid, *args), what, 100)
            grid[0].flat[:4] = 0.3
            grad = generator.normal(size=found.shape).astype(dtype)
            for mask in ([True, True], [False, True]):
                results = backward(grad, strided, grid, *args, mask)
                wanted = backward.__wrapped__(grad, strided, grid, *args, mask)
                for a, b in zip(results, wanted, strict=True):
                    assert (a is None) == (b is None)
                    if a is not None:
                        assert_close(a, b, what, 1000)
