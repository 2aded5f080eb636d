"""Files: PyTorch's are read (fixtures/record_serialization.py), ours are as PyTorch's."""

from __future__ import annotations

import copy
import io
import pathlib
import pickle
import pickletools
import struct
import subprocess
import sys
import zipfile
from collections import Counter, OrderedDict

import numpy as np
import pytest
from _saving import edited, round_trip, saved

import mindtorch_v2 as torch
from mindtorch_v2 import serialization
from mindtorch_v2._storage import UntypedStorage
from mindtorch_v2._typed_storage import TypedStorage

FIXTURES = pathlib.Path(__file__).parent / "fixtures"


def same_memory(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


# ----------------------------------------------------------------------------------------------------------- PyTorch's files


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("saved_zip.pt", {}),
        ("saved_zip.pt", {"mmap": True}),
        ("saved_zip.pt", {"weights_only": False}),
        ("saved_legacy.pt", {}),
        ("saved_legacy.pt", {"weights_only": False}),
    ],
)
def test_files_of_pytorch(name, options):
    got = torch.load(FIXTURES / name, **options)
    assert got["base"].tolist() == [[0, 1, 2], [3, 4, 5]] and got["base"].dtype is torch.float32
    assert got["row"].tolist() == [[3, 4, 5]] and got["row"].storage_offset() == 3
    assert got["transposed"].stride() == (1, 3) and got["transposed"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert got["expanded"].stride() == (0, 1) and got["expanded"].shape == (4, 3)
    for view in ("row", "transposed", "expanded"):
        assert same_memory(got["base"], got[view])
    got["base"].fill_(7)
    assert got["row"].tolist() == [[7, 7, 7]]

    assert isinstance(got["parameter"], torch.nn.Parameter) and got["parameter"].requires_grad
    assert got["parameter"].tolist() == [1, 2]
    assert got["marked"].mark == "kept" and isinstance(got["marked"], torch.nn.Parameter)
    assert not got["frozen"].requires_grad and isinstance(got["frozen"], torch.nn.Parameter)
    for dtype in ("bfloat16", "float16", "float64"):
        assert got[dtype].dtype is getattr(torch, dtype) and got[dtype].tolist() == [1, 2.5]
    assert got["complex64"].tolist() == [1 + 2j]
    assert got["int8"].tolist() == [-1, 2] and got["bool"].tolist() == [True, False]
    assert got["empty"].shape == (0, 3) and got["number"].item() == 3
    assert got["leaf"].requires_grad and got["leaf"].is_leaf
    assert got["meta"].device.type == "meta" and got["meta"].shape == (2, 3)
    assert isinstance(got["buffer"], torch.nn.Buffer) and got["buffer"].tolist() == [5]
    assert got["rng"].dtype is torch.uint8 and got["rng"].shape == (5056,)
    torch.Generator().set_state(got["rng"])

    assert got["size"] == torch.Size([2, 3]) and type(got["size"]) is torch.Size
    assert got["dtype"] is torch.float32 and got["layout"] is torch.strided
    assert got["device"] == torch.device("cpu") and got["cuda"] == torch.device("cuda", 1)
    assert got["nested"] == [1, (2.5, None, "x", b"y", True, 2**70), {"set": {1, 2}}]
    assert got["counter"] == Counter("aab") and list(got["ordered"].items()) == [("b", 1), ("a", 2)]
    assert isinstance(got["storage"], TypedStorage) and got["storage"].tolist() == [1, 2]
    if name == "saved_zip.pt":
        assert got["uint16"].tolist() == [1, 60000] and got["uint16"].dtype is torch.uint16
        assert got["float8"].tolist() == [1, 2.5] and got["float8"].dtype is torch.float8_e5m2
        assert got["conjugate"].tolist() == [1 - 2j, 3] and got["negative"].tolist() == [-1, -1]
        assert got["untyped"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("weights_only", [True, False])
def test_what_depends_on_elements_that_come_later_in_files_of_the_old_form(weights_only):
    def read(name):
        return torch.load(FIXTURES / name, weights_only=weights_only)

    assert read("saved_legacy_conj.pt")["lazy"].tolist() == [1 - 2j]
    half = read("saved_legacy_complex_half.pt")
    assert half.dtype is torch.complex32 and half.tolist() == [1 + 2j, 3 - 1j]
    with open(FIXTURES / "saved_legacy_nested.pt", "rb") as file:
        content = file.read()
    stream = io.BytesIO(content + b"behind")
    nested = torch.load(stream, weights_only=weights_only)
    assert [part.tolist() for part in nested.unbind()] == [[1, 1], [1, 1, 1]]
    assert stream.read() == b"behind"


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("zipped", [True, False])
def test_nested_tensors(weights_only, zipped):
    got = torch.load(FIXTURES / "saved_nested.pt", weights_only=weights_only)
    assert [part.tolist() for part in got.unbind()] == [[1, 1], [1, 1, 1]]
    given = torch.nested.nested_tensor([torch.arange(6.0).reshape(2, 3), torch.ones(1, 3)])
    buffer = io.BytesIO()
    torch.save([given, torch.nested.nested_tensor([])], buffer, _use_new_zipfile_serialization=zipped)
    buffer.seek(0)
    back, empty = torch.load(buffer, weights_only=weights_only)
    assert back.is_nested and [part.tolist() for part in back.unbind()] == [[[0, 1, 2], [3, 4, 5]], [[1, 1, 1]]]
    assert empty.is_nested and len(empty.unbind()) == 0
    assert [part.tolist() for part in pickle.loads(pickle.dumps(given)).unbind()][1] == [[1, 1, 1]]


@pytest.mark.parametrize(
    ("sizes", "strides", "offsets"),
    [
        ([[5]], [[1]], [0]),
        ([[2]], [[1 << 61]], [0]),
        ([[1]], [[1]], [9]),
        ([[1]], [[1]], [-1]),
        ([[-1]], [[1]], [0]),
        ([[1]], [[1]], [0, 0]),
    ],
)
def test_a_nested_tensor_that_leads_out_of_its_buffer(sizes, strides, offsets):
    with pytest.raises(RuntimeError):
        torch._utils._rebuild_nested_tensor(
            torch.ones(4), torch.tensor(sizes), torch.tensor(strides), torch.tensor(offsets)
        )
    with pytest.raises(RuntimeError, match="memory of its own"):
        torch._utils._rebuild_nested_tensor(
            torch.ones(4),
            *[torch.ones(1, 1, dtype=torch.int64).expand(1 << 40, 1)] * 2,
            torch.zeros(1, dtype=torch.int64).expand(1 << 40),
        )


def test_a_whole_lstm_of_pytorch():
    module = torch.load(FIXTURES / "saved_lstm.pt", weights_only=False)
    assert type(module) is torch.nn.LSTM
    output, _ = module(torch.ones(2, 1, 3))
    assert output.sum().item() == pytest.approx(0.0032536089420318604, abs=1e-6)


def test_a_state_dict_of_pytorch_fits_a_module():
    state = torch.load(FIXTURES / "saved_state_dict.pt")
    assert type(state) is OrderedDict and state._metadata[""] == {"version": 1}
    module = torch.nn.Linear(3, 2)
    assert str(module.load_state_dict(state)) == "<All keys matched successfully>"
    assert module.weight.tolist() == state["weight"].tolist()


def test_a_module_of_pytorch_becomes_one_of_ours():
    with pytest.raises(pickle.UnpicklingError, match="GLOBAL torch.nn.modules.linear.Linear was not an allowed global"):
        torch.load(FIXTURES / "saved_module.pt")
    module = torch.load(FIXTURES / "saved_module.pt", weights_only=False)
    assert type(module) is torch.nn.Linear
    assert module(torch.ones(1, 3)).shape == (1, 2)


def test_functions_that_pytorch_compiles_are_found():
    # PyTorch pickles torch.add as getattr(torch._C._VariableFunctionsClass, "add").
    code = b"c__builtin__\ngetattr\n(ctorch._C\n_VariableFunctionsClass\nX\x03\x00\x00\x00addtR."
    file = edited(saved(1).getvalue(), **{"data.pkl": b"\x80\x02" + code})
    assert torch.load(file, weights_only=False) is torch.add


def test_a_generator_of_pytorch_goes_on():
    generator = torch.load(FIXTURES / "saved_generator.pt", weights_only=False)
    assert generator.initial_seed() == 5
    assert (
        torch.rand(3, generator=generator).tolist()
        == torch.rand(3, generator=torch.Generator().manual_seed(5)).tolist()
    )
    again = round_trip(generator, weights_only=False)
    assert torch.rand(2, generator=again).tolist() == torch.rand(2, generator=generator).tolist()


# ----------------------------------------------------------------------------------------------------------------- our files


def sample():
    base = torch.arange(6.0).reshape(2, 3)
    parameter = torch.nn.Parameter(torch.ones(2))
    parameter.mark = 3
    marked = torch.ones(1)
    marked.mark = [1]
    return {
        "base": base,
        "row": base[1:],
        "again": base,
        "transposed": base.T,
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "with_state": parameter,
        "marked": marked,
        "bfloat16": torch.ones(2, dtype=torch.bfloat16),
        "uint16": torch.ones(2, dtype=torch.uint16),
        "float8": torch.ones(2).to(torch.float8_e4m3fn),
        "meta": torch.empty(2, device="meta"),
        "size": base.shape,
        "dtype": torch.bfloat16,
        "device": torch.device("cpu"),
        "layout": torch.strided,
        "ordered": OrderedDict(a=torch.ones(1)),
        "nested": [1, (2.5, None, "x", b"y", True, 2**70), {"set": {1, 2}}, Counter("aab")],
        "typed": torch.arange(3).storage(),
    }


def test_our_files_hold_what_was_saved():
    was = sample()
    for options in ({}, {"weights_only": False}):
        got = round_trip(was, **options)
        for name in ("base", "row", "transposed", "parameter", "with_state", "bfloat16", "uint16", "float8"):
            assert got[name].tolist() == was[name].tolist() and got[name].dtype is was[name].dtype
            assert got[name].stride() == was[name].stride() and type(got[name]) is type(was[name])
            assert got[name].requires_grad == was[name].requires_grad
        assert got["again"] is got["base"] and same_memory(got["base"], got["row"])
        assert got["with_state"].mark == 3 and got["marked"].mark == [1]
        assert got["meta"].device.type == "meta"
        for name in ("size", "dtype", "device", "layout", "nested"):
            assert got[name] == was[name]
        assert got["ordered"]["a"].item() == 1 and got["typed"].tolist() == [0, 1, 2]


def test_the_archive_is_laid_out_as_pytorchs():
    raw = saved(sample()).getvalue()
    archive = zipfile.ZipFile(io.BytesIO(raw))
    names = archive.namelist()
    assert names[:4] == [
        f"archive/{name}" for name in ("data.pkl", ".format_version", ".storage_alignment", "byteorder")
    ]
    assert "archive/version" in names and archive.read("archive/version") == b"3\n"
    assert archive.testzip() is None
    for entry in archive.infolist():
        assert entry.compress_type == zipfile.ZIP_STORED
        name_length, extra_length = struct.unpack("<HH", raw[entry.header_offset + 26 : entry.header_offset + 30])
        assert (entry.header_offset + 30 + name_length + extra_length) % 64 == 0
    assert archive.read("archive/data/0") == np.arange(6, dtype=np.float32).tobytes()


def test_files_name_things_as_pytorch_does(tmp_path):
    module = torch.nn.Linear(2, 2)
    for protocol in (2, 4):
        pickled = zipfile.ZipFile(saved([sample(), module], pickle_protocol=protocol)).read("archive/data.pkl")
        assert b"mindtorch" not in pickled
        named = {arg for code, arg, _ in pickletools.genops(pickled) if code.name == "GLOBAL"}
        assert {
            "torch._utils _rebuild_tensor_v2",
            "torch._utils _rebuild_tensor_v3",
            "torch._utils _rebuild_parameter",
            "torch._utils _rebuild_parameter_with_state",
            "torch._utils _rebuild_meta_tensor_no_storage",
            "torch._tensor _rebuild_from_type_v2",
            "torch.serialization _get_layout",
            "torch.nn.modules.linear Linear",
            "torch.storage UntypedStorage",
            "torch FloatStorage",
            "torch BFloat16Storage",
            "torch Size",
            "torch Tensor",
            "torch device",
            "torch bfloat16",
        } <= named
    for function, name in [
        (torch.exp, "torch exp"),
        (torch.nn.functional.relu, "torch.nn.functional relu"),
        (torch.no_grad, "torch no_grad"),
    ]:
        file = saved(function)
        assert name.replace(" ", "\n").encode() in zipfile.ZipFile(file).read("archive/data.pkl")
        assert torch.load(file, weights_only=False) is function
    torch.save([1], tmp_path / "model.bin")
    assert zipfile.ZipFile(tmp_path / "model.bin").namelist()[0] == "model/data.pkl"


def test_the_old_form(tmp_path):
    was = {name: value for name, value in sample().items() if name not in ("uint16", "float8")}
    path = tmp_path / "old.pt"
    torch.save(was, path, _use_new_zipfile_serialization=False)
    assert not zipfile.is_zipfile(path)
    got = torch.load(path)
    assert got["row"].tolist() == [[3, 4, 5]] and same_memory(got["base"], got["row"])
    assert got["bfloat16"].tolist() == [1, 1] and got["nested"] == was["nested"]
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved with"):
        torch.load(path, mmap=True)


def test_a_views_whole_storage_is_kept_once():
    big = torch.zeros(1000)
    assert len(saved([big[:1], big[5:6], big]).getvalue()) < 4000 + 1500
    assert round_trip(big[3:5]).untyped_storage().nbytes() == 4000


def test_modules_round_trip():
    module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    copied = round_trip(module, weights_only=False)
    assert [p.tolist() for p in copied.parameters()] == [p.tolist() for p in module.parameters()]
    tied = torch.nn.ModuleList([torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)])
    tied[1].weight = tied[0].weight
    state = round_trip(tied.state_dict())
    assert same_memory(state["0.weight"], state["1.weight"])


def test_files_and_paths(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(torch.ones(2), str(path))
    assert torch.load(path).tolist() == torch.load(str(path)).tolist() == [1, 1]
    with open(path, "rb") as file:
        assert torch.load(file).tolist() == [1, 1]

    class WriteOnly:
        def __init__(self):
            self.parts = []

        def write(self, data):
            self.parts.append(bytes(data))
            return len(data)

    sink = WriteOnly()
    torch.save(torch.ones(2), sink)
    assert torch.load(io.BytesIO(b"".join(sink.parts))).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="Parent directory .*none does not exist"):
        torch.save(1, tmp_path / "none" / "x.pt")
    with pytest.raises(
        AttributeError, match="expected 'f' to be string, path, or a file-like object with a 'write' attribute"
    ):
        torch.save(1, 5)
    with pytest.raises(AttributeError, match="You can only torch.load from a file that is seekable"):
        torch.load(5)
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "missing.pt")
    with pytest.raises((AttributeError, pickle.PicklingError)):
        torch.save(lambda: 1, tmp_path / "unsaved.pt")
    assert not (tmp_path / "unsaved.pt").exists()


def test_mmap_leaves_the_storages_in_the_file(tmp_path):
    path = tmp_path / "x.pt"
    torch.save({"a": torch.arange(4.0), "b": torch.ones(3)}, path)
    got = torch.load(path, mmap=True)
    assert got["a"].untyped_storage().nbytes() == 16 and got["b"].untyped_storage().nbytes() == 12
    assert got["a"].untyped_storage().is_shared() and not same_memory(got["a"], got["b"])
    got["a"][0] = 9
    assert torch.load(path)["a"].tolist() == [0, 1, 2, 3]
    with serialization.set_default_mmap_options(serialization.MAP_SHARED):
        torch.load(path, mmap=True)["b"].fill_(5)
    assert serialization.get_default_mmap_options() == serialization.MAP_PRIVATE
    with pytest.raises(RuntimeError, match="file read failed"):
        torch.load(path)  # the change made the checksum false
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"):
        torch.load(io.BytesIO(path.read_bytes()), mmap=True)


def test_slices_of_a_mapped_file_become_tensors(tmp_path):
    # As safetensors reads its files.
    path = tmp_path / "weights"
    path.write_bytes(b"head" + np.arange(6, dtype=np.float32).tobytes())
    mapped = UntypedStorage.from_file(str(path), shared=False, nbytes=28).untyped()
    first, second = mapped[4:16], mapped[16:28]
    tensors = [
        torch.asarray(part, dtype=torch.uint8).view(dtype=torch.float32).reshape([3]) for part in (first, second)
    ]
    assert [t.tolist() for t in tensors] == [[0, 1, 2], [3, 4, 5]]
    assert [t.untyped_storage().nbytes() for t in tensors] == [12, 12]
    assert not same_memory(*tensors) and tensors[0].data_ptr() == first.data_ptr()
    tensors[0].fill_(9)
    assert tensors[1].tolist() == [3, 4, 5] and path.read_bytes()[4:8] == bytes(4)


def test_map_location():
    file = saved(torch.ones(2)).getvalue()

    def load(where):
        return torch.load(io.BytesIO(file), map_location=where)

    seen = []
    for where in (
        None,
        "cpu",
        torch.device("cpu"),
        {"cuda:0": "cpu"},
        lambda storage, tag: seen.append((type(storage), tag)),
    ):
        assert load(where).tolist() == [1, 1]
    assert seen == [(UntypedStorage, "cpu")]
    for where in ("meta", {"cpu": "meta"}, torch.device("meta"), lambda storage, tag: storage.to(device="meta")):
        assert load(where).device.type == "meta"
    with pytest.raises(
        RuntimeError, match="Attempting to deserialize object on a CUDA device but torch.cuda.is_available"
    ):
        load("cuda")
    with pytest.raises(
        RuntimeError,
        match=r"don't know how to restore data location of torch.storage.UntypedStorage \(tagged with zork\)",
    ):
        load("zork")
    with pytest.raises(TypeError, match="'int' object is not callable"):
        load(5)


def test_tensors_on_other_devices_come_to_the_cpu():
    raw = edited(
        saved(torch.ones(2)).getvalue(),
        **{"data.pkl": lambda data: data.replace(b"\x03\x00\x00\x00cpu", b"\x06\x00\x00\x00cuda:0")},
    )
    assert torch.load(raw, map_location="cpu").tolist() == [1, 1]
    raw.seek(0)
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
        torch.load(raw)


def test_foreign_byte_order():
    swapped = np.array([1, 2], np.float32).byteswap().tobytes()
    file = edited(saved(torch.ones(2)).getvalue(), **{"data/0": swapped, "byteorder": b"big"})
    assert torch.load(file).tolist() == [1, 2]
    with pytest.raises(ValueError, match="Unknown endianness type: zzz"):
        torch.load(edited(saved(torch.ones(2)).getvalue(), byteorder=b"zzz"))


def test_hooks_are_not_saved():
    leaf = torch.ones(2, requires_grad=True)
    leaf.register_hook(lambda grad: grad)
    with pytest.warns(UserWarning, match="backward hook .* on tensor will not be serialized"):
        file = saved(leaf)
    assert torch.load(file).requires_grad


def test_one_memory_under_two_dtypes_cannot_be_saved():
    x = torch.ones(4)
    with pytest.raises(
        RuntimeError, match="Cannot save multiple tensors or storages that view the same data as different types"
    ):
        saved([x, x.view(torch.int32)])


# -------------------------------------------------------------------------------------------------------- copies and pickles


def test_plain_pickles():
    x = torch.arange(6.0).reshape(2, 3)
    got = pickle.loads(pickle.dumps(x.T))
    assert got.tolist() == x.T.tolist() and got.stride() == (1, 3)
    p = pickle.loads(pickle.dumps(torch.nn.Parameter(torch.ones(1))))
    assert isinstance(p, torch.nn.Parameter) and p.requires_grad
    assert pickle.loads(pickle.dumps(torch.empty(2, device="meta"))).device.type == "meta"


def test_copy_shares_and_deepcopy_does_not():
    x = torch.arange(4.0)
    assert same_memory(copy.copy(x), x)
    a, v = copy.deepcopy([x, x[2:]])
    a.fill_(7)
    assert v.tolist() == [7, 7] and x.tolist() == [0, 1, 2, 3] and v.storage_offset() == 2
    leaf = torch.ones(2, requires_grad=True)
    leaf.mark = [1]
    leaf.grad = torch.ones(2)
    made = copy.deepcopy(leaf)
    assert made.requires_grad and made.is_leaf and made.mark == [1] and made.mark is not leaf.mark
    assert made.grad.tolist() == [1, 1] and made.grad is not leaf.grad
    assert copy.deepcopy(torch.empty(2, 3, device="meta").T).stride() == (1, 3)
    with pytest.raises(
        RuntimeError,
        match=r"Only Tensors created explicitly by the user \(graph leaves\) support the deepcopy protocol",
    ):
        copy.deepcopy(leaf * 2)


# -------------------------------------------------------------------------------------------------------- against PyTorch


def _reference():
    try:
        import torch as reference
    except ImportError:
        return None
    return reference if "mindtorch" not in (reference.__file__ or "") else None


@pytest.mark.skipif(_reference() is None, reason="needs PyTorch beside this library")
def test_pytorch_reads_our_files(tmp_path):
    reference = _reference()
    module = torch.nn.Linear(2, 2)
    torch.save(sample(), tmp_path / "ours.pt")
    torch.save(module, tmp_path / "module.pt")
    torch.save(torch.nn.LSTM(3, 4, 2), tmp_path / "lstm.pt")
    torch.save(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), tmp_path / "nested.pt")
    torch.save({"base": sample()["base"]}, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    for options in ({}, {"mmap": True}, {"weights_only": False}):
        got = reference.load(tmp_path / "ours.pt", **options)
        assert got["base"].tolist() == [[0, 1, 2], [3, 4, 5]] and got["transposed"].stride() == (1, 3)
        assert got["again"] is got["base"] and same_memory(got["base"], got["row"])
        assert type(got["parameter"]) is reference.nn.Parameter and got["with_state"].mark == 3
        assert got["bfloat16"].dtype is reference.bfloat16 and got["uint16"].dtype is reference.uint16
        assert got["dtype"] is reference.bfloat16 and got["layout"] is reference.strided
        assert got["meta"].is_meta and got["nested"] == sample()["nested"]
    linear = reference.load(tmp_path / "module.pt", weights_only=False)
    assert type(linear) is reference.nn.Linear and linear.weight.tolist() == module.weight.tolist()
    assert reference.load(tmp_path / "lstm.pt", weights_only=False)(reference.ones(2, 1, 3))[0].shape == (2, 1, 4)
    assert [part.tolist() for part in reference.load(tmp_path / "nested.pt").unbind()] == [[1, 1], [1, 1, 1]]
    assert reference.load(tmp_path / "old.pt")["base"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_other_packages_in_pythons_pickler():
    """dill replaces functions of Python's own pickler; files still call things by PyTorch's names."""
    code = """
import io, pickle
def save_function(pickler, obj):
    raise AssertionError("a foreign function was asked")
for kind in (type(save_function), dict, type):
    pickle._Pickler.dispatch[kind] = save_function
import mindtorch_v2 as torch
buffer = io.BytesIO()
torch.save({"a": torch.ones(2), "b": torch.float32}, buffer)
buffer.seek(0)
assert torch.load(buffer)["b"] is torch.float32
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
