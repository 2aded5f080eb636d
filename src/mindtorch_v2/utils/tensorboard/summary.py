"""Summaries: what one call of a writer writes, as TensorBoard's protocol buffers."""

# pyright: reportMissingImports=false, reportMissingModuleSource=false
from __future__ import annotations

import io
import struct
import wave
import zlib
from typing import Any

import numpy as np
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

from ._convert_np import make_np

__all__ = ["audio", "histogram", "histogram_raw", "hparams", "image", "pr_curve", "scalar", "tensor_proto", "text"]


def _metadata(plugin: str, content: bytes = b"") -> Any:
    return SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=plugin, content=content))


def _shape(sizes: Any) -> Any:
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=int(n)) for n in sizes])


def scalar(name: str, tensor: Any, new_style: bool = False, double_precision: bool = False) -> Any:
    """One number. AssertionError for several."""
    array = make_np(tensor).squeeze()
    if array.ndim != 0:
        raise AssertionError(
            f"Tensor should contain one element (0 dimensions). Was given size: {array.size} and {array.ndim} dimensions."
        )
    value = float(array)
    if not new_style:
        return Summary(value=[Summary.Value(tag=name, simple_value=value)])
    kind = "double" if double_precision else "float"
    made = TensorProto(**{f"{kind}_val": [value], "dtype": f"DT_{kind.upper()}"})
    return Summary(value=[Summary.Value(tag=name, tensor=made, metadata=_metadata("scalars"))])


_FIELDS = {
    "float32": ("DT_FLOAT", "float_val"),
    "float64": ("DT_DOUBLE", "double_val"),
    "float16": ("DT_HALF", "half_val"),
    "bfloat16": ("DT_BFLOAT16", "half_val"),
    "uint8": ("DT_UINT8", "int_val"),
    "int8": ("DT_INT8", "int_val"),
    "int16": ("DT_INT16", "int_val"),
    "int32": ("DT_INT32", "int_val"),
    "int64": ("DT_INT64", "int64_val"),
    "bool": ("DT_BOOL", "bool_val"),
    "complex64": ("DT_COMPLEX64", "scomplex_val"),
    "complex128": ("DT_COMPLEX128", "dcomplex_val"),
}


def tensor_proto(tag: str, tensor: Any) -> Any:
    """All elements of a tensor. ValueError for a dtype that TensorBoard has not."""
    kind = str(tensor.dtype).removeprefix("torch.")
    if kind not in _FIELDS:
        raise ValueError(f"{tag} has unsupported tensor dtype {tensor.dtype}")
    dtype, field = _FIELDS[kind]
    flat = tensor.detach().cpu().flatten()
    if field == "half_val":  # its bits
        values = (flat.view(_ints()).numpy().astype(np.int64) & 0xFFFF).tolist()
    elif tensor.is_complex():
        values = [part for number in flat.tolist() for part in (number.real, number.imag)]
    else:
        values = flat.tolist()
    made = TensorProto(**{"dtype": dtype, "tensor_shape": _shape(tensor.shape), field: values})
    return Summary(value=[Summary.Value(tag=tag, tensor=made, metadata=_metadata("tensor"))])


def _ints() -> Any:
    from ..._dtype import DTYPES

    return DTYPES["int16"]


def histogram_raw(
    name: str, min: float, max: float, num: int, sum: float, sum_squares: float, bucket_limits: Any, bucket_counts: Any
) -> Any:
    """A histogram of which the buckets are known: the upper end and the number of values of each."""
    made = HistogramProto(
        min=min, max=max, num=num, sum=sum, sum_squares=sum_squares, bucket_limit=bucket_limits, bucket=bucket_counts
    )
    return Summary(value=[Summary.Value(tag=name, histo=made)])


def histogram(name: str, values: Any, bins: Any, max_bins: int | None = None) -> Any:
    """The histogram of values in bins as numpy has them, at most `max_bins`. ValueError without values."""
    values = make_np(values).astype(float).reshape(-1)
    if values.size == 0:
        raise ValueError("The input has no element.")
    counts, limits = np.histogram(values, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        step = len(counts) // max_bins
        counts = np.pad(counts, (0, -len(counts) % step)).reshape(-1, step).sum(axis=-1)
        limits = np.append(limits[:-1][::step], limits[-1])
    filled = np.nonzero(counts)[0]
    if not filled.size:
        raise ValueError("The histogram is empty, please file a bug report.")
    # From an empty bucket before the first value to the last one that has values.
    first, last = filled[0], filled[-1] + 1
    if first > 0:
        counts, limits = counts[first - 1 : last], limits[first : last + 1]
    else:
        counts, limits = np.concatenate([[0], counts[:last]]), limits[: last + 1]
    return histogram_raw(
        name,
        values.min(),
        values.max(),
        len(values),
        values.sum(),
        values.dot(values),
        limits.tolist(),
        counts.tolist(),
    )


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> Any:
    """An image, or several beside each other: of uint8 from 0 to 255, of floats from 0 to 1. AssertionError where the letters do not fit the shape."""
    array = _in_rows(make_np(tensor), dataformats)
    factor = 1 if array.dtype == np.uint8 else 255
    array = (array.astype(np.float32) * factor).clip(0, 255).astype(np.uint8)
    if rescale != 1:
        rows, columns = (np.arange(int(n * rescale)) / rescale for n in array.shape[:2])
        array = array[rows.astype(int)][:, columns.astype(int)]
    height, width, channels = array.shape
    made = Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=png(array))
    return Summary(value=[Summary.Value(tag=tag, image=made)])


def _in_rows(array: np.ndarray, letters: str) -> np.ndarray:
    """An array of height, width and channels of one in any order; several images in a grid."""
    letters = letters.upper()
    if len(set(letters)) != len(letters) or not set(letters) <= set("NCHW"):
        raise AssertionError(f"You can not use the same dimension shordhand twice. input_format: {letters}")
    if array.ndim != len(letters):
        raise AssertionError(
            f"size of input tensor and input format are different. tensor shape: {array.shape}, input_format: {letters}"
        )
    if "C" not in letters:
        array, letters = array[..., None], letters + "C"
    if "N" not in letters:
        array, letters = array[None], "N" + letters
    array = array.transpose([letters.index(letter) for letter in "NHWC"])
    if array.shape[3] == 1:
        array = np.repeat(array, 3, axis=3)
    number, height, width, channels = array.shape
    across = min(number, 8)
    down = -(-number // across)
    grid = np.zeros((down * height, across * width, channels), array.dtype)
    for place, one in enumerate(array):
        y, x = place // across * height, place % across * width
        grid[y : y + height, x : x + width] = one
    return grid


def png(array: np.ndarray) -> bytes:
    """An image of (height, width, channels), uint8, as PNG."""
    height, width, channels = array.shape
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each begins with the number of its filter: none
    rows[:, 1:] = np.ascontiguousarray(array).reshape(height, -1)

    def chunk(name: bytes, content: bytes) -> bytes:
        body = name + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    colours = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    header = struct.pack(">IIBBBBB", width, height, 8, colours, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows.tobytes()))
        + chunk(b"IEND", b"")
    )


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Any:
    """Sound of one channel, values from -1 to 1, as a WAV file. AssertionError for several channels."""
    array = make_np(tensor).squeeze()
    if np.abs(array).max(initial=0) > 1:
        array = array.clip(-1, 1)
    if array.ndim != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    samples = (array * np.iinfo(np.int16).max).astype("<i2")
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as f:
        f.setnchannels(1)
        f.setsampwidth(2)
        f.setframerate(sample_rate)
        f.writeframes(samples.tobytes())
    made = Summary.Audio(
        sample_rate=sample_rate,
        num_channels=1,
        length_frames=len(samples),
        encoded_audio_string=buffer.getvalue(),
        content_type="audio/wav",
    )
    return Summary(value=[Summary.Value(tag=tag, audio=made)])


def text(tag: str, content: str) -> Any:
    """A text, in Markdown."""
    from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData

    made = TensorProto(dtype="DT_STRING", string_val=[content.encode("utf-8")], tensor_shape=_shape([1]))
    metadata = _metadata("text", TextPluginData(version=0).SerializeToString())
    return Summary(value=[Summary.Value(tag=f"{tag}/text_summary", metadata=metadata, tensor=made)])


def pr_curve(tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None) -> Any:
    """Precision and recall by threshold, of labels and predictions from 0 to 1."""
    from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData

    number = min(num_thresholds, 127)
    labels, predictions = make_np(labels).astype(float), make_np(predictions)
    weights = np.ones_like(labels) if weights is None else make_np(weights)
    place = np.int32(np.floor(predictions * (number - 1)))

    def beyond(of: np.ndarray) -> np.ndarray:
        counts, _ = np.histogram(place, bins=number, range=(0, number - 1), weights=of * weights)
        return counts[::-1].cumsum()[::-1]

    true, false = beyond(labels), beyond(1 - labels)
    least = 1e-7
    rows = np.stack(
        [
            true,
            false,
            false[0] - false,
            true[0] - true,
            true / np.maximum(least, true + false),
            true / np.maximum(least, true[0]),
        ]
    )
    metadata = _metadata("pr_curves", PrCurvePluginData(version=0, num_thresholds=number).SerializeToString())
    made = TensorProto(dtype="DT_FLOAT", float_val=rows.reshape(-1).tolist(), tensor_shape=_shape(rows.shape))
    return Summary(value=[Summary.Value(tag=tag, metadata=metadata, tensor=made)])


def hparams(hparam_dict: dict, metric_dict: dict, hparam_domain_discrete: dict | None = None) -> tuple[Any, Any, Any]:
    """The experiment, its beginning with the values, and its end. TypeError for what are no dicts, ValueError for values that are no numbers, texts or bools."""
    from google.protobuf.struct_pb2 import ListValue, Value
    from tensorboard.plugins.hparams.api_pb2 import DataType, Experiment, HParamInfo, MetricInfo, MetricName, Status
    from tensorboard.plugins.hparams.metadata import (
        EXPERIMENT_TAG,
        PLUGIN_DATA_VERSION,
        PLUGIN_NAME,
        SESSION_END_INFO_TAG,
        SESSION_START_INFO_TAG,
    )
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionEndInfo, SessionStartInfo

    domains = hparam_domain_discrete or {}
    for name, given in (
        ("hparam_dict", hparam_dict),
        ("metric_dict", metric_dict),
        ("hparam_domain_discrete", domains),
    ):
        if not isinstance(given, dict):
            raise TypeError(f"parameter: {name} should be a dictionary, nothing logged.")
    begin, infos = SessionStartInfo(), []
    for name, value in hparam_dict.items():
        if value is None:
            continue
        if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 or isinstance(value, np.generic):
            value = value.item()
        kind = ("string", "STRING") if isinstance(value, str) else ("number", "FLOAT64")
        if not isinstance(value, (str, int, float)):
            raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")
        setattr(begin.hparams[name], f"{kind[0]}_value", value)
        domain = domains.get(name)
        if domain is not None and not all(isinstance(one, type(value)) for one in domain):
            raise TypeError(
                f"parameter: hparam_domain_discrete[{name}] should be a list of same type as hparam_dict[{name}]."
            )
        listed = None if domain is None else ListValue(values=[Value(**{f"{kind[0]}_value": one}) for one in domain])
        infos.append(HParamInfo(name=name, type=DataType.Value(f"DATA_TYPE_{kind[1]}"), domain_discrete=listed))

    def summary(tag: str, **content: Any) -> Any:
        made = HParamsPluginData(version=PLUGIN_DATA_VERSION, **content)
        return Summary(value=[Summary.Value(tag=tag, metadata=_metadata(PLUGIN_NAME, made.SerializeToString()))])

    metrics = [MetricInfo(name=MetricName(tag=name)) for name in metric_dict]
    return (
        summary(EXPERIMENT_TAG, experiment=Experiment(hparam_infos=infos, metric_infos=metrics)),
        summary(SESSION_START_INFO_TAG, session_start_info=begin),
        summary(SESSION_END_INFO_TAG, session_end_info=SessionEndInfo(status=Status.Value("STATUS_SUCCESS"))),
    )
