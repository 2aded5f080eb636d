"""Files of images as torchvision reads and writes them: tensors of bytes, and of pixels [C, H, W]; by Pillow where it is installed."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from mindtorch_v2 import _dtype
from mindtorch_v2._tensor import Tensor, wrap

_MODES = (None, "L", "LA", "RGB", "RGBA")
"""Pillow's names of torchvision's modes: unchanged, grey, grey with alpha, colours, colours with alpha."""


def _pillow() -> Any:
    try:
        from PIL import Image, ImageOps
    except ImportError as error:
        raise RuntimeError(
            "images are read and written by Pillow, which is not installed: pip install pillow"
        ) from error
    return Image, ImageOps


def _bytes(data: Tensor) -> bytes:
    if data.dtype != _dtype.uint8 or data.dim() != 1 or data.numel() == 0:
        raise RuntimeError(
            f"Expected a non empty 1-dimensional tensor of uint8, got {data.numel()} elements of {data.dtype} in {data.dim()} dimensions"
        )
    return data.numpy().tobytes()


def _tensor(array: Any) -> Tensor:
    array = np.ascontiguousarray(array)
    return wrap(array, _dtype.FROM_NUMPY[array.dtype])


def _decoded(data: Tensor, mode: int, turned: bool, formats: tuple[str, ...] | None) -> Tensor:
    image_module, ops = _pillow()
    try:
        image = image_module.open(io.BytesIO(_bytes(data)), formats=formats)
        if image.format == "JPEG" and _MODES[mode] == "L":
            image.draft("L", image.size)  # the file's own brightness, not that of its colours
        image.load()
    except image_module.UnidentifiedImageError as error:
        raise RuntimeError(f"Content is not a {'/'.join(formats or ('known image',)).lower()}.") from error
    if turned:
        image = ops.exif_transpose(image)
    if image.mode.startswith("I"):  # 16 bits of grey
        pixels = np.asarray(image).astype(np.uint16)
    else:
        wanted = _MODES[mode]
        if image.format == "PNG" and wanted in ("L", "LA") and image.mode in ("RGB", "RGBA", "P"):
            image = _grey(image_module, image, wanted)
        elif wanted is not None:
            image = image.convert(wanted)
        elif image.mode not in ("L", "LA", "P", "RGB", "RGBA", "CMYK"):
            image = image.convert("L" if image.mode == "1" else "RGB")
        pixels = np.asarray(image)
    return _tensor(pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1))


def _grey(image_module: Any, image: Any, mode: str) -> Any:
    """Colours as libpng makes grey of them, with the shares of red and green that torchvision asks for."""
    pixels = np.asarray(image.convert("RGBA")).astype(np.int32)
    red, green, blue, alpha = np.moveaxis(pixels, 2, 0)
    light = (red * 9794 + green * 19234 + blue * 3740) >> 15
    planes = [light, alpha] if mode == "LA" else [light]
    return image_module.merge(mode, [image_module.fromarray(plane.astype(np.uint8)) for plane in planes])


def _encoded(data: Tensor, kind: str, channels: tuple[int, ...], **options: Any) -> Tensor:
    image_module, _ = _pillow()
    if data.dtype != _dtype.uint8:
        raise RuntimeError("Input tensor dtype should be uint8")
    if data.dim() != 3:
        raise RuntimeError("Input data should be a 3-dimensional tensor")
    if data.size(0) not in channels:
        raise RuntimeError(f"The number of channels should be {' or '.join(map(str, channels))}, got: {data.size(0)}")
    pixels = data.numpy()
    file = io.BytesIO()
    image_module.fromarray(np.ascontiguousarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0))).save(
        file, kind, **options
    )
    return _tensor(np.frombuffer(file.getvalue(), np.uint8).copy())


def read_file(filename: str) -> Tensor:
    """The bytes of a file, as a tensor [n]. RuntimeError where there is none."""
    path = Path(filename)
    if not path.is_file():
        raise RuntimeError(f"[Errno 2] No such file or directory: '{filename}'")
    return _tensor(np.frombuffer(path.read_bytes(), np.uint8).copy())


def write_file(filename: str, data: Tensor) -> Tensor:
    """Write a tensor's bytes to a file; gives the tensor."""
    Path(filename).write_bytes(_bytes(data))
    return data


def decode_image(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    """[C, H, W], or [N, C, H, W] of a GIF of several: the pixels of a file's bytes."""
    if _bytes(data)[:3] == b"GIF":
        return decode_gif(data)
    return _decoded(data, mode, apply_exif_orientation, None)


def decode_png(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    """[C, H, W], uint8 or uint16: the pixels of a PNG's bytes. RuntimeError for other bytes."""
    return _decoded(data, mode, apply_exif_orientation, ("PNG",))


def decode_jpeg(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    """[C, H, W], uint8: the pixels of a JPEG's bytes. RuntimeError for other bytes."""
    return _decoded(data, mode, apply_exif_orientation, ("JPEG",))


def decode_webp(data: Tensor, mode: int) -> Tensor:
    """[C, H, W], uint8: the pixels of a WebP's bytes. RuntimeError for other bytes."""
    return _decoded(data, mode or 3, False, ("WEBP",))


def decode_gif(data: Tensor) -> Tensor:
    """[3, H, W], or [N, 3, H, W] of several, uint8: the frames of a GIF's bytes."""
    image_module, _ = _pillow()
    image = image_module.open(io.BytesIO(_bytes(data)), formats=("GIF",))
    frames = []
    for number in range(getattr(image, "n_frames", 1)):
        image.seek(number)
        frames.append(np.asarray(image.convert("RGB")).transpose(2, 0, 1))
    return _tensor(frames[0] if len(frames) == 1 else np.stack(frames))


def encode_png(data: Tensor, compression_level: int) -> Tensor:
    """The bytes [n] of a PNG of pixels [1 or 3, H, W], uint8."""
    if not 0 <= compression_level <= 9:
        raise RuntimeError("Compression level should be between 0 and 9")
    return _encoded(data, "PNG", (1, 3), compress_level=compression_level)


def encode_jpeg(data: Tensor, quality: int) -> Tensor:
    """The bytes [n] of a JPEG of pixels [1 or 3, H, W], uint8."""
    if not 1 <= quality <= 100:
        raise RuntimeError("Image quality should be a positive number between 1 and 100")
    return _encoded(data, "JPEG", (1, 3), quality=quality)
