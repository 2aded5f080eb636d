"""Archives of records, and what saving does to the file that it is given. Names, offsets and sentences are PyTorch's."""

from __future__ import annotations

import io
import zipfile

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import serialization
from mindtorch_v2._serialization.archive import PyTorchFileReader, PyTorchFileWriter


def test_records_of_a_writer_are_there_for_a_reader(tmp_path):
    for place in (io.BytesIO(), str(tmp_path / "some.pt")):
        with serialization._open_zipfile_writer(place) as writer:
            writer.write_record("a", b"12345", 3)
            writer.write_record("b/c", "xyz", 3)
            writer.write_record_metadata("room", 10)
            writer.write_record("d", torch.tensor([1, 2], dtype=torch.int16).untyped_storage(), 4)
            with pytest.raises(RuntimeError, match="Tried to serialize file twice: a"):
                writer.write_record("a", b"", 0)
            assert writer.serialization_id() == "" and writer.get_all_written_records() == {"a", "b/c", "room", "d"}
        with pytest.raises(RuntimeError):
            writer.write_record("late", b"", 0)
        if not isinstance(place, str):
            place.seek(0)
        with serialization._open_zipfile_reader(place) as reader:
            names = ["a", "b/c", "room", "d", "version", "byteorder", ".data/serialization_id"]
            assert reader.get_all_records() == names
            assert reader.get_record("a") == b"123" and reader.get_record("b/c") == b"xyz"
            assert reader.get_record("room") == bytes(10) and reader.get_record("version") == b"3\n"
            assert reader.get_record_offset("a") == 64 and reader.get_record_header_offset("a") == 0
            assert reader.get_record_size("room") == 10 and reader.has_record("d") and not reader.has_record("e")
            assert reader.serialization_id() == writer.serialization_id() and len(reader.serialization_id()) == 40
            empty = reader.get_storage_from_record("d", 2, torch.int16)
            assert empty.numel() == 0 and bytes(empty.untyped_storage()) == b"\1\0\2\0"
            with pytest.raises(RuntimeError, match="failed locating file nothing: file not found"):
                reader.get_record("nothing")


def test_an_archive_is_named_after_its_file(tmp_path):
    writer = PyTorchFileWriter(str(tmp_path / "model.bin"))
    writer.write_end_of_file()
    assert writer.archive_name() == "model"
    assert zipfile.ZipFile(tmp_path / "model.bin").namelist()[0] == "model/version"
    assert PyTorchFileReader(str(tmp_path / "model.bin")).get_all_records()[0] == "version"


def test_room_for_data_that_comes_later(tmp_path):
    path = tmp_path / "later.pt"
    with torch.serialization.skip_data():
        torch.save({"a": torch.arange(3.0)}, path)
        with pytest.raises(RuntimeError, match="Cannot use skip_data=True with _use_new_zipfile_serialization=False"):
            torch.save(torch.ones(1), io.BytesIO(), _use_new_zipfile_serialization=False)
    assert torch.load(path)["a"].tolist() == [0, 0, 0]
    with serialization._open_zipfile_reader(str(path)) as reader:
        start = reader.get_record_offset("data/0")
    with open(path, "r+b") as file:
        file.seek(start + 4)
        file.write(b"\0\0\x80\x3f")  # 1.0
    assert torch.load(path)["a"].tolist() == [0, 1, 0]
    torch.save(torch.ones(1), path)
    assert torch.load(path).tolist() == [1]


def test_what_was_saved_can_be_read_by_name_at_once(tmp_path):
    for zipped in (True, False):
        with open(tmp_path / "open.pt", "wb") as file:
            torch.save(torch.arange(4), file, _use_new_zipfile_serialization=zipped)
            assert torch.load(tmp_path / "open.pt").tolist() == [0, 1, 2, 3]


def test_one_storage_under_two_dtypes_is_refused_in_both_forms():
    z = torch.tensor([1 + 2j, 3 - 4j])
    as_bytes = torch.TypedStorage(wrap_storage=z.untyped_storage(), dtype=torch.uint8)
    for zipped in (True, False):
        for pair in ([z, z.imag], [z.imag, z], [z, as_bytes]):
            with pytest.raises(RuntimeError, match="view the same data as different types"):
                torch.save(pair, io.BytesIO(), _use_new_zipfile_serialization=zipped)
        file = io.BytesIO()
        torch.save(
            [z, z[:1], torch.empty(0), torch.empty(0, dtype=torch.int64)], file, _use_new_zipfile_serialization=zipped
        )
        file.seek(0)
        assert [value.tolist() for value in torch.load(file)] == [[1 + 2j, 3 - 4j], [1 + 2j], [], []]


def test_a_file_of_another_kind_asks_for_a_report():
    with pytest.raises(
        torch.serialization.UnpicklingError, match="Please file an issue with the following so that we can make"
    ):
        torch.load(io.BytesIO(b"\x80\x02Z no pickle of tensors"), weights_only=True)
