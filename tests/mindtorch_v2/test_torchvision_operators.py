"""The operators that torchvision has in C++: boxes, regions, moving taps, files of images."""

from __future__ import annotations

import importlib.util

import pytest
from _fresh import python

import mindtorch_v2 as torch
from mindtorch_v2.autograd import gradcheck

vision = torch.ops.torchvision
IMAGE = torch.arange(2 * 4 * 6 * 7, dtype=torch.float64).reshape(2, 4, 6, 7).sin()
ROIS = torch.tensor([[0, 0.5, 1.0, 4.2, 5.1], [1, 2.0, 2.0, 2.0, 2.0], [1, -3.0, 0.0, 9.0, 3.5]], dtype=torch.float64)
INSIDE = torch.tensor([[1, 1.0, 1.0, 4.0, 4.0], [0, 0.0, 2.0, 2.0, 4.0]], dtype=torch.float64)
POOLINGS = {
    "roi_align": lambda x: vision.roi_align(x, ROIS, 0.9, 2, 2, 2, True),
    "roi_align of as many samples as there are pixels": lambda x: vision.roi_align(x, ROIS, 0.9, 2, 2, -1, False),
    "roi_pool": lambda x: vision.roi_pool(x, ROIS, 0.9, 2, 2)[0],
    "ps_roi_align": lambda x: vision.ps_roi_align(x, ROIS, 0.9, 2, 2, 2)[0],
    "ps_roi_pool inside of an image": lambda x: vision.ps_roi_pool(x, INSIDE, 1.0, 2, 2)[0],
}


def test_kept_boxes():
    boxes = torch.tensor([[0.0, 0, 10, 10], [1.0, 0, 11, 10], [20.0, 20, 30, 30], [0.0, 0, 10, 9]])
    scores = torch.tensor([0.5, 0.9, 0.1, 0.7])
    assert vision.nms(boxes, scores, 0.5).tolist() == [1, 2]
    assert vision.nms(boxes, scores, 0.95).tolist() == [1, 3, 0, 2]
    assert vision.nms(boxes[:0], scores[:0], 0.5).tolist() == []
    with pytest.raises(RuntimeError, match="boxes should have 4 elements in dimension 1, got 3"):
        vision.nms(boxes[:, :3], scores, 0.5)
    with pytest.raises(NotImplementedError, match="\"nms_kernel\" not implemented for 'Half'"):
        vision.nms(boxes.half(), scores.half(), 0.5)


def test_values_of_regions():
    ramp = torch.arange(16.0).reshape(1, 1, 4, 4)
    whole = torch.tensor([[0, 0.0, 0, 4, 4]])
    assert vision.roi_align(ramp, whole, 1.0, 2, 2, 2, True).flatten().tolist() == [2.5, 4.5, 10.5, 12.5]
    largest, places = vision.roi_pool(ramp, torch.tensor([[0, 0.0, 0, 3, 3]]), 1.0, 2, 2)
    assert largest.flatten().tolist() == [5, 7, 13, 15] and places.flatten().tolist() == [5, 7, 13, 15]
    assert places.dtype == torch.int32
    mean, channels = vision.ps_roi_pool(ramp.expand(1, 4, 4, 4), torch.tensor([[0, 0.0, 0, 2, 2]]), 1.0, 2, 2)
    assert mean.flatten().tolist() == [0, 1, 4, 5] and channels.flatten().tolist() == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="rois must have shape"):
        vision.roi_align(ramp, whole[:, :4], 1.0, 2, 2, 2, True)
    with pytest.raises(RuntimeError, match="to have the same type"):
        vision.roi_align(ramp.double(), whole, 1.0, 2, 2, 2, True)


@pytest.mark.parametrize("name", POOLINGS)
def test_regions_on_the_way_back_and_on_meta(name):
    assert gradcheck(POOLINGS[name], (IMAGE.clone().requires_grad_(),))
    made = POOLINGS[name](IMAGE)
    there = IMAGE.to("meta").requires_grad_()
    planned = POOLINGS[name](there)
    assert planned.shape == made.shape and torch.autograd.grad(planned.sum(), there)[0].shape == IMAGE.shape
    x = IMAGE.clone().requires_grad_()
    (once,) = torch.autograd.grad(POOLINGS[name](x).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="double backwards on"):
        once.sum().backward()


@pytest.mark.parametrize("masked", [False, True])
def test_taps_that_do_not_move_are_a_convolution(masked):
    x, weight, bias = torch.randn(2, 4, 6, 5), torch.randn(6, 2, 3, 3), torch.randn(6)
    still, mask = torch.zeros(2, 2 * 2 * 9, 6, 5), torch.full((2, 18, 6, 5), 0.5)
    made = vision.deform_conv2d(x, weight, still, mask, bias, 1, 1, 1, 1, 1, 1, 2, 2, masked)
    expected = torch.nn.functional.conv2d(x * (0.5 if masked else 1), weight, bias, padding=1, groups=2)
    torch.testing.assert_close(made, expected, rtol=1e-5, atol=1e-5)


def test_gradients_of_moving_taps():
    given = [
        torch.randn(*shape, dtype=torch.float64, requires_grad=True)
        for shape in ((1, 2, 4, 4), (2, 2, 2, 2), (1, 8, 3, 3), (1, 4, 3, 3), (2,))
    ]
    numbers = (1, 1, 0, 0, 1, 1, 1, 1, True)
    assert gradcheck(lambda *tensors: vision.deform_conv2d(*tensors, *numbers), given)
    made = vision.deform_conv2d(*given, *numbers)
    expected = torch.autograd.grad(made.sum(), given)
    found = vision._deform_conv2d_backward(torch.ones_like(made), *given, *numbers)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_what_a_package_registers_for_operators_of_the_schema_is_there_already():
    assert str(vision.nms.default) == "torchvision.nms.default" and vision._cuda_version() == -1
    assert torch.library.register_fake("torchvision::nms")(len) is len
    torch.library.register_autograd("torchvision::roi_align", len)
    torch.library.Library("torchvision", "IMPL", "Meta").impl(vision.roi_align.default, len)
    torch.ops.load_library("/anywhere/torchvision/_C.so")
    with pytest.raises(OSError, match="compiled for PyTorch"):
        torch.ops.load_library("/anywhere/else/_C.so")
    with pytest.raises(NotImplementedError, match="no quantized tensors"):
        vision.qnms(torch.rand(1, 4), torch.rand(1), 0.5)


@pytest.mark.skipif(importlib.util.find_spec("PIL") is None, reason="needs Pillow")
def test_files_of_images(tmp_path):
    image, pixels = torch.ops.image, torch.arange(3 * 4 * 5, dtype=torch.uint8).reshape(3, 4, 5)
    data = image.encode_png(pixels, 6)
    assert torch.equal(image.decode_png(data, 0), pixels) and torch.equal(image.decode_image(data, 3), pixels)
    assert image.decode_png(data, 1)[0, 0, 0].item() == (20 * 19234 + 40 * 3740) >> 15
    image.write_file(str(tmp_path / "a.png"), data)
    assert torch.equal(image.read_file(str(tmp_path / "a.png")), data)
    assert image.decode_jpeg(image.encode_jpeg(pixels, 90), 0).shape == (3, 4, 5)
    with pytest.raises(RuntimeError, match="jpeg"):
        image.decode_jpeg(data, 0)
    with pytest.raises(RuntimeError, match="uint8"):
        image.encode_png(pixels.float(), 6)


def test_without_pillow_the_reader_says_what_is_wanted():
    code = (
        "import sys; sys.modules['PIL'] = None\nimport mindtorch_v2 as torch\n"
        "try:\n    torch.ops.image.encode_png(torch.zeros(1, 2, 2, dtype=torch.uint8), 6)\n"
        "except RuntimeError as error:\n    print(error)\n"
    )
    assert "pip install pillow" in python(code)


BYTES = [
    (
        "bilinear",
        (4, 5),
        False,
        [22, 81, 141, 194, 65, 90, 149, 209, 73, 76, 157, 160, 119, 84, 143, 169, 39, 93, 152, 211],
    ),
    (
        "bilinear",
        (4, 5),
        True,
        [0, 65, 130, 194, 8, 75, 140, 205, 81, 83, 150, 152, 112, 93, 158, 225, 39, 104, 168, 233],
    ),
    (
        "bicubic",
        (4, 5),
        False,
        [18, 78, 138, 204, 59, 86, 146, 240, 54, 70, 163, 166, 108, 89, 147, 174, 30, 91, 155, 215],
    ),
    (
        "bicubic",
        (8, 10),
        False,
        [
            0,
            20,
            53,
            84,
            113,
            140,
            167,
            234,
            178,
            0,
            23,
            47,
            80,
            111,
            140,
            165,
            237,
            172,
            54,
            30,
            61,
            86,
            119,
            149,
            181,
            228,
            196,
            70,
            8,
            74,
            95,
            120,
            155,
            189,
            216,
            231,
            65,
            18,
            84,
            107,
            126,
            149,
            193,
            245,
            241,
            68,
            42,
            76,
            113,
            138,
            158,
            225,
            154,
            81,
            108,
            45,
            73,
            116,
            147,
            172,
            205,
            179,
            64,
            0,
            41,
            91,
            123,
            154,
            186,
            211,
            242,
            55,
            0,
            65,
            93,
            120,
            149,
            181,
            213,
            238,
        ],
    ),
]


@pytest.mark.parametrize(("mode", "size", "align_corners", "found"), BYTES)
def test_images_of_bytes_are_resized_by_weights_of_16_bits(mode, size, align_corners, found):
    x = (torch.arange(48) * 37 % 251).to(torch.uint8).reshape(1, 1, 6, 8)
    for image in (x, x.expand(2, 3, 6, 8), x.expand(1, 5, 6, 8).contiguous(memory_format=torch.channels_last)):
        made = torch.nn.functional.interpolate(image, size, mode=mode, align_corners=align_corners)
        assert made.dtype is torch.uint8 and all(plane.flatten().tolist() == found for plane in made.flatten(0, 1))


def test_the_processor_is_told_by_pytorchs_names():
    python(
        """
        import os
        from mindtorch_v2._torch_proxy import install
        install()
        import torch
        assert torch.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512")
        os.environ["ATEN_CPU_CAPABILITY"] = "avx2"
        assert torch.backends.cpu.get_cpu_capability() == torch._C._get_cpu_capability() == "AVX2"
        """
    )
