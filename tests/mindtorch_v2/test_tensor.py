"""The tensor itself: making, converting, looking at it, memory shared with numpy, copying, pickling, printing of its history."""

from __future__ import annotations

import copy
import gc
import io
import math
import pickle
import weakref

import numpy as np
import pytest

import mindtorch_v2 as torch

t = torch.tensor


# Making


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (1, "int64", ()),
        (1.5, "float32", ()),
        (True, "bool", ()),
        (1j, "complex64", ()),
        ([], "float32", (0,)),
        ([[]], "float32", (1, 0)),
        ([1, 2.5], "float32", (2,)),
        ([True, 2], "int64", (2,)),
        ([[1, 2], [3, 4]], "int64", (2, 2)),
        ((1, 2), "int64", (2,)),
        (range(3), "int64", (3,)),
        (np.float64(1.5), "float64", ()),
        (np.array([1, 2], dtype=np.int32), "int32", (2,)),
        ([np.float32(1), np.float32(2)], "float32", (2,)),
        ([np.array([1, 2]), np.array([3, 4])], "int64", (2, 2)),
    ],
)
def test_dtype_and_shape_of_data(data, dtype, shape) -> None:
    made = torch.tensor(data)
    assert (str(made.dtype), tuple(made.shape)) == (f"torch.{dtype}", shape)


def test_a_list_of_tensors() -> None:
    assert t([t(1), t(2)]).tolist() == [1, 2]
    with pytest.raises((ValueError, TypeError)):
        t([t([1, 2]), t([3, 4])])


def test_tensor_copies_and_as_tensor_shares() -> None:
    array = np.ones(2)
    copied, shared, same = t(array), torch.as_tensor(array), torch.from_numpy(array)
    array[0] = 5
    assert copied[0] == 1 and shared[0] == 5 and same[0] == 5
    x = torch.ones(2)
    assert torch.as_tensor(x) is x
    assert torch.as_tensor(x, dtype=torch.float64) is not x


def test_ragged_and_strange_data() -> None:
    with pytest.raises(ValueError, match="expected sequence of length 2 at dim 1"):
        t([[1, 2], [3]])
    with pytest.raises((TypeError, ValueError)):
        t("abc")
    with pytest.raises((TypeError, RuntimeError)):
        t(None)
    with pytest.raises(TypeError):
        torch.from_numpy([1])
    with pytest.raises(TypeError):
        torch.from_numpy(np.array(["a"]))


def test_legacy_constructors() -> None:
    assert torch.Tensor(2, 3).shape == (2, 3)
    assert torch.Tensor([1, 2]).dtype is torch.float32
    assert torch.LongTensor([1, 2]).dtype is torch.int64
    assert torch.FloatTensor(2).shape == (2,)
    assert torch.Tensor().shape == (0,)


# Looking at it


def test_attributes() -> None:
    x = torch.zeros(2, 3, dtype=torch.float64)
    assert (x.shape, x.size(), x.size(1), x.size(-1)) == (torch.Size([2, 3]), torch.Size([2, 3]), 3, 3)
    assert (x.dim(), x.ndim, x.numel(), x.nelement(), len(x)) == (2, 2, 6, 6, 2)
    assert (x.stride(), x.stride(0), x.storage_offset(), x.element_size(), x.itemsize, x.nbytes) == (
        (3, 1),
        3,
        0,
        8,
        8,
        48,
    )
    assert (x.is_leaf, x.requires_grad, x.grad, x.grad_fn) == (True, False, None, None)
    assert x.is_floating_point() and not x.is_complex() and x.is_contiguous() and not x.is_cuda
    assert (str(x.device), x.layout, x.type()) == ("cpu", torch.strided, "torch.DoubleTensor")
    assert x.T.shape == x.mT.shape == (3, 2)


def test_size_is_a_tuple_of_its_own() -> None:
    size = torch.zeros(2, 3).shape
    assert repr(size) == "torch.Size([2, 3])" and size == (2, 3) and isinstance(size, tuple)
    assert size.numel() == 6 and size[1:] == torch.Size([3])
    assert isinstance(size[1:], torch.Size) and isinstance(size + (1,), torch.Size)


def test_python_protocols() -> None:
    x = t([1, 2, 3])
    assert len(x) == 3 and [int(v) for v in x] == [1, 2, 3] and 2 in x and 5 not in x
    assert int(t(2.7)) == 2 and float(t(2)) == 2.0 and bool(t([1])) and complex(t(1.0)) == 1 + 0j
    assert range(5)[t(2)] == 2 and [1, 2, 3][t(1)] == 2
    assert f"{t(1.5):.2f}" == "1.50"
    assert t(3).__index__() == 3
    with pytest.raises(TypeError, match="len\\(\\) of a 0-d tensor"):
        len(t(1))
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        iter(t(1))
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
        bool(t([1, 2]))
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with no values is ambiguous"):
        bool(t([]))
    with pytest.raises(RuntimeError, match="a Tensor with 2 elements cannot be converted to Scalar"):
        t([1, 2]).item()
    with pytest.raises(TypeError):
        t(1.5).__index__()


def test_hash_is_identity() -> None:
    x = t([1])
    assert hash(x) == id(x) and x in {x} and {x: 1}[x] == 1


def test_reversed_and_round() -> None:
    assert [v.item() for v in reversed(t([1, 2, 3]))] == [3, 2, 1]
    assert math.isclose(torch.round(t(1.26), decimals=1).item(), 1.3, rel_tol=1e-6)


# Conversion


def test_to_gives_itself_when_nothing_changes() -> None:
    x = torch.ones(2)
    assert x.to(torch.float32) is x and x.to("cpu") is x and x.float() is x and x.cpu() is x and x.contiguous() is x
    assert x.to(torch.float32, copy=True) is not x
    assert x.to(torch.float64).dtype is x.double().dtype is x.type(torch.float64).dtype is torch.float64
    assert x.to(t([1])).dtype is torch.int64
    assert x.to("meta").device.type == "meta" and x.to("cpu", torch.int32).dtype is torch.int32


def test_conversions_truncate_and_wrap() -> None:
    assert t([1.9, -1.9]).int().tolist() == [1, -1]
    assert t([300, -1]).to(torch.uint8).tolist() == [44, 255]
    assert t([0.0, 0.5, float("nan")]).bool().tolist() == [False, True, True]
    assert t([1e10]).half().tolist() == [math.inf]
    assert t([1.00390625]).bfloat16().float().tolist() == [1.0]


def test_views_of_another_dtype() -> None:
    x = t([1.0], dtype=torch.float32)
    assert x.view(torch.int32).item() == 0x3F800000
    y = x.view(torch.int32)
    y[0] = 0x40000000
    assert x.item() == 2.0
    assert torch.zeros(2, 4).view(torch.float64).shape == (2, 2)
    assert torch.zeros(2, dtype=torch.float64).view(torch.uint8).shape == (16,)


# numpy


def test_numpy_shares_memory() -> None:
    x = torch.arange(6.0).view(2, 3)
    array = x.numpy()
    array[0, 0] = 9
    assert x[0, 0] == 9
    x += 1
    assert array[0, 0] == 10
    assert x.t().numpy().strides == (4, 12)
    assert np.asarray(x) is not None and np.shares_memory(np.asarray(x), array)
    assert np.array(x, dtype=np.int64).dtype == np.int64


def test_numpy_of_a_tensor_that_requires_grad() -> None:
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(
        RuntimeError,
        match="Can't call numpy\\(\\) on Tensor that requires grad. Use tensor.detach\\(\\).numpy\\(\\) instead.",
    ):
        x.numpy()
    assert x.detach().numpy().tolist() == [1.0, 1.0] and x.numpy(force=True).tolist() == [1.0, 1.0]


def test_arrays_and_tensors_in_one_expression() -> None:
    x = torch.ones(2)
    assert isinstance(np.add(x.numpy(), 1), np.ndarray)
    assert np.sum(x.numpy()) == 2
    assert isinstance(np.mean([t(1.0), t(2.0)]), (np.floating, float, torch.Tensor))


def test_negative_strides_are_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        torch.from_numpy(np.arange(3)[::-1])


def test_a_read_only_array_is_warned_of() -> None:
    array = np.ones(2)
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        torch.from_numpy(array)


def test_bfloat16_has_no_numpy() -> None:
    with pytest.raises(TypeError, match="unsupported ScalarType BFloat16"):
        torch.ones(1, dtype=torch.bfloat16).numpy()


def test_dlpack_round_trip() -> None:
    x = torch.arange(4.0)
    y = torch.from_dlpack(x)
    y[0] = 7
    assert x[0] == 7
    assert np.from_dlpack(x).tolist() == [7, 1, 2, 3]


# Memory


def test_storage_is_shared_by_views() -> None:
    x = torch.arange(6.0)
    y = x[2:]
    assert y.data_ptr() == x.data_ptr() + 8 and y.storage_offset() == 2
    assert y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    assert x.untyped_storage().nbytes() == 24
    assert x.clone().data_ptr() != x.data_ptr()
    assert y.detach().data_ptr() == y.data_ptr()


def test_memory_lives_as_long_as_a_view() -> None:
    x = torch.arange(4.0)
    y = x[1:]
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert y.tolist() == [1.0, 2.0, 3.0]
    del gone


def test_set_data() -> None:
    x = torch.ones(2, requires_grad=True)
    x.data = torch.zeros(3)
    assert x.shape == (3,) and x.requires_grad and x.is_leaf
    x.data[0] = 4
    assert x.tolist() == [4.0, 0.0, 0.0]


def test_a_tensor_can_be_resized() -> None:
    x = torch.zeros(2)
    x.resize_(2, 3)
    assert x.shape == (2, 3)


# Copies


def test_deepcopy() -> None:
    x = torch.arange(4.0)
    pair = copy.deepcopy({"base": x, "view": x[1:]})
    pair["base"][1] = 9
    assert pair["view"][0] == 9 and x[1] == 1
    leaf = torch.ones(2, requires_grad=True)
    leaf.grad = torch.zeros(2)
    copied = copy.deepcopy(leaf)
    assert copied.requires_grad and copied.grad is not leaf.grad and copied.grad.tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(leaf * 2)
    assert copy.copy(x).data_ptr() == x.data_ptr()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int64", "bool", "complex64", "uint8"])
def test_pickle(dtype) -> None:
    x = torch.ones(2, 3).to(getattr(torch, dtype)).t()
    back = pickle.loads(pickle.dumps(x))
    assert (back.dtype, back.shape, back.stride()) == (x.dtype, x.shape, x.stride())
    assert torch.equal(back, x)


def test_pickle_keeps_requires_grad_and_attributes_of_parameters() -> None:
    back = pickle.loads(pickle.dumps(torch.nn.Parameter(torch.ones(2))))
    assert type(back) is torch.nn.Parameter and back.requires_grad
    assert pickle.loads(pickle.dumps(torch.ones(1, requires_grad=True))).requires_grad
    assert pickle.loads(pickle.dumps(torch.float32)) is torch.float32
    assert pickle.loads(pickle.dumps(torch.device("cpu"))) == torch.device("cpu")


def test_save_and_load() -> None:
    buffer = io.BytesIO()
    torch.save({"a": torch.arange(3), "b": [t(1.5)]}, buffer)
    buffer.seek(0)
    back = torch.load(buffer)
    assert back["a"].tolist() == [0, 1, 2] and back["b"][0].item() == 1.5


# Printing


def test_repr() -> None:
    assert repr(t([1, 2])) == "tensor([1, 2])"
    assert repr(t([1.0, 2.5])) == "tensor([1.0000, 2.5000])"
    assert repr(torch.zeros(0, 3)) == "tensor([], size=(0, 3))"
    assert repr(torch.ones(2, dtype=torch.float64)) == "tensor([1., 1.], dtype=torch.float64)"
    assert repr(torch.ones(2, requires_grad=True)) == "tensor([1., 1.], requires_grad=True)"


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda x: x + 1, "AddBackward0"),
        (lambda x: x * 2, "MulBackward0"),
        (lambda x: x.exp(), "ExpBackward0"),
        (lambda x: x.sum(), "SumBackward0"),
        (lambda x: x.sum(0), "SumBackward1"),
        (lambda x: x.view(-1), "ViewBackward0"),
        (lambda x: x[0], "SelectBackward0"),
        (lambda x: x.t(), "TBackward0"),
        (lambda x: x @ x, "MmBackward0"),
        (lambda x: x.clone(), "CloneBackward0"),
        (lambda x: torch.cat([x, x]), "CatBackward0"),
        (lambda x: x**2, "PowBackward0"),
        (lambda x: x.double(), "ToCopyBackward0"),
        (lambda x: x.mean(), "MeanBackward0"),
        (lambda x: x.unbind()[0], "UnbindBackward0"),
        (lambda x: x.max(), "MaxBackward1"),
        (lambda x: x.relu(), "ReluBackward0"),
    ],
)
def test_names_of_histories(make, name) -> None:
    result = make(torch.ones(2, 2, requires_grad=True))
    assert result.grad_fn.name() == name
    assert f"grad_fn=<{name}>" in repr(result)


def test_unravel_index() -> None:
    rows, columns = torch.unravel_index(torch.tensor([5, 7]), (2, 4))
    assert rows.tolist() == [1, 1] and columns.tolist() == [1, 3]
    assert torch.unravel_index(torch.tensor([5]), ()) == () and torch.unravel_index(torch.tensor(5), 6)[0].item() == 5
    assert [x.shape for x in torch.unravel_index(torch.empty(0, dtype=torch.int64), (2, 0))] == [(0,), (0,)]
    for indices, shape, error, message in (
        (torch.tensor([5.0]), (2,), TypeError, "expected 'indices' to be integer dtype, but got torch.float32"),
        (torch.tensor(5), (-1, 2), ValueError, "'shape' cannot have negative values"),
        (torch.tensor(5), (2.0, 3), TypeError, "expected 'shape' sequence to only contain ints"),
        (torch.tensor(5), torch.tensor([2]), TypeError, "expected 'shape' to be int or sequence of ints"),
    ):
        with pytest.raises(error, match=message):
            torch.unravel_index(indices, shape)
    assert torch.resize_as_(torch.ones(2), torch.ones(0, 3)).shape == (0, 3)


def test_the_instance_dict_is_the_users():
    leaf = torch.nn.Parameter(torch.zeros(4))
    torch.nn.init.ones_(leaf)
    view = leaf.detach()
    view[0] = 5.0
    first, second = (leaf * 2).split([1, 3])
    first.retain_grad()
    (first.sum() + second.sum()).backward()
    with torch.inference_mode():
        inferred = torch.ones(1)
    base = torch.zeros(4)
    row = base[:2]
    row.mul_(leaf[:2])
    for tensor in (leaf, view, first, second, inferred, base, row, leaf.grad):
        assert tensor.__dict__ == {}
    assert (leaf._version, view._version, second.output_nr, first.retains_grad) == (2, 2, 1, True)
    assert leaf.grad.tolist() == [2.0] * 4 and first.grad.tolist() == [1.0]
    assert inferred.is_inference() and row.grad_fn.name() == "AsStridedBackward0"
    leaf.mark = "mine"
    assert leaf.__dict__ == {"mark": "mine"}
    remade = torch.nn.Parameter(leaf.data, **{"requires_grad": leaf.requires_grad})
    remade.__dict__.update(leaf.__dict__)
    assert remade.mark == "mine" and remade._version == 0
