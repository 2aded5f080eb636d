"""`torch.utils.tensorboard`: what its writers write is what TensorBoard's own reader finds."""

from __future__ import annotations

import io
import math
import sys
import wave

import numpy as np
import pytest
from _fresh import python

import mindtorch_v2 as torch

pytest.importorskip("tensorboard", reason="tensorboard is not installed")
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.graph_pb2 import GraphDef

from mindtorch_v2.utils.tensorboard import SummaryWriter, summary


def read(folder) -> EventAccumulator:
    found = EventAccumulator(str(folder), size_guidance={"images": 0, "audio": 0, "tensors": 0, "histograms": 0})
    return found.Reload()


def test_numbers(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        for step in range(3):
            writer.add_scalar("loss", torch.tensor(step * 0.5), step, walltime=7.0)
        writer.add_scalar("new", 2.5, 1, new_style=True)
        writer.add_scalars("both", {"a": 1.0, "b": torch.tensor([2.0])}, 4)
        with pytest.raises(AssertionError, match="should contain one element"):
            writer.add_scalar("loss", torch.ones(2))
    found = read(tmp_path)
    assert [(e.step, e.value, e.wall_time) for e in found.Scalars("loss")] == [
        (0, 0.0, 7.0),
        (1, 0.5, 7.0),
        (2, 1.0, 7.0),
    ]
    assert found.Tensors("new")[0].tensor_proto.float_val == [2.5]
    assert [(e.step, e.value) for e in read(tmp_path / "both_b").Scalars("both")] == [(4, 2.0)]


def test_histograms(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram(
            "weights", torch.tensor([0.0, 1.0, 1.0, 3.0], dtype=torch.bfloat16), 5, bins=[0, 1, 2, 3, 4, 5]
        )
        writer.add_histogram("fine", torch.arange(100.0))
        writer.add_histogram_raw("raw", 0.0, 1.0, 2, 1.0, 1.0, [0.5, 1.0], [1, 1])
        with pytest.raises(ValueError, match="no element"):
            writer.add_histogram("none", torch.ones(0))
    found = read(tmp_path)
    (one,) = found.Histograms("weights")
    value = one.histogram_value
    assert (one.step, value.min, value.max, value.num, value.sum, value.sum_squares) == (5, 0, 3, 4, 5, 11)
    assert (list(value.bucket_limit), list(value.bucket)) == ([0, 1, 2, 3, 4], [0, 1, 2, 0, 1])
    assert sum(found.Histograms("fine")[0].histogram_value.bucket) == 100
    assert list(found.Histograms("raw")[0].histogram_value.bucket) == [1, 1]


def _pixels(png: bytes) -> np.ndarray:
    import struct
    import zlib

    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", png[16:24])
    at, data = 8, b""
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        assert zlib.crc32(png[at + 4 : at + 8 + size]) == struct.unpack(">I", png[at + 8 + size : at + 12 + size])[0]
        data += png[at + 8 : at + 8 + size] if png[at + 4 : at + 8] == b"IDAT" else b""
        at += 12 + size
    rows = np.frombuffer(zlib.decompress(data), np.uint8).reshape(height, -1)
    return rows[:, 1:].reshape(height, width, -1)


def test_images_and_sound(tmp_path):
    image = torch.rand(3, 5, 4)
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("colour", image)
        writer.add_image("grey", (torch.arange(6).reshape(2, 3) * 40).to(torch.uint8), dataformats="HW")
        writer.add_images("several", torch.ones(9, 1, 2, 2) * torch.arange(9).reshape(9, 1, 1, 1) / 8)
        writer.add_audio("tone", torch.tensor([0.0, 0.5, -1.0]), sample_rate=8000)
        with pytest.raises(AssertionError, match="different"):
            writer.add_image("colour", image, dataformats="HW")
    found = read(tmp_path)
    (one,) = found.Images("colour")
    assert (one.width, one.height) == (4, 5)
    assert np.array_equal(_pixels(one.encoded_image_string), (image.permute(1, 2, 0) * 255).to(torch.uint8).numpy())
    grey = _pixels(found.Images("grey")[0].encoded_image_string)
    assert grey[..., 0].tolist() == [[0, 40, 80], [120, 160, 200]] and grey.shape == (2, 3, 3)
    several = _pixels(found.Images("several")[0].encoded_image_string)
    assert several.shape == (4, 16, 3) and several[2, 0, 0] == 255 and several[2, 2, 0] == 0
    with wave.open(io.BytesIO(found.Audio("tone")[0].encoded_audio_string)) as f:
        assert f.getframerate() == 8000 and np.frombuffer(f.readframes(3), "<i2").tolist() == [0, 16383, -32767]


def test_texts_tensors_and_curves(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_text("note", "*what* it is", 2)
        writer.add_tensor("t", torch.tensor([[1, 2], [3, 4]]))
        writer.add_tensor("h", torch.tensor([1.0, -2.0], dtype=torch.bfloat16))
        writer.add_pr_curve("curve", torch.tensor([0, 1, 1, 0]), torch.tensor([0.1, 0.8, 0.6, 0.4]), num_thresholds=3)
        writer.add_embedding(torch.eye(2), metadata=["a", "b"], tag="points")
    found = read(tmp_path)
    assert found.Tensors("note/text_summary")[0].tensor_proto.string_val == [b"*what* it is"]
    proto = found.Tensors("t")[0].tensor_proto
    assert list(proto.int64_val) == [1, 2, 3, 4] and [d.size for d in proto.tensor_shape.dim] == [2, 2]
    assert list(found.Tensors("h")[0].tensor_proto.half_val) == [0x3F80, 0xC000]
    expected = [2, 2, 0, 2, 0, 0, 0, 2, 2, 0, 0, 2, 0.5, 1, 0, 1, 1, 0]
    assert list(found.Tensors("curve")[0].tensor_proto.float_val) == pytest.approx(expected)
    assert "tensors.tsv" in (tmp_path / "projector_config.pbtxt").read_text()
    assert (tmp_path / "00000" / "points" / "metadata.tsv").read_text() == "a\nb\n"


def test_the_graph_of_a_module(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(model, torch.ones(2, 4))
    nodes = {node.name: node for node in GraphDef.FromString(read(tmp_path)._graph).node}
    linear = next(node for name, node in nodes.items() if name.startswith("Sequential/0/linear"))
    assert linear.op == "aten::linear" and list(linear.input) == ["input", "Sequential/0/weight", "Sequential/0/bias"]
    assert [d.size for d in linear.attr["_output_shapes"].list.shape[0].dim] == [2, 3]
    assert list(nodes["output"].input) == ["Sequential/1/relu"] and list(nodes["Sequential/1/relu"].input) == [
        linear.name
    ]
    assert all(source in nodes for node in nodes.values() for source in node.input)


def test_hyperparameters(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_hparams({"lr": 0.1, "name": "x", "flag": True}, {"loss": 1.5}, run_name="run", global_step=3)
        with pytest.raises(TypeError, match="hparam_dict should be a dictionary"):
            writer.add_hparams([], {})
    found = read(tmp_path / "run")
    assert [(e.step, e.value) for e in found.Scalars("loss")] == [(3, 1.5)]
    data = found.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    assert b"lr" in data and b"name" in data
    experiment, begin, _ = summary.hparams({"lr": 0.5}, {"loss": 1}, {"lr": [0.5, 1.0]})
    assert experiment.value[0].tag == "_hparams_/experiment" and begin.value[0].tag == "_hparams_/session_start_info"


def test_bins_and_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    writer = SummaryWriter(comment="-mine")
    writer.close()
    assert writer.get_logdir().startswith("runs") and writer.get_logdir().endswith("-mine")
    bins = writer.default_bins
    assert (
        len(bins) == 2 * 774 + 1
        and bins[774] == 0
        and math.isclose(bins[-1], 9.95e19, rel_tol=0.1)
        and bins[0] == -bins[-1]
    )


def test_without_the_package_it_cannot_be_imported():
    python("""
        import sys
        sys.modules["tensorboard"] = None
        try:
            import torch.utils.tensorboard
        except ImportError as error:
            assert "tensorboard" in str(error)
        else:
            raise SystemExit("imported")
    """)
    assert sys.modules["tensorboard"] is not None
