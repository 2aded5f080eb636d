"""The meta device: every way to read, write, view, move, save and train tensors without data, by what PyTorch 2.13.0 does.

test_properties.py compares the meta device with the CPU for every operator of the schema.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.nn import functional as F

LONG, BOOL = torch.int64, torch.bool
LAST = torch.channels_last


def m(*shape: int, **options: object) -> torch.Tensor:
    """A tensor on the meta device."""
    return torch.empty(shape, device="meta", **options)


# What needs data


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("nonzero", lambda: m(3).nonzero()),
        ("nonzero", lambda: torch.nonzero(m(3), as_tuple=True)),
        ("nonzero", lambda: torch.argwhere(m(3))),
        ("nonzero", lambda: torch.where(m(3) > 0)),
        ("masked_select", lambda: m(3).masked_select(m(3, dtype=BOOL))),
        ("_unique2", lambda: m(3).unique()),
        ("unique_dim", lambda: torch.unique(m(3, 3), dim=0)),
        ("unique_consecutive", lambda: torch.unique_consecutive(m(3))),
        ("bincount", lambda: torch.bincount(m(3, dtype=LONG))),
        ("repeat_interleave", lambda: m(3).repeat_interleave(m(3, dtype=LONG))),
        ("repeat_interleave", lambda: torch.repeat_interleave(m(3, dtype=LONG))),
        ("index", lambda: m(3)[m(3) > 0]),
        ("equal", lambda: torch.equal(m(3), m(3))),
        ("one_hot", lambda: F.one_hot(m(3, dtype=LONG))),
        ("_ctc_loss", lambda: F.ctc_loss(m(5, 2, 3), m(2, 2, dtype=LONG), m(2, dtype=LONG), m(2, dtype=LONG))),
    ],
)
def test_an_operator_whose_result_depends_on_data_says_its_name(name: str, call: Callable) -> None:
    with pytest.raises(NotImplementedError, match=rf"^aten::{name}\b.*meta device"):
        call()


@pytest.mark.parametrize(
    "read",
    [
        lambda: m().item(),
        lambda: m(1).item(),
        lambda: bool(m()),
        lambda: int(m()),
        lambda: float(m()),
        lambda: complex(m()),
        lambda: m(dtype=LONG).__index__(),
        lambda: 1 if m() else 2,
        lambda: m().is_nonzero(),
        lambda: torch.is_nonzero(m()),
        lambda: torch.allclose(m(3), m(3)),
        lambda: 2 in m(3),
        lambda: torch.tensor([m(), m()]),
        lambda: m(3)[m(dtype=LONG)],
    ],
)
def test_a_number_cannot_be_read(read: Callable) -> None:
    with pytest.raises(RuntimeError, match=r"^Tensor\.item\(\) cannot be called on meta tensors"):
        read()


@pytest.mark.parametrize("read", [lambda x: x.numpy(), lambda x: x.__array__(), np.asarray, np.array])
def test_arrays_cannot_be_had(read: Callable) -> None:
    with pytest.raises(TypeError, match="can't convert meta device type tensor to numpy"):
        read(m(3))


@pytest.mark.parametrize(
    "move",
    [
        lambda: m(3).tolist(),
        lambda: m(3).cpu(),
        lambda: m(3).to("cpu"),
        lambda: m(3).to(torch.ones(1)),
        lambda: m(3).to(device="cpu", dtype=torch.float64),
        lambda: m(3).type("torch.FloatTensor"),
        lambda: torch.tensor(m(3), device="cpu"),
        lambda: torch.as_tensor(m(3), device="cpu"),
        lambda: torch.ones(3).copy_(m(3)),
        lambda: m(3).untyped_storage().cpu(),
        lambda: nn.Linear(2, 3, device="meta").cpu(),
    ],
)
@pytest.mark.filterwarnings("ignore:To copy construct")
def test_data_cannot_be_copied_out(move: Callable) -> None:
    with pytest.raises(NotImplementedError, match=r"^Cannot copy out of meta tensor; no data!"):
        move()


def test_other_ways_out_are_closed() -> None:
    for error, message, call in (
        (BufferError, "Cannot pack tensors on meta", lambda: m(3).__dlpack__()),
        (ValueError, "Unknown device type meta for Dlpack", lambda: m(3).__dlpack_device__()),
        (ValueError, "Unknown device type meta for Dlpack", lambda: torch.from_dlpack(m(3))),
        (RuntimeError, "_share_fd_: only available on CPU", lambda: m(3).share_memory_()),
        (RuntimeError, "only dense CPU tensors can be pinned", lambda: m(3).pin_memory()),
        (NotImplementedError, "Not available for 'meta' device type", lambda: m(3).untyped_storage()[0]),
        (AssertionError, "Torch not compiled with CUDA enabled", lambda: m(3).cuda()),
        (AssertionError, "Torch not compiled with CUDA enabled", lambda: nn.Linear(2, 3, device="meta").cuda()),
        (RuntimeError, "META device type not an accelerator", lambda: torch.Generator("meta")),
    ):
        with pytest.raises(error, match=message):
            call()


def test_what_can_be_known_is_known() -> None:
    assert torch.equal(m(3), m(4)) is False and len(m(2, 3)) == 2 and [x.shape for x in m(2, 3)] == [(3,), (3,)]
    assert torch.multinomial(m(3), 2).shape == (2,) and torch.histc(m(3), 5).shape == (5,)
    assert m(3).repeat_interleave(m(3, dtype=LONG), output_size=7).shape == (7,)
    assert F.one_hot(m(3, dtype=LONG), 5).shape == (3, 5) and m(3).data_ptr() == 0 and m(3).nbytes == 12
    assert m(2, 3).untyped_storage().nbytes() == 24 and m(3).untyped_storage().device.type == "meta"


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (m(3), "tensor(..., device='meta', size=(3,))"),
        (m(), "tensor(..., device='meta', size=())"),
        (m(2, 3, dtype=torch.float16), "tensor(..., device='meta', size=(2, 3), dtype=torch.float16)"),
        (m(2, requires_grad=True), "tensor(..., device='meta', size=(2,), requires_grad=True)"),
        (m(2, requires_grad=True) * 2, "tensor(..., device='meta', size=(2,), grad_fn=<MulBackward0>)"),
        (nn.Parameter(m(2)), "Parameter containing:\ntensor(..., device='meta', size=(2,), requires_grad=True)"),
    ],
)
def test_printing(x: torch.Tensor, text: str) -> None:
    assert repr(x) == str(x) == f"{x}" == text


# Indices, of which those on the CPU are known


def test_indices_on_the_cpu() -> None:
    x = m(3, 4)
    assert x[[0, 1]].shape == x[torch.tensor([0, -1])].shape == x[np.array([0, 2])].shape == (2, 4)
    assert x[torch.tensor([True, False, True])].shape == x[[True, False, True]].shape == (2, 4)
    assert x[torch.tensor([True, False, True]), 1].shape == (2,) and x[torch.zeros(3, 4) > 0].shape == (0,)
    assert m(2, 3, 4)[torch.ones(2, 3) > 0, torch.tensor([1])].shape == (6,)
    assert x[torch.tensor(1)]._base is x and x[m(2, dtype=LONG)].shape == (2, 4)
    for index in ([5], torch.tensor([5]), (slice(None), [-5])):
        with pytest.raises(IndexError, match="out of bounds for dimension"):
            x[index]
    with pytest.raises(IndexError, match="shape of the mask"):
        x[torch.ones(2) > 0]
    x[[0, 1]] = 1.0
    x[torch.ones(3) > 0] = torch.tensor(2.0)
    x[m(3) > 0] = 1.0
    assert x._version == 3
    with pytest.raises(IndexError, match="index 7 is out of bounds for dimension 0 with size 3"):
        x[[7]] = 1.0


def test_masks_of_several_dimensions_before_other_indices() -> None:
    x = torch.arange(24.0).reshape(2, 3, 4)
    mask = torch.ones(2, 3) > 0
    assert x[mask, torch.zeros(6, dtype=LONG)].tolist() == x[mask, 0].tolist() == [0, 4, 8, 12, 16, 20]
    x[mask, torch.zeros(6, dtype=LONG)] = -1.0
    assert (x == -1).sum() == 6


@pytest.mark.parametrize("where", ["cpu", "meta"])
def test_several_batches_of_positions(where: str) -> None:
    """vmap of an index by positions of different levels; transformers makes its masks so."""
    x = torch.arange(12, device=where).reshape(3, 4)
    rows, columns = torch.arange(3, device=where), torch.arange(4, device=where)
    found = torch.vmap(torch.vmap(lambda i, j: x[i, j], (None, 0)), (0, None))(rows, columns)
    assert found.shape == (3, 4) and (where == "meta" or torch.equal(found, x))
    found = torch.vmap(torch.vmap(lambda i, j: x[j, i], (None, 0)), (0, None))(columns, rows)
    assert found.shape == (4, 3) and (where == "meta" or torch.equal(found, x.t()))


# Views and strides


def test_views_alias() -> None:
    x = m(4, 6)
    for view in (x[1:], x.view(6, 4), x.t(), x[0], x.diagonal(), x.unfold(0, 2, 1), x.chunk(2)[1], x.expand(2, 4, 6)):
        assert view._is_view() and view._base is x and view.untyped_storage()._cdata == x.untyped_storage()._cdata
    assert x[1:][1:]._base is x and x[1:, 2:].storage_offset() == 8 and x[:, 2].stride() == (6,)
    x[1:].zero_()
    x.t().add_(1)
    assert x._version == x[0]._version == 2 and x.data._version == 0
    x.detach().zero_()
    assert x._version == 3
    assert x.clone()._base is None and x.untyped_storage()._cdata != m(4, 6).untyped_storage()._cdata
    assert x.is_set_to(x[:]) and not x.is_set_to(x[1:]) and not x.is_set_to(x.clone())
    y = m(4, 2)
    y.t_()
    y.unsqueeze_(0)
    assert y.shape == (1, 2, 4) and y.stride() == (2, 1, 2)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: F.conv2d(x, torch.empty(2, 4, 2, 2, device=x.device)),
        lambda x: F.conv2d(x.contiguous(), torch.empty(2, 4, 2, 2, device=x.device).to(memory_format=LAST)),
        lambda x: F.conv_transpose2d(x, torch.empty(4, 2, 2, 2, device=x.device)),
        lambda x: F.batch_norm(x, torch.ones(4, device=x.device), torch.ones(4, device=x.device)),
        lambda x: F.group_norm(x, 2),
        lambda x: F.max_pool2d(x, 2),
        lambda x: F.avg_pool2d(x, 2),
        lambda x: F.adaptive_avg_pool2d(x, 2),
        lambda x: F.adaptive_max_pool2d(x, 2),
        lambda x: F.interpolate(x, scale_factor=2),
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
        lambda x: F.relu(x),
        lambda x: F.pad(x, (1, 1, 1, 1)),
        lambda x: x + x,
        lambda x: x.clone(),
        lambda x: torch.zeros_like(x),
        lambda x: torch.empty(x.shape, device=x.device, memory_format=LAST),
    ],
)
def test_channels_last_goes_through(call: Callable) -> None:
    made = [call(torch.ones(2, 4, 6, 6, device=where).to(memory_format=LAST)) for where in ("cpu", "meta")]
    assert made[0].stride() == made[1].stride() and made[1].is_meta
    assert all(x.is_contiguous(memory_format=LAST) for x in made)


@pytest.mark.parametrize("where", ["cpu", "meta"])
def test_to_asks_what_the_strides_speak_for(where: str) -> None:
    x = torch.ones(2, 3, 1, 1, device=where)
    assert x.to(memory_format=LAST).stride() == (3, 1, 3, 3) and x.contiguous(memory_format=LAST) is x
    transposed = torch.ones(2, 3, device=where).t()
    assert transposed.to(memory_format=torch.contiguous_format) is transposed
    assert nn.Conv2d(3, 4, 1, device=where).to(memory_format=LAST).weight.stride() == (3, 1, 3, 3)


# Buffers of results


@pytest.mark.parametrize(
    ("call", "shape"),
    [
        (lambda out: torch.add(m(3), m(3), out=out), (3,)),
        (lambda out: torch.mm(m(2, 3), m(3, 4), out=out), (2, 4)),
        (lambda out: torch.matmul(m(2, 3), m(3, 4), out=out), (2, 4)),
        (lambda out: torch.sum(m(2, 3), 0, out=out), (3,)),
        (lambda out: torch.cat([m(2), m(3)], out=out), (5,)),
        (lambda out: torch.where(m(3) > 0, m(3), m(3), out=out), (3,)),
        (lambda out: torch.cumsum(m(3), 0, out=out), (3,)),
    ],
)
def test_buffers_are_resized(call: Callable, shape: tuple) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        empty, fits = m(0), m(*shape)
        assert call(empty) is empty and empty.shape == shape
        assert call(fits) is fits and fits._version == 1
    other = m(7)
    with pytest.warns(UserWarning) as said:
        call(other)
    assert other.shape == shape
    assert str(said[0].message) == (
        f"An output with one or more elements was resized since it had shape [7], which does not match the required output shape {list(shape)}. "
        "This behavior is deprecated, and in a future PyTorch release outputs will not be resized unless they have zero elements. You can "
        "explicitly reuse an out tensor t by resizing it, inplace, to zero elements with t.resize_(0)."
    )
    with pytest.raises(
        RuntimeError, match="same device.*meta and cpu|does not match device type of out|argument 'out'"
    ) as caught:
        torch.device("meta")(call)(torch.empty(shape))
    assert "cpu" in str(caught.value)


def test_buffers_of_factories_are_resized_without_a_word_but_those_that_count() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.zeros(2, out=(other := m(7))) is other and other.shape == (2,)
    with pytest.warns(
        UserWarning, match=r"^The number of elements in the out tensor of shape \[7\] is 7 which does not match"
    ):
        assert torch.arange(3, out=(other := m(7))) is other and other.shape == (3,)


def test_buffers_of_another_device() -> None:
    for a, b in ((m(3), torch.ones(3)), (torch.ones(3), m(3))):
        with pytest.raises(
            RuntimeError, match="^Expected all tensors to be on the same device, but found at least two devices"
        ):
            torch.add(a, a, out=b)
        with pytest.raises(
            RuntimeError, match="^Expected all tensors to be on the same device, but found at least two devices"
        ):
            torch.max(torch.stack([a, a]), 0, out=(b, torch.empty(3, dtype=LONG, device=b.device)))
    values, indices = torch.max(m(2, 3), 0, out=(m(0), m(0, dtype=LONG)))
    assert values.shape == indices.shape == (3,)


# Mixed devices


def host(*shape: int) -> torch.Tensor:
    """A tensor on the CPU."""
    return torch.ones(shape)


@pytest.mark.parametrize(
    ("call", "where"),
    [
        (lambda a, b: torch.mm(a(2, 2), b(2, 2)), "argument mat2 in method wrapper_mm"),
        (lambda a, b: torch.bmm(a(1, 2, 2), b(1, 2, 2)), "argument mat2 in method wrapper_bmm"),
        (lambda a, b: a(3) + b(3), "add"),
        (lambda a, b: a(1) + b(3), "add"),
        (lambda a, b: a(3).mul_(b(3)), "mul"),
        (lambda a, b: torch.cat([a(3), b(3)]), "argument tensors in method wrapper_cat"),
        (lambda a, b: torch.stack([a(), b()]), "argument tensors in method wrapper_stack"),
        (lambda a, b: F.linear(a(2, 3), b(4, 3)), "argument weight"),
        (lambda a, b: F.conv2d(a(1, 3, 4, 4), b(2, 3, 2, 2)), "argument weight"),
        (lambda a, b: F.layer_norm(a(2, 3), (3,), b(3)), "argument weight"),
        (lambda a, b: torch.where(a(3) > 0, b(3), 1.0), "where"),
        (lambda a, b: F.mse_loss(a(3), b(3)), "mse_loss"),
    ],
)
@pytest.mark.parametrize(("a", "b", "names"), [(host, m, "cpu and meta"), (m, host, "meta and cpu")])
def test_devices_do_not_mix(call: Callable, where: str, a: Callable, b: Callable, names: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        call(a, b)
    said = f"Expected all tensors to be on the same device, but found at least two devices, {names}!"
    assert str(caught.value).startswith(said) and where in str(caught.value)


def test_numbers_on_the_cpu_go_with_every_device() -> None:
    number = torch.tensor(2.0)
    for made in (
        m(3) + number,
        number + m(3),
        m(3).add_(number),
        torch.pow(m(3), number),
        torch.clamp(m(3), number),
        m() * number,
    ):
        assert made.is_meta and made.dtype is torch.float32
    assert (torch.tensor(1.0, dtype=torch.float64) + m(3)).dtype is torch.float32
    assert torch.where(m(3) > 0, number, 1.0).is_meta and m(3).fill_(number).is_meta
    x = m(3)
    x[0] = number
    for refused in (lambda: torch.ones(3) + m(), lambda: torch.ones(3).add_(m()), lambda: number.clone().add_(m())):
        with pytest.raises(RuntimeError, match="same device"):
            refused()


# One rule on every device: the class and the sentence of PyTorch on the CPU

WRONG = {
    # fmt: off
    "z(2, 3) + z(2, 4)": (
        "RuntimeError",
        "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1",
    ),
    "z(3).add_(z(2, 3))": ("RuntimeError", "output with shape [3] doesn't match the broadcast shape [2, 3]"),
    "z(3, dtype=long).add_(z(3))": ("RuntimeError", "result type Float can't be cast to the desired output type Long"),
    "z(3, dtype=long).div_(z(3, dtype=long))": (
        "RuntimeError",
        "result type Float can't be cast to the desired output type Long",
    ),
    "z(1).expand(3).add_(1)": (
        "RuntimeError",
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation.",
    ),
    "z(2, 3).mm(z(4, 5))": ("RuntimeError", "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"),
    "z(1, 2, 3).bmm(z(1, 4, 5))": (
        "RuntimeError",
        "Expected size for first two dimensions of batch2 tensor to be: [1, 3] but got: [1, 4].",
    ),
    "z(2, 3) @ z(4)": ("RuntimeError", "size mismatch, got input (2), mat (2x3), vec (4)"),
    "torch.addmm(z(4), z(2, 3), z(3, 5))": (
        "RuntimeError",
        "The expanded size of the tensor (5) must match the existing size (4) at non-singleton dimension 1.  Target sizes: [2, 5].  Tensor sizes: [4]",
    ),
    "z(3).dot(z(4))": (
        "RuntimeError",
        "inconsistent tensor size, expected tensor [3] and src [4] to have the same number of elements, but got 3 and 4 elements respectively",
    ),
    "F.linear(z(2, 3), z(4, 5))": ("RuntimeError", "mat1 and mat2 shapes cannot be multiplied (2x3 and 5x4)"),
    "z(3).copy_(z(4))": (
        "RuntimeError",
        "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 0",
    ),
    "z(3).copy_(z(2, 3))": ("RuntimeError", "output with shape [3] doesn't match the broadcast shape [2, 3]"),
    "z(3).masked_fill_(z(2, 3, dtype=bool), 1)": (
        "RuntimeError",
        "output with shape [3] doesn't match the broadcast shape [2, 3]",
    ),
    "z(3).masked_fill(z(4, dtype=bool), 1)": (
        "RuntimeError",
        "The size of tensor a (4) must match the size of tensor b (3) at non-singleton dimension 0",
    ),
    "z(3).masked_fill_(z(3), 1)": (
        "RuntimeError",
        "masked_fill_ only supports boolean masks, but got mask with dtype float",
    ),
    "z(0, 3).max(0)": ("IndexError", "max(): Expected reduction dim 0 to have non-zero size."),
    "z(0).max()": (
        "RuntimeError",
        "max(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.",
    ),
    "z(0).argmax()": ("IndexError", "argmax(): Expected reduction dim to be specified for input.numel() == 0."),
    "z(0, 3).argmin(0)": ("IndexError", "argmin(): Expected reduction dim 0 to have non-zero size."),
    "z(0, 3).amax(0)": ("IndexError", "amax(): Expected reduction dim 0 to have non-zero size."),
    "z(0).amin()": (
        "RuntimeError",
        "amin(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.",
    ),
    "z(0, 3).median(0)": ("IndexError", "median(): Expected reduction dim 0 to have non-zero size."),
    "z(0, 3).mode(0)": ("IndexError", "mode(): Expected reduction dim 0 to have non-zero size."),
    "z(3).sum(2)": ("IndexError", "Dimension out of range (expected to be in range of [-1, 0], but got 2)"),
    "z(3).softmax(1)": ("IndexError", "Dimension out of range (expected to be in range of [-1, 0], but got 1)"),
    "z(3).topk(5)": ("RuntimeError", "selected index k out of range"),
    "z(3).kthvalue(5)": ("RuntimeError", "kthvalue(): selected number k out of range for dimension 0"),
    "z(3).sort(1)": ("IndexError", "Dimension out of range (expected to be in range of [-1, 0], but got 1)"),
    "z(6).view(4)": ("RuntimeError", "shape '[4]' is invalid for input of size 6"),
    "z(6).reshape(4)": ("RuntimeError", "shape '[4]' is invalid for input of size 6"),
    "z(2, 3).t().view(6)": (
        "RuntimeError",
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead.",
    ),
    "z(2, 3).expand(2, 4)": (
        "RuntimeError",
        "The expanded size of the tensor (4) must match the existing size (3) at non-singleton dimension 1.  Target sizes: [2, 4].  Tensor sizes: [2, 3]",
    ),
    "z(3)[5]": ("IndexError", "index 5 is out of bounds for dimension 0 with size 3"),
    "z(3).select(0, 3)": ("IndexError", "select(): index 3 out of range for tensor of size [3] at dimension 0"),
    "z(3).narrow(0, 2, 2)": ("RuntimeError", "start (2) + length (2) exceeds dimension size (3)."),
    "z(3)[[5]]": ("IndexError", "index 5 is out of bounds for dimension 0 with size 3"),
    "z(3).index_select(0, z(2, 2, dtype=long))": ("IndexError", "index_select(): Index is supposed to be a vector"),
    "z(3, 2).gather(0, z(2, 5, dtype=long))": (
        "RuntimeError",
        "Size does not match at dimension 1 expected index [2, 5] to be no larger than self [3, 2] apart from dimension 0",
    ),
    "z(3).index_copy(0, z(2, dtype=long), z(3))": (
        "IndexError",
        "index_copy_(): Number of indices (2) should be equal to source.size(dim) (3)",
    ),
    "z(3).as_strided((5,), (1,))": (
        "RuntimeError",
        "setStorage: sizes [5], strides [1], storage offset 0, and itemsize 4 requiring a storage size of 20 are out of bounds for storage of size 12",
    ),
    "z(2, 3).squeeze(5)": ("IndexError", "Dimension out of range (expected to be in range of [-2, 1], but got 5)"),
    "z(2, 3).transpose(0, 2)": ("IndexError", "Dimension out of range (expected to be in range of [-2, 1], but got 2)"),
    "torch.cat([z(2, 3), z(3, 4)])": (
        "RuntimeError",
        "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4 for tensor number 1 in the list.",
    ),
    "torch.stack([z(2), z(3)])": (
        "RuntimeError",
        "stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1",
    ),
    "z(3, dtype=long).requires_grad_()": ("RuntimeError", "only Tensors of floating point dtype can require gradients"),
    "z(3).normal_(0, -1)": ("RuntimeError", "normal expects std >= 0.0, but found std -1"),
    "z(3).uniform_(2, 1)": ("RuntimeError", "uniform_ expects to return a [from, to) range, but found from=2 > to=1"),
    "F.conv2d(z(1, 3, 4, 4), z(4, 3, 2, 2), groups=2)": (
        "RuntimeError",
        "Given groups=2, weight of size [4, 3, 2, 2], expected input[1, 3, 4, 4] to have 6 channels, but got 3 channels instead",
    ),
    "F.conv2d(z(1, 3, 4, 4), z(4, 3, 2, 2), groups=0)": ("RuntimeError", "non-positive groups is not supported"),
    "F.conv2d(z(1, 3, 4, 4), z(4, 3, 5, 5))": (
        "RuntimeError",
        "Calculated padded input size per channel: (4 x 4). Kernel size: (5 x 5). Kernel size can't be greater than actual input size",
    ),
    "F.conv2d(z(1, 3, 4, 4), z(4, 3, 2, 2), z(5))": (
        "RuntimeError",
        "Given weight of size [4, 3, 2, 2], expected bias to be 1-dimensional with 4 elements, but got bias of size [5] instead",
    ),
    "F.conv2d(z(1, 3, 4, 4), z(4, 3, 2, 2), stride=0)": ("RuntimeError", "non-positive stride is not supported"),
    "F.conv2d(z(1, 3, 4, 4), z(4, 3, 2, 2), padding=-1)": ("RuntimeError", "negative padding is not supported"),
    "F.conv2d(z(1, 3, 4, 4), z(4, 3, 2, 2), dilation=0)": (
        "RuntimeError",
        "dilation should be greater than zero, but got [0, 0]",
    ),
    "F.conv_transpose2d(z(1, 3, 4, 4), z(3, 2, 2, 2), output_padding=2)": (
        "RuntimeError",
        "output padding must be smaller than either stride or dilation, but got output_padding_height: 2 output_padding_width: 2 stride_height: 1 stride_width: 1 dilation_height: 1 dilation_width: 1",
    ),
    "F.conv_transpose2d(z(1, 3, 4, 4), z(3, 2, 2, 2), output_padding=-1)": (
        "RuntimeError",
        "negative output_padding is not supported",
    ),
    "F.conv_transpose2d(z(1, 3, 4, 4), z(4, 2, 2, 2))": (
        "RuntimeError",
        "Given transposed=1, weight of size [4, 2, 2, 2], expected input[1, 3, 4, 4] to have 4 channels, but got 3 channels instead",
    ),
    "F.max_pool2d(z(1, 3, 2, 2), 3)": (
        "RuntimeError",
        "Given input size: (3x2x2). Calculated output size: (3x0x0). Output size is too small",
    ),
    "F.batch_norm(z(2, 3), z(4), z(4))": ("RuntimeError", "running_mean should contain 3 elements not 4"),
    "F.layer_norm(z(2, 3), (4,))": (
        "RuntimeError",
        "Given normalized_shape=[4], expected input with shape [*, 4], but got input of size[2, 3]",
    ),
    "F.embedding(z(2), z(3, 4))": (
        "RuntimeError",
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got torch.FloatTensor instead (while checking arguments for embedding)",
    ),
    "F.cross_entropy(z(2, 3), z(3, dtype=long))": (
        "ValueError",
        "Expected input batch_size (2) to match target batch_size (3).",
    ),
    'F.interpolate(z(1, 3, 4, 4), size=2, mode="linear")': (
        "NotImplementedError",
        "Got 4D input, but linear mode needs 3D input",
    ),
    "torch.add(z(3), z(3), out=z(3, dtype=long))": (
        "RuntimeError",
        "result type Float can't be cast to the desired output type Long",
    ),
    "torch.mm(z(2, 3), z(3, 4), out=z(2, 4, dtype=double))": (
        "RuntimeError",
        "Expected out tensor to have dtype float, but got double instead",
    ),
    "torch.argmax(z(3), out=z(0))": (
        "RuntimeError",
        "Expected out tensor to have dtype long int, but got float instead",
    ),
    # fmt: on
}


@pytest.mark.parametrize("text", WRONG)
@pytest.mark.parametrize("where", ["cpu", "meta"])
def test_wrong_calls_fail_alike(text: str, where: str) -> None:
    def z(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.zeros(shape, dtype=dtype, device=where)

    names = {"z": z, "torch": torch, "F": F, "long": torch.int64, "double": torch.float64, "bool": torch.bool}
    with pytest.raises(Exception) as caught, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eval(text, names)
    assert (type(caught.value).__name__, str(caught.value)) == WRONG[text]


def test_layouts_are_those_of_the_cpu() -> None:
    """PyTorch's own meta device lays these out in another way than its CPU."""

    def layouts(device: str) -> list[Any]:
        def m(*shape: int, **keywords: Any) -> torch.Tensor:
            return torch.zeros(shape, device=device, **keywords)

        last = m(2, 3, 2, 2).to(memory_format=torch.channels_last)
        places = m(2, 3, 2, 2, dtype=torch.int64)
        norm = torch.native_batch_norm(m(2, 3), None, None, m(3), m(3), False, 0.1, 1e-5)
        return [
            torch.fft.rfftn(m(2, 3, 4, 5)).stride(),
            torch.fft.irfft2(m(5, 6, 7), dim=(0, -1)).stride(),
            [x.stride() for x in torch.linalg.svd(m(3, 5))],
            torch.linalg.eig(m(4, 4))[1].stride(),
            torch.nonzero_static(m(4, 4), size=3).stride(),
            torch.ops.aten.max_unpool2d(last, places, [4, 4]).stride(),
            [tuple(x.shape) for x in norm],
        ]

    cpu = layouts("cpu")
    assert cpu[2:] == [[(1, 3), (1,), (1, 5)], (1, 4), (2, 1), (48, 1, 12, 3), [(2, 3), (0,), (0,)]]
    assert layouts("meta") == cpu
