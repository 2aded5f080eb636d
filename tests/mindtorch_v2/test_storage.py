"""Root memory, strided views and storage objects, over plain arrays."""

from __future__ import annotations

import copy
import os
import pickle

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import mindtorch_v2 as torch
from mindtorch_v2 import _dtype
from mindtorch_v2._memory import address, empty_strided, root_address, root_bytes, storage_offset, strided_view
from mindtorch_v2._storage import MetaStorage, UntypedStorage, storage_of
from mindtorch_v2._typed_storage import LEGACY_STORAGES, TypedStorage

FloatStorage = LEGACY_STORAGES["FloatStorage"]


def cube(dtype=np.float32):
    return np.arange(24).reshape(2, 3, 4).astype(dtype)


def owners():
    c = cube()
    return {
        "C": c,
        "F": np.asfortranarray(c),
        "permuted": c.transpose(1, 0, 2).copy(order="K"),
        "bfloat16": cube(ml_dtypes.bfloat16),
        "bytes": np.frombuffer(c.tobytes(), np.float32).reshape(2, 3, 4),
        "0-dim": np.array(3.0, np.float32),
        "empty": np.empty((0, 3), np.float32),
    }


# ----------------------------------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize("name", owners())
def test_root_covers_the_owner(name):
    array = owners()[name]
    root = root_bytes(array)
    assert type(root) is np.ndarray and root.dtype == np.uint8 and root.ndim == 1
    assert root.nbytes == array.nbytes
    assert root.flags.writeable == array.flags.writeable
    if array.size:
        assert address(root) == array.__array_interface__["data"][0]
    assert root_bytes(root_bytes(array)).nbytes == array.nbytes


@pytest.mark.parametrize("name", ["C", "F", "permuted", "bfloat16", "bytes"])
@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[1:, 1:, 2:],
        lambda a: a.T[1:],
        lambda a: a[1].T,
        lambda a: a[0, 1, 2:3],
        lambda a: np.broadcast_to(a[:1, :1], (5, 2, 3, 4)),
        lambda a: np.lib.stride_tricks.sliding_window_view(a[1], (2, 2)),
        lambda a: np.lib.stride_tricks.as_strided(a[1], (2,), (4,)),
        lambda a: a[1, 1:2, :1].view(np.uint8),
    ],
)
def test_views_share_the_root_of_their_owner(name, view):
    owner = owners()[name]
    seen = view(owner)
    assert root_address(seen) == root_address(owner)
    assert root_bytes(seen).nbytes == owner.nbytes
    distance = seen.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    assert storage_offset(seen) == distance // seen.itemsize
    # Back to the whole owner, from the view.
    back = strided_view(seen, (owner.nbytes // seen.itemsize,), (1,), -storage_offset(seen))
    assert back.tobytes() == root_bytes(owner).tobytes()


def test_an_owner_that_is_not_dense_has_the_root_of_its_span():
    values = cube()
    sparse = np.asarray(_Lender(values[:, ::2, ::-1]))
    assert root_address(sparse) == values.__array_interface__["data"][0]
    assert root_bytes(sparse).nbytes == values.nbytes
    assert storage_offset(sparse) == 3


class _Lender:
    def __init__(self, array):
        self.kept = array
        self.__array_interface__ = array.__array_interface__


def test_strided_view_writes_through():
    a = cube()
    v = strided_view(a[1:], (2, 3), (4, 1), -8)
    v[:] = -1
    assert (a.reshape(-1)[4:7] == -1).all() and (a.reshape(-1)[8:11] == -1).all()
    assert a[1, 0, 0] == 12


def test_read_only_memory_stays_viewable():
    view = strided_view(np.frombuffer(bytes(16), np.float32), (2, 2), (1, 2), 0)
    assert not view.flags.writeable and view.shape == (2, 2)
    broadcast = np.broadcast_to(np.float32([1, 2]), (3, 2))
    assert strided_view(broadcast, (2, 1), (1, 1), 0).tolist() == [[1], [2]]


@pytest.mark.parametrize("base", [cube(), cube()[:, 1:], cube().T])
@pytest.mark.parametrize(
    ("shape", "strides", "offset", "message"),
    [
        ((3, 3), (30, 1), None, "setStorage: sizes [3, 3], strides [30, 1], storage offset 0, and itemsize 4 requiring a storage size of 252 are out of bounds for storage of size 96"),
        ((), (), 24, "setStorage: sizes [], strides [], storage offset 24, and itemsize 4 requiring a storage size of 100 are out of bounds for storage of size 96"),
        ((3,), (-1,), 5, "as_strided: Negative strides are not supported at the moment, got strides: [-1]"),
        ((3,), (1,), -1, "Tensor: invalid storage offset -1"),
        ((3, 3), (1,), 0, "mismatch in length of strides and shape"),
        ((2**62, 4), (3, 1), 0, "Storage size calculation overflowed with sizes=[4611686018427387904, 4] and strides=[3, 1]"),
        ((-3,), (1,), 0, "Storage size calculation overflowed with sizes=[-3] and strides=[1]"),
    ],
)  # fmt: skip
def test_views_that_leave_the_root_are_refused(base, shape, strides, offset, message):
    relative = (offset or 0) - storage_offset(base)
    with pytest.raises(RuntimeError) as caught:
        strided_view(base, shape, strides, relative)
    assert str(caught.value) == message


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_strided_view_agrees_with_indexing_the_root(data):
    flat = np.arange(40, dtype=np.int16)
    base = data.draw(st.sampled_from([flat, flat[7:], flat.reshape(5, 8).T, flat.reshape(5, 8)[1:, 2:5]]))
    ndim = data.draw(st.integers(0, 3))
    shape = data.draw(st.lists(st.integers(0, 4), min_size=ndim, max_size=ndim))
    strides = data.draw(st.lists(st.integers(0, 9), min_size=ndim, max_size=ndim))
    start = data.draw(st.integers(0, 39))
    reach = start + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    if 0 not in shape and reach >= 40:
        with pytest.raises(RuntimeError, match="are out of bounds for storage of size 80"):
            strided_view(base, shape, strides, start - storage_offset(base))
        return
    view = strided_view(base, shape, strides, start - storage_offset(base))
    assert view.shape == tuple(shape)
    assert view.strides == tuple(2 * s for s in strides)
    for index in np.ndindex(*shape):
        assert view[index] == start + sum(i * s for i, s in zip(index, strides, strict=True))


@pytest.mark.parametrize(
    ("shape", "strides", "nbytes"),
    [((2, 3), (3, 1), 24), ((2, 3), (1, 2), 24), ((2, 1, 3), (3, 50, 1), 24), ((), (), 4), ((0, 3), (3, 1), 0), ((3,), (0,), 4), ((2, 2), (5, 1), 28)],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_empty_strided(shape, strides, nbytes, dtype):
    made = empty_strided(shape, strides, np.dtype(dtype))
    assert made.shape == shape and made.strides == tuple(4 * s for s in strides)
    assert root_bytes(made).nbytes == nbytes
    assert made.flags.writeable and made.dtype == dtype


# --------------------------------------------------------------------------------------------------------- untyped storage


def test_storages_of_one_root_are_equal():
    a = cube()
    whole, part = storage_of(a), storage_of(a[1:].T)
    assert whole == part and hash(whole) == hash(part)
    assert whole.data_ptr() == part.data_ptr() != 0
    assert whole != storage_of(a.copy())
    assert storage_of(np.empty((0,), np.float32)).data_ptr() == 0


def test_bytes_and_slices():
    s = UntypedStorage([1, 2, 300])
    assert s.tolist() == [1, 2, 44] and len(s) == s.nbytes() == s.size() == 3
    assert s[-1] == 44
    part = s[1:]
    part.fill_(7)
    assert s.tolist() == [1, 7, 7]
    assert part.nbytes() == 2 and part.data_ptr() == s.data_ptr() + 1 and part != s
    assert s[2:1].nbytes() == 0
    s[0] = 258
    s[1:] = 9
    assert bytes(s) == bytes([2, 9, 9])
    assert repr(s) == " 2\n 9\n 9\n[torch.storage.UntypedStorage(device=cpu) of size 3]"
    # The part is a storage of its own for what is made of it.
    assert root_bytes(part._root.view(np.int8)).nbytes == 2


def test_errors_of_untyped_storages():
    s = UntypedStorage([1, 2, 3])
    with pytest.raises(IndexError, match="index 7 out of range for storage of size 3"):
        s[7]
    with pytest.raises(RuntimeError, match="Trying to slice with a step of 2, but only a step of 1 is supported"):
        s[::2]
    with pytest.raises(TypeError, match="can't index a torch.UntypedStorage with str"):
        s["a"]
    with pytest.raises(RuntimeError, match="fill_ expects int, but got float"):
        s.fill_(1.5)
    with pytest.raises(RuntimeError, match="size does not match, self was 3 bytes but src was 1 bytes"):
        s.copy_(UntypedStorage([9]))
    with pytest.raises(TypeError, match=r"copy_\(\): argument 'src' \(position 1\) must be torch.Storage, not int"):
        s.copy_(3)
    with pytest.raises(RuntimeError, match="Expected a sequence type, but got float"):
        UntypedStorage(1.5)
    with pytest.raises(RuntimeError, match="one of the items was of type str instead of int"):
        UntypedStorage(["a"])


def test_resize_leaves_arrays_of_numpy_where_they_are():
    s = UntypedStorage([1, 2, 3])
    assert s.resize_(2).tolist() == [1, 2]
    assert s.resize_(5).tolist()[:2] == [1, 2] and s.nbytes() == 5
    seen = s._root.view(np.int8)
    assert s.resize_(50).tolist()[:2] == [1, 2] and s.nbytes() == 50
    assert seen.nbytes == 5
    with pytest.raises(RuntimeError, match="not resizable"):
        torch.frombuffer(bytearray(8), dtype=torch.uint8).untyped_storage().resize_(4)


def test_resize_under_tensors():
    t = torch.arange(6.0)
    view = t[2:]
    t.untyped_storage().resize_(0)
    assert t.untyped_storage().nbytes() == view.untyped_storage().size() == 0
    assert t.shape == (6,) and view.stride() == (1,)
    assert t.untyped_storage().resize_(24).nbytes() == 24
    t.copy_(torch.ones(6))
    assert view.tolist() == [1.0] * 4 and view.untyped_storage().nbytes() == 24
    assert len(view.untyped_storage().resize_(8).tolist()) == 8
    t.untyped_storage().resize_(28)
    t.fill_(3)
    assert view.tolist() == [3.0] * 4 and view.untyped_storage().nbytes() == 28


def test_private_file_mapping(tmp_path):
    path = tmp_path / "ten"
    path.write_bytes(bytes(range(10)))
    s = UntypedStorage.from_file(str(path), shared=False, nbytes=8)
    assert s.tolist() == list(range(8)) and s.is_shared() and s.filename is None
    s[0] = 77
    assert path.read_bytes()[0] == 0
    part = s[4:8]
    assert part._root.view(np.int32).tolist() == [0x07060504]
    assert storage_of(part._root.view(np.int32)).nbytes() == 4
    assert UntypedStorage.from_file(path).nbytes() == 0
    with pytest.raises(RuntimeError, match="size <10> is smaller than the required mapping size <20>"):
        UntypedStorage.from_file(path, nbytes=20)
    with pytest.raises(RuntimeError, match="unable to open file <.*nope> in read-only mode: No such file or directory"):
        UntypedStorage.from_file(str(tmp_path / "nope"), nbytes=3)


def test_shared_file_mapping_writes_and_grows_the_file(tmp_path):
    path = tmp_path / "new"
    s = UntypedStorage.from_file(str(path), shared=True, nbytes=3)
    s.fill_(5)
    s._root.base.flush()
    assert path.read_bytes() == b"\x05\x05\x05"
    assert s.filename == str(path)


def test_shared_memory_is_seen_by_a_fork():
    s = UntypedStorage([0, 0]).share_memory_()
    assert s.is_shared() and s.tolist() == [0, 0]
    pid = os.fork()
    if pid == 0:
        s[1] = 42
        os._exit(0)
    os.waitpid(pid, 0)
    assert s.tolist() == [0, 42]
    with pytest.raises(RuntimeError, match="cannot be moved"):
        storage_of(cube()).share_memory_()


def test_copies_and_pickles():
    s = UntypedStorage([1, 2, 3])
    for made in (copy.copy(s), copy.deepcopy(s), s.clone(), pickle.loads(pickle.dumps(s))):
        assert made != s and made.tolist() == [1, 2, 3]
        made[0] = 9
    assert s[0] == 1
    a = cube()
    first, second = copy.deepcopy([storage_of(a), storage_of(a[1])])
    assert first == second


def test_byteswap():
    s = UntypedStorage([1, 2, 3, 4])
    s.byteswap(_dtype.int16)
    assert s.tolist() == [2, 1, 4, 3]


def test_meta_storage():
    s = UntypedStorage(12, device="meta")
    assert type(s) is MetaStorage and s.nbytes() == 12 and s.data_ptr() == 0 and s.device.type == "meta"
    assert repr(s) == "...\n[torch.storage.UntypedStorage(device=meta) of size 12]"
    for use in (s.tolist, lambda: s[0], lambda: bytes(s)):
        with pytest.raises(NotImplementedError, match="Not available for 'meta' device type"):
            use()
    assert s == s and s != s.clone() and s.clone().nbytes() == 12
    assert pickle.loads(pickle.dumps(s)).nbytes() == 12


# ----------------------------------------------------------------------------------------------------------- typed storage


def test_typed_storage_serves_as_attribute_and_as_method():
    a = cube()
    s = TypedStorage(wrap_storage=storage_of(a[1:]), dtype=_dtype.float32)
    assert s() is s
    assert s.data.tolist() == s.tolist() == list(range(24))
    assert s[3] == 3.0 and type(s[3]) is float
    s[3] = 99
    assert a[0, 0, 3] == 99
    assert (len(s), s.nbytes(), s.element_size()) == (24, 96, 4)
    assert s.type() == "torch.FloatStorage" and s.pickle_storage_type() == "FloatStorage"


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2", "float16", "int8", "bool", "complex64"])
def test_elements_are_python_numbers(dtype):
    s = TypedStorage([1, 0], dtype=_dtype.by_name(dtype))
    assert s.tolist() == [1, 0]
    assert type(s[0]) in (float, int, bool, complex)
    assert s.float().tolist() == [1.0, 0.0] and s.float().dtype is _dtype.float32


def test_legacy_names():
    s = FloatStorage([1, 2])
    assert type(s) is TypedStorage and isinstance(s, FloatStorage)
    assert not isinstance(s, LEGACY_STORAGES["LongStorage"])
    assert FloatStorage.dtype is _dtype.float32
    assert s.type("torch.DoubleStorage").dtype is _dtype.float64
    assert repr(s) == " 1.0\n 2.0\n[torch.storage.TypedStorage(dtype=torch.float32, device=cpu) of size 2]"
    assert len(LEGACY_STORAGES) == 17


def test_errors_of_typed_storages():
    s = FloatStorage(3)
    with pytest.raises(RuntimeError, match="slices are only supported in UntypedStorage.__getitem__"):
        s[0:1]
    with pytest.raises(IndexError, match="index 20 out of range for storage of size 3"):
        s[20]
    with pytest.raises(RuntimeError, match="Argument 'dtype' must be specified"):
        TypedStorage(wrap_storage=UntypedStorage(8))
    with pytest.raises(TypeError, match="Argument 'wrap_storage' must be UntypedStorage"):
        TypedStorage(wrap_storage=s, dtype=_dtype.int8)
    with pytest.raises(KeyError, match="torch.uint16 is not recognized"):
        TypedStorage(2, dtype=_dtype.uint16).pickle_storage_type()


def test_typed_copies_and_pickles(tmp_path):
    s = FloatStorage([1, 2.5])
    for made in (copy.deepcopy(s), s.clone(), pickle.loads(pickle.dumps(s))):
        assert made.tolist() == [1, 2.5] and made.dtype is _dtype.float32 and made != s
    (tmp_path / "f").write_bytes(np.float32([1, 2, 3]).tobytes())
    assert FloatStorage.from_file(str(tmp_path / "f"), False, 2).tolist() == [1, 2]
    meta = TypedStorage(3, dtype=_dtype.int16, device="meta")
    assert meta.nbytes() == 6 and meta.float().nbytes() == 12


def test_storages_of_meta_tensors_are_storages_like_others():
    for meta, own in (
        (torch.TypedStorage([1, 2], dtype=torch.int8, device="meta"), torch.TypedStorage([1, 2], dtype=torch.int8)),
        (torch.empty(2, device="meta").untyped_storage(), torch.ones(2).untyped_storage()),
    ):
        assert isinstance(own, type(meta)) and meta.nbytes() == own.nbytes() and meta.device.type == "meta"


def test_set_makes_a_storage_larger_where_the_sizes_change():
    t = torch.ones(1)
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 4"):
        t.set_(t.untyped_storage(), 3, (1,))
    t.set_(t.untyped_storage(), 0, (2, 3))
    assert t[0, 0] == 1 and t.untyped_storage().nbytes() == 24
    assert torch.UntypedStorage(np.int8(3)).nbytes() == 3


def test_tensors_that_look_into_a_storage_grow_with_it():
    x = torch.arange(4.0)
    later, detached, bits = x[1:], x.detach(), x.view(torch.int32)[2:]
    x.resize_(2, 3)
    x.zero_()
    assert later.tolist() == [0.0] * 3 and detached.tolist() == [0.0] * 4 and bits.tolist() == [0, 0]
    assert later.untyped_storage().nbytes() == 24 and later.data_ptr() == x.data_ptr() + 4
    part = x.view(-1)[4:]
    part.resize_(8)  # beyond the end, through a part
    part.fill_(5)
    assert x.tolist() == [[0.0, 0.0, 0.0], [0.0, 5.0, 5.0]] and x.untyped_storage().nbytes() == 48
    assert later.shape == (3,) and later.stride() == (1,) and detached.storage_offset() == 0
    every_other = torch.arange(6.0)[::2]
    every_other.untyped_storage().resize_(64)
    assert every_other.tolist() == [0.0, 2.0, 4.0] and every_other.untyped_storage().nbytes() == 64


def test_the_last_tensors_that_look_into_a_storage_grow_with_it():
    part = torch.arange(4.0)[1:]  # the whole is gone
    other = part.detach()  # and has the same array
    part.resize_(6)
    part.fill_(2)
    assert other.tolist() == [2.0] * 3 and other.data_ptr() == part.data_ptr()
    del other
    part.resize_(20)  # nobody else looks there
    assert part[:6].tolist() == [2.0] * 6 and part.storage_offset() == 1 and part.untyped_storage().nbytes() == 84
    before = part.data_ptr()
    with pytest.raises(RuntimeError):
        part.resize_(2**58)
    assert part.shape == (20,) and part.dtype == torch.float32 and part.data_ptr() == before


def test_what_a_gradient_reads_is_where_the_storage_is():
    x = torch.arange(3.0)
    weight = torch.ones(3, requires_grad=True)
    product = weight * x[:3]
    x.resize_(9)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()
