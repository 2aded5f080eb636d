"""What older programs use of tensors and storages. Expected values and messages are PyTorch's."""

from __future__ import annotations

import array
import collections
import copy
import io
import pickle

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.testing import make_tensor


def test_sizes_join_tuples_alone():
    size = torch.Size([1, 2])
    assert size + (3,) == (1, 2, 3) and (3,) + size == (3, 1, 2)
    for other, name in (([3], "list"), (3, "int")):
        with pytest.raises(TypeError, match=rf"can only concatenate tuple \(not {name}\) to torch.Size"):
            _ = size + other


@pytest.mark.parametrize(
    ("dtype", "low", "high", "message"),
    [
        ("float32", float("nan"), None, "`low` and `high` cannot be NaN, but got low=nan and high=9"),
        ("int64", 1, 1, "`low` must be less than `high`, but got 1 >= 1"),
        ("float32", 2, 1, "`low` must be less than `high`, but got 2 >= 1"),
        ("uint8", -9, -5, r"by `low` and `high` is \[-9, -5\), but torch.uint8 only supports \[0, 256\)"),
        ("float16", 1e30, 2e30, r"but torch.float16 only supports \[-65504.0, 65504.0\)"),
    ],
)
def test_bounds_that_leave_nothing(dtype, low, high, message):
    with pytest.raises(ValueError, match=message):
        make_tensor(2, dtype=getattr(torch, dtype), device="cpu", low=low, high=high)


def test_bounds_beyond_the_dtype():
    made = make_tensor(50, dtype=torch.uint8, device="cpu", low=-9, high=9)
    assert made.dtype is torch.uint8 and int(made.max()) < 9
    assert make_tensor(9, dtype=torch.bool, device="cpu", low=0, high=1).sum() == 0
    assert set(make_tensor(90, dtype=torch.int8, device="cpu", low=0.4, high=2.6).tolist()) == {1, 2}
    with pytest.raises(ValueError, match="mutually exclusive"):
        make_tensor(2, dtype=torch.float32, device="cpu", noncontiguous=True, memory_format=torch.contiguous_format)
    with pytest.raises(ValueError, match="not supported for boolean and integral dtypes"):
        make_tensor(2, dtype=torch.int64, device="cpu", requires_grad=True)


def test_storages_of_buffers():
    assert torch.ByteStorage.from_buffer(bytearray([1, 2, 3])).tolist() == [1, 2, 3]
    assert torch.ShortStorage.from_buffer(bytearray([1, 2, 3, 4]), "big").tolist() == [258, 772]
    assert torch.ShortStorage.from_buffer(bytearray([1, 2, 3, 4]), "little").tolist() == [513, 1027]
    assert torch.BoolStorage.from_buffer(bytearray([0, 1, 2]), "native").tolist() == [False, True, True]
    assert len(torch.FloatStorage.from_buffer(bytearray(16), byte_order="little", count=2, offset=4)) == 2
    with pytest.raises(ValueError, match=r"buffer size \(3\) must be a multiple of element size \(2\)"):
        torch.ShortStorage.from_buffer(bytearray([1, 2, 3]), "big")
    with pytest.raises(RuntimeError, match=r"function missing required argument 'byte_order' \(pos 2\)"):
        torch.ShortStorage.from_buffer(bytearray([1, 2, 3, 4]))
    with pytest.raises(ValueError, match="invalid byte_order 'x'"):
        torch.ShortStorage.from_buffer(bytearray([1, 2, 3, 4]), "x")


def test_storages_of_buffers_of_a_dtype_that_is_named():
    buffer = bytes([0, 1, 2, 3, 0, 5, 6, 7])
    untyped = torch.UntypedStorage.from_buffer(buffer, "big", dtype=torch.int16)
    assert type(untyped) is torch.UntypedStorage and untyped.tolist() == [1, 0, 3, 2, 5, 0, 7, 6]
    assert torch.UntypedStorage.from_buffer(buffer, dtype=torch.float8_e5m2).tolist() == list(buffer)
    assert torch.UntypedStorage.from_buffer(buffer, "big", -1, 8, torch.int64).tolist() == []
    assert torch.UntypedStorage.from_buffer(np.arange(3, dtype=np.int16), "native", 2, 2, torch.int16).tolist() == [
        1,
        0,
        2,
        0,
    ]
    typed = torch.TypedStorage.from_buffer(buffer, "little", count=1, offset=2, dtype=torch.int16)
    assert typed.dtype is torch.int16 and typed.tolist() == [0x0302]
    assert torch.TypedStorage.from_buffer(buffer, "native").dtype is torch.float32
    assert torch.ByteStorage._from_buffer(buffer).tolist() == list(buffer)
    mutable = bytearray(buffer)
    copied = torch.ByteStorage._from_buffer(mutable)
    mutable[0] = 9
    assert copied[0] == 0
    assert torch.tensor(copied, dtype=torch.uint8).tolist() == list(buffer)


@pytest.mark.parametrize(
    ("of", "arguments", "named", "error", "message"),
    [
        ("UntypedStorage", ("big",), {}, RuntimeError, "argument 'dtype' cannot be None"),
        ("UntypedStorage", ("big",), {"dtype": 3}, RuntimeError, "argument 'dtype' must be of type torch.dtype"),
        ("UntypedStorage", ("big",), {"dtype": torch.uint16}, RuntimeError, "Unknown type: UInt16"),
        ("UntypedStorage", (), {"dtype": torch.bool}, RuntimeError, "missing required argument 'byte_order' (pos 2)"),
        ("UntypedStorage", (3,), {"dtype": torch.int8}, TypeError, "argument 2 must be str, not int"),
        ("UntypedStorage", (), {"device": "cpu"}, TypeError, "'device' is an invalid keyword argument"),
        ("UntypedStorage", ("big",), {"byte_order": "big"}, TypeError, "given by name ('byte_order') and position (2)"),
        ("TypedStorage", ("big", -1, 0, torch.int8), {}, TypeError, "function takes at most 5 arguments (6 given)"),
        ("TypedStorage", ("big",), {"device": "meta"}, RuntimeError, "Not available for device meta"),
        (
            "FloatStorage",
            ("big",),
            {"dtype": torch.int8},
            RuntimeError,
            "'dtype' can only be specified in UntypedStorage",
        ),
        ("FloatStorage", ("big",), {"device": "cpu"}, RuntimeError, "'device' can only be specified in UntypedStorage"),
        (
            "FloatStorage",
            ("big", 3),
            {},
            ValueError,
            "buffer has only 8 elements after offset 0, but specified a size of 3",
        ),
        ("FloatStorage", ("big", -1, 9), {}, ValueError, "no greater than buffer length (9) , but got 8"),
    ],
)
def test_storages_that_cannot_be_made_of_buffers(of, arguments, named, error, message):
    with pytest.raises(error) as raised:
        getattr(torch, of).from_buffer(bytes(8), *arguments, **named)
    assert message in str(raised.value)


def test_storages_without_memory():
    storage = torch.ones(3, device="meta").storage()
    with pytest.raises(NotImplementedError, match="Not available for 'meta' device type"):
        storage[0]
    with pytest.raises(RuntimeError, match="_share_fd_: only available on CPU"):
        storage._share_fd_cpu_()
    assert torch.storage._dtype_to_storage_type_map()[torch.float32] == "FloatStorage"
    with pytest.raises(RuntimeError, match="Only child classes of _LegacyStorage can be instantiated"):
        torch.storage._LegacyStorage()


def test_maps_of_elements():
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    assert x.clone().map_(y, lambda a, b: a + b).tolist() == [4.0, 6.0]
    assert x.clone().map2_(y, y, lambda a, b, c: a + b * c).tolist() == [10.0, 18.0]
    assert x.is_same_size(y) and not x.is_same_size(torch.ones(1))
    with pytest.raises(
        RuntimeError, match=r"Can't call map_\(\) on Variable that requires grad. Use var.detach\(\).map_\(\) instead."
    ):
        x.map_(torch.ones(2, requires_grad=True), lambda a, b: a)
    with pytest.raises(TypeError, match="must be real number, not str"):
        x.apply_(lambda value: "str")


def test_parts_of_complex_numbers_can_be_written():
    z = torch.zeros(2, dtype=torch.complex64)
    z.real = torch.ones(2)
    z.imag = 2
    assert z.tolist() == [1 + 2j, 1 + 2j]
    with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex dtypes."):
        torch.zeros(2).imag = 1


def test_modes_of_distances():
    a, b = torch.ones(2, 2), torch.zeros(2, 2)
    expected = torch.cdist(a, b)
    assert torch.allclose(torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist"), expected)
    with pytest.raises(ValueError, match="x is not a valid value for compute_mode"):
        torch.cdist(a, b, compute_mode="x")


def test_slices_of_floats_and_the_default_type():
    x = torch.ones(3)
    with pytest.raises(TypeError, match="slice indices must be integers or None or have an __index__ method"):
        x[0.0:2.0]
    assert x.int().type(torch.Tensor).dtype is torch.float32
    assert torch.GradScaler is torch.amp.GradScaler
    with pytest.raises(TypeError, match="argument 'warn_only' must be bool, not int"):
        torch.use_deterministic_algorithms(True, warn_only=1)


def test_files_of_which_little_is_known():
    class Few:
        def __init__(self, data):
            self.file = io.BytesIO(data)
            for name in ("read", "readline", "seek", "tell"):
                setattr(self, name, getattr(self.file, name))

    kept = io.BytesIO()
    torch.save(torch.arange(3), kept)
    assert torch.load(Few(kept.getvalue())).tolist() == [0, 1, 2]


def test_new_tensors_that_require_a_gradient():
    x = torch.ones(2)
    for made in (
        x.new_empty((2,), requires_grad=True),
        x.new_zeros(2, requires_grad=True),
        x.new_ones(2, requires_grad=True),
        x.new_full((2,), 1.0, requires_grad=True),
        x.new_empty_strided((2,), (1,), requires_grad=True),
    ):
        assert made.requires_grad and made.is_leaf
    assert not x.new_zeros(2).requires_grad
    with pytest.raises(RuntimeError, match="can require gradients"):
        x.new_zeros(2, dtype=torch.int64, requires_grad=True)


def test_grids_of_unlike_tensors():
    a, b = torch.ones(2), torch.ones(3)
    with pytest.raises(RuntimeError, match="meshgrid expects all tensors to have the same device"):
        torch.meshgrid(a, b.to("meta"), indexing="ij")
    with pytest.raises(RuntimeError, match='indexing must be one of "xy" or "ij", but received: '):
        torch.meshgrid(a, b, indexing="")
    with pytest.warns(UserWarning, match="it will be required to pass the indexing argument"):
        torch.meshgrid(a, b)


def test_buffers_and_scalars_of_numpy():
    with pytest.raises(ValueError, match="object does not implement Python buffer protocol."):
        torch.frombuffer([1, 2], dtype=torch.uint8)
    with pytest.warns(UserWarning, match="The given buffer is not writable"):
        assert torch.frombuffer(b"abcd", dtype=torch.uint8).tolist() == [97, 98, 99, 100]
    scalar = np.float64(0.5)
    assert torch.asarray(scalar).dtype is torch.float64
    with pytest.raises(RuntimeError, match="can't alias NumPy scalars."):
        torch.asarray(scalar, copy=False)
    source = torch.ones(2)
    capsule = torch.utils.dlpack.to_dlpack(source)
    assert torch.asarray(capsule).tolist() == [1.0, 1.0]


def test_random_values_are_those_of_the_seed_below_the_upper_bound():
    torch.manual_seed(1)
    drawn = make_tensor((2, 2), dtype=torch.float32, device="cpu")
    torch.manual_seed(1)
    assert torch.equal(drawn, torch.empty(2, 2).uniform_(-9, 9))
    for dtype in (torch.float16, torch.bfloat16):
        assert (make_tensor(20000, dtype=dtype, device="cpu", low=0, high=1) < 1).all()
    every = make_tensor((3, 4), dtype=torch.cfloat, device="cpu", noncontiguous=True)
    assert every.shape == (3, 4) and every.stride() == (8, 2) and every.storage_offset() == 1


def test_slices_with_nan_are_all_distinct():
    x = torch.tensor([[1.0, float("nan")], [1.0, float("nan")], [0, 2], [0, 2]])
    values, counts = torch.unique(x, dim=0, return_counts=True)
    assert values.shape == (3, 2) and counts.tolist() == [2, 1, 1]


def test_private_decompositions_write_into_buffers():
    x = torch.eye(3) + 1
    for run in (torch.ops.aten._linalg_svd, torch.ops.aten._linalg_eigh):
        made = run(x)
        buffers = tuple(torch.empty(0) for _ in made)
        assert all(torch.equal(a, b) for a, b in zip(made, getattr(torch, run.__name__)(x, out=buffers)))


def test_sizes_of_anything_once_the_extension_is_there():
    """It makes sizes itself; those of generators and ranges, copies, pickles and subclasses too."""

    class Own(torch.Size):
        pass

    assert (torch.ones(2, 3) + 1).shape == (2, 3)
    for sizes in ((n for n in (1, 2)), range(1, 3), [1, 2], (1, 2), {1: 0, 2: 0}, [torch.tensor(1), True + 1]):
        made = torch.Size(sizes)
        assert type(made) is torch.Size and made == (1, 2) and all(type(n) is int for n in made)
    assert torch.Size() == () and torch.Size.__new__(torch.Size, [4]) == (4,)
    for made in (
        copy.deepcopy(torch.Size([5])),
        copy.copy(torch.Size([5])),
        pickle.loads(pickle.dumps(torch.Size([5]))),
    ):
        assert type(made) is torch.Size and made == (5,)
    assert type(Own(n for n in (1, 2))) is Own and Own([1, 2])[:1] == (1,)
    with pytest.raises(TypeError):
        torch.Size([1.5])
    with pytest.raises(TypeError):
        torch.Size(1, 2)


def test_values_of_any_sequence():
    class Two:
        def __getitem__(self, index):
            return [5, 6][index]

        def __len__(self):
            return 2

    double = torch.ones(2, dtype=torch.float64)
    assert torch.Tensor(range(3)).tolist() == [0.0, 1.0, 2.0] and torch.LongTensor(range(2)).tolist() == [0, 1]
    assert double.new(collections.deque([1, 2])).dtype is torch.float64
    assert torch.FloatTensor(array.array("f", [1, 2.5])).tolist() == [1.0, 2.5]
    assert torch.Tensor(Two()).tolist() == [5.0, 6.0] and torch.Tensor(memoryview(b"ab")).tolist() == [97.0, 98.0]
    with pytest.raises(TypeError, match="invalid data type 'bytes'"):
        torch.Tensor(b"ab")
    with pytest.raises(TypeError, match=r"data must be a sequence \(got dict\)"):
        torch.Tensor({1: 2})
