"""Files that could do harm are refused, and damaged ones are errors."""

from __future__ import annotations

import io
import os
import pickle
import re
import struct
import subprocess
import zipfile

import numpy as np
import pytest
from _saving import edited, saved

import mindtorch_v2 as torch
from mindtorch_v2 import serialization


@pytest.fixture(autouse=True)
def no_safe_globals():
    serialization.clear_safe_globals()
    yield
    serialization.clear_safe_globals()


# -------------------------------------------------------------------------------------------------------------- weights only


class Custom:
    def __init__(self):
        self.value = 1


def test_other_classes_must_be_allowed():
    file = saved(Custom()).getvalue()
    name = f"{Custom.__module__}.Custom"

    def load():
        return torch.load(io.BytesIO(file))

    with pytest.raises(pickle.UnpicklingError) as caught:
        load()
    text = str(caught.value)
    assert text.startswith("Weights only load failed.")
    assert (
        f"WeightsUnpickler error: Unsupported global: GLOBAL {name} was not an allowed global by default. Please use "
        f"`torch.serialization.add_safe_globals([{name}])` or the `torch.serialization.safe_globals([{name}])` context manager"
    ) in text
    assert serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(file)) == [name]
    with serialization.safe_globals([Custom]):
        assert load().value == 1 and serialization.get_safe_globals() == [Custom]
        assert serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(file)) == []
    assert serialization.get_safe_globals() == []
    serialization.add_safe_globals([(Custom, name)])
    assert load().value == 1
    serialization.clear_safe_globals()
    with pytest.raises(pickle.UnpicklingError):
        load()
    assert torch.load(io.BytesIO(file), weights_only=False).value == 1


def test_numpy_arrays_can_be_allowed():
    file = saved({"x": np.arange(3.0)})
    core = np._core.multiarray
    with serialization.safe_globals([core._reconstruct, np.ndarray, np.dtype, type(np.dtype(np.float64))]):
        assert torch.load(file)["x"].tolist() == [0, 1, 2]


class Attack:
    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call[0], self.call[1:]


def test_attacks_by_names(tmp_path):
    trace = tmp_path / "trace"
    attacks = [
        (
            Attack(os.system, f"touch {trace}"),
            "unsupported GLOBAL (posix|nt).system whose module (posix|nt) is blocked",
        ),
        (Attack(eval, "1"), "GLOBAL eval was not an allowed global"),
        (Attack(getattr, "a", "upper"), "GLOBAL getattr was not an allowed global"),
        (
            Attack(subprocess.check_call, ["touch", str(trace)]),
            "GLOBAL subprocess.check_call was not an allowed global",
        ),
        (Attack(bytearray, 10**12), "bytearray can only be made from bytes"),
    ]
    for attack, message in attacks:
        for options in ({}, {"_use_new_zipfile_serialization": False}):
            with pytest.raises(pickle.UnpicklingError, match=message):
                torch.load(saved(attack, **options))
    assert not trace.exists()


STORAGE = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x03tQ"
REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n(" + STORAGE
NO_HOOKS = b"\x89ccollections\nOrderedDict\n)R"
DEEP = b"".join([b"K\x01", b"\x85" * 200_000])


def load_pickle(code):
    return torch.load(edited(saved(torch.ones(3)).getvalue(), **{"data.pkl": b"\x80\x02" + code}))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (b"X\x03\x00\x00\x00abcQ.", "persistent_load id must be tuple or int, but got <class 'str'>"),
        (b"X\x03\x00\x00\x00abc\x85Q.", "Only persistent_load of storage is allowed, but got abc"),
        (b"ctorch\nfloat32\n)R.", "Trying to call reduce for unrecognized function torch.float32"),
        (b"ctorch\nTensor\nJ\xff\xff\xff\x7f\x85R.", "Trying to call reduce for unrecognized function"),
        (b"ctorch.storage\nUntypedStorage\nJ\xff\xff\xff\x7f\x85R.", "Trying to call reduce for unrecognized function"),
        (b"ctorch._tensor\n_rebuild_from_type_v2\n(c__builtin__\nbytearray\nctorch\nTensor\nJ\xff\xff\xff\x7f\x85}tR.", "unrecognized function"),
        (b"ctorch\nTensor\n)\x81.", "Can only create new object for nn.Parameter or classes allowlisted via `add_safe_globals`"),
        (b"}}b.", "Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got <class 'dict'>"),
        (b"}K\x01a.", "Can only append to lists, but got <class 'dict'>"),
        (b"]K\x01K\x01s.", "Can only SETITEM for dict, collections.OrderedDict, collections.Counter, but got <class 'list'>"),
        (b"\x95\x00\x00\x00\x00\x00\x00\x00\x00N.", "Unsupported operand 149"),
        (b"\x93.", "Unsupported operand 147"),
        (b".", "the pickle is malformed"),
        (b"h\x05.", "the pickle is malformed"),
        (b"t.", "the pickle is malformed"),
        (b"X\x01\x00\x00\x00\xff.", "the pickle is malformed"),
        (b"}(K\x01u.", "the pickle is malformed"),
        (b"}" + DEEP + b"K\x01s.", "a key of nested tuples is too large"),
        (b"c__builtin__\nset\n](" + DEEP + b"e\x85R.", "a key of nested tuples is too large"),
        (b"c_codecs\nencode\nX\x01\x00\x00\x00aX\x0b\x00\x00\x00this.module\x86R.", "unsupported codec"),
        (STORAGE.replace(b"K\x03t", b"J\xff\xff\xff\xfft") + b".", "a storage cannot have -1 elements"),
        (STORAGE.replace(b"torch\nFloatStorage", b"torch\nSize") + b".", "a storage's persistent id is malformed"),
    ],
)  # fmt: skip
def test_pickles_made_by_hand_are_refused(code, message):
    with pytest.raises(pickle.UnpicklingError) as caught:
        load_pickle(code)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (REBUILD + b"K\x00K\x09\x85K\x01\x85" + NO_HOOKS + b"tR.", "setStorage: sizes [9], strides [1], storage offset 0, and itemsize 4 requiring a storage size of 36 are out of bounds for storage of size 12"),
        (REBUILD + b"K\x02K\x02\x85K\x01\x85" + NO_HOOKS + b"tR.", "requiring a storage size of 16 are out of bounds for storage of size 12"),
        (REBUILD + b"J\xff\xff\xff\xffK\x01\x85K\x01\x85" + NO_HOOKS + b"tR.", "Tensor: invalid storage offset -1"),
        (REBUILD + b"K\x02K\x03\x85J\xff\xff\xff\xff\x85" + NO_HOOKS + b"tR.", "Negative strides are not supported"),
        (REBUILD + b"K\x00\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x40\x85\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x40\x85" + NO_HOOKS + b"tR.", "overflowed"),
        (REBUILD + b"K\x00K\x01K\x01\x86K\x01\x85" + NO_HOOKS + b"tR.", "mismatch in length of strides and shape"),
        (REBUILD + b"K\x00X\x01\x00\x00\x00a\x85K\x01\x85" + NO_HOOKS + b"tR.", "a tensor's size must be a tuple of ints"),
        (REBUILD + b"NK\x01\x85K\x01\x85" + NO_HOOKS + b"tR.", "a tensor's storage offset must be an int"),
        (REBUILD + b"K\x00\x8a\x06\x00\x00\x00\x00\x00\x01\x85K\x00\x85" + NO_HOOKS + b"}X\x04\x00\x00\x00conj\x88stR.", "shares a smaller storage"),
        (b"ctorch._utils\n_rebuild_tensor_v2\n(NK\x00))" + NO_HOOKS + b"tR.", "a tensor is rebuilt from a storage, but got NoneType"),
        (REBUILD + b"K\x00K\x01\x85K\x01\x85\x89}K\x01NstR.", "a file cannot carry backward hooks"),
        (b"ctorch._utils\n_rebuild_parameter\n(N\x88NtR.", "a parameter is rebuilt from a tensor, but got NoneType"),
        (b"ctorch._utils\n_rebuild_meta_tensor_no_storage\n(NK\x01\x85K\x01\x85\x89tR.", "a tensor's dtype must be a torch.dtype"),
        (b"ctorch._tensor\n_rebuild_from_type_v2\n(" + REBUILD[:-len(STORAGE)-1] + b"ctorch\nTensor\n(" + STORAGE + b"K\x00K\x01\x85K\x01\x85" + NO_HOOKS + b"t}X\x08\x00\x00\x00_payloadNstR.", "'_payload' cannot be set on a tensor"),
        (STORAGE.replace(b"K\x03t", b"K\x09t") + b".", "record size (12 bytes) does not match expected size (36 bytes"),
        (STORAGE.replace(b"K\x03t", b"\x8a\x06\x00\x00\x00\x00\x00\x01t") + b".", "record size (12 bytes) does not match expected size"),
        (STORAGE.replace(b"X\x01\x00\x00\x000", b"X\x05\x00\x00\x00../..") + b".", "failed locating file data/../.."),
    ],
)  # fmt: skip
def test_tensors_made_by_hand_are_refused(code, message):
    with pytest.raises(RuntimeError) as caught:
        load_pickle(code)
    assert message in str(caught.value)


def test_a_pickle_that_ends_early():
    for code in (b"", b"K", b"K\x01", b"X\xff\xff\xff\x7fab", b"ctorch"):
        with pytest.raises(EOFError):
            load_pickle(code)


def test_arguments_that_contradict():
    with pytest.raises(RuntimeError, match="Can not safely load weights when explicit pickle_module is specified"):
        torch.load(saved(1), weights_only=True, pickle_module=pickle)
    assert torch.load(saved(Custom()), pickle_module=pickle).value == 1
    assert torch.load(saved(torch.ones(1), pickle_module=pickle)).item() == 1


def test_environment_forces_the_mode(monkeypatch):
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    assert torch.load(saved(Custom())).value == 1
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="should be set, but both were set"):
        torch.load(saved(1))
    monkeypatch.delenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    with pytest.raises(pickle.UnpicklingError):
        torch.load(saved(Custom()), weights_only=False)


# ------------------------------------------------------------------------------------------------------------- damaged files


def test_damaged_archives():
    raw = saved(torch.ones(100)).getvalue()
    damaged = [
        (raw[:-30], "failed finding central directory"),
        (raw[:300], "failed finding central directory"),
        (b"PK\3\4garbage", "not a ZIP archive"),
        (edited(raw, **{"data/0": None}).getvalue(), "failed locating file data/0: file not found"),
        (
            edited(raw, **{"data/0": b"1234"}).getvalue(),
            r"record size \(4 bytes\) does not match expected size \(400 bytes",
        ),
        (edited(raw, **{"data/0": bytes(4000)}).getvalue(), r"record size \(4000 bytes\) does not match expected size"),
        (edited(raw, **{"data.pkl": None}).getvalue(), "failed locating file data.pkl"),
        (edited(raw, version=None).getvalue(), r'Expected hasRecord\("version"\) to be true, but got false'),
        (
            edited(raw, version=b"99\n").getvalue(),
            "file with version 99, but the maximum supported version for reading is 10",
        ),
        (
            raw.replace(struct.pack("<f", 1) * 5, struct.pack("<f", 2) * 5, 1),
            "failed reading file data/0: file read failed",
        ),
    ]
    for content, message in damaged:
        with pytest.raises(RuntimeError, match=message):
            torch.load(io.BytesIO(content))


def test_any_damage_is_an_error_and_not_a_crash():
    raw = saved({"a": torch.ones(3), "b": [1, "x", (2,)]}).getvalue()
    draw = np.random.default_rng(0)
    outcomes = set()
    for _ in range(600):
        broken = bytearray(raw)
        for at in draw.integers(0, len(raw), draw.integers(1, 4)):
            broken[at] = draw.integers(0, 256)
        if draw.random() < 0.2:
            del broken[draw.integers(0, len(raw)) :]
        try:
            torch.load(io.BytesIO(bytes(broken)))
            outcomes.add("read")
        except (RuntimeError, ValueError, EOFError, pickle.UnpicklingError, TypeError, AttributeError) as error:
            outcomes.add(type(error).__name__)
    assert {"read", "RuntimeError"} <= outcomes


def test_a_compressed_archive_is_read_and_a_bomb_is_not():
    raw = saved(torch.zeros(1000)).getvalue()
    source, out = zipfile.ZipFile(io.BytesIO(raw)), io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for entry in source.infolist():
            target.writestr(entry.filename, source.read(entry))
    assert torch.load(io.BytesIO(out.getvalue())).tolist() == [0] * 1000
    entry = zipfile.ZipFile(out).getinfo("archive/data/0")
    # The directory claims what no compression can give.
    bomb = out.getvalue().replace(
        struct.pack("<II", entry.compress_size, 4000), struct.pack("<II", entry.compress_size, 2**31)
    )
    with pytest.raises(RuntimeError, match="impossible size|file read failed"):
        torch.load(io.BytesIO(bomb))


def test_damaged_files_of_the_old_form():
    raw = saved(torch.ones(100), _use_new_zipfile_serialization=False).getvalue()
    with pytest.raises(RuntimeError, match="unexpected EOF, expected 400 more bytes"):
        torch.load(io.BytesIO(raw[:-8]))
    with pytest.raises(RuntimeError, match="storage has wrong byte size: expected 100 elements"):
        torch.load(io.BytesIO(raw.replace(struct.pack("<q", 100), struct.pack("<q", 101))))
    greedy = re.sub(rb"(cpuq.)Kd", lambda found: found[1] + b"J\xff\xff\xff\x7f", raw)
    assert greedy != raw
    with pytest.raises(RuntimeError, match="the file is too short for its storages"):
        torch.load(io.BytesIO(greedy))
    with pytest.raises(RuntimeError, match="Invalid magic number; corrupt file"):
        torch.load(io.BytesIO(pickle.dumps([1, 2], 2)))
    with pytest.raises(EOFError):
        torch.load(io.BytesIO(b""))
    with pytest.raises(pickle.UnpicklingError, match="Unsupported operand 103"):
        torch.load(io.BytesIO(b"garbage"))
