"""What is noted of a call beside its time: its arguments, and the lines of the program that led to it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import CodeType
from typing import Any

from .._layout import strided
from .._tensor import Tensor

__all__ = ["frames", "inputs", "lines", "strided"]

_PACKAGE = Path(__file__).resolve().parents[1]
_GENERATED = [
    str(Path(path).resolve()) + os.sep for path in sys.modules[f"{__name__.partition('.')[0]}._generated"].__path__
]
_LABELS: dict[CodeType, tuple[str, str] | None] = {}
"""By code: its file and name, or None for what nobody wants to see: the dispatcher, the engine, the profiler."""
_DEEPEST = 64


def inputs(op: Any, args: tuple) -> list[tuple]:
    """(shape, strides, type, value) of each argument: lists of shapes for a list of tensors, no shape and the value for what is no tensor."""
    return [_described(value) for _, value in zip(op.params, args)]


def _described(value: Any) -> tuple:
    if isinstance(value, Tensor):
        kind = str(value.dtype).rpartition(".")[2]
        strides = list(value.stride()) if value.layout is strided else []
        return list(value.shape), strides, _CPP.get(kind, kind), None
    if isinstance(value, (list, tuple)) and value and all(isinstance(item, Tensor) for item in value):
        each = [_described(item) for item in value]
        return [e[0] for e in each], [e[1] for e in each], "TensorList", None
    if value is None:
        return [], [], "", None
    if isinstance(value, (bool, int, float, complex)):
        return [], [], "Scalar", value
    if isinstance(value, (list, tuple)):
        return [], [], "ScalarList", list(value)
    return [], [], "", value if isinstance(value, str) else str(value)


_CPP = {
    "float32": "float",
    "float64": "double",
    "int64": "long int",
    "int32": "int",
    "int16": "short int",
    "int8": "signed char",
    "uint8": "unsigned char",
    "bfloat16": "c10::BFloat16",
    "float16": "c10::Half",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}


def frames() -> list[tuple[str, str, int]]:
    """The calls that led here, the innermost first: (file, function, line), without those inside of this library's dispatch."""
    found: list[tuple[str, str, int]] = []
    frame = sys._getframe(2)
    while frame is not None and len(found) < _DEEPEST:
        code = frame.f_code
        if code not in _LABELS:
            _LABELS[code] = _label(code)
        label = _LABELS[code]
        if label is not None:
            found.append((*label, frame.f_lineno))
        frame = frame.f_back
    return found


def lines(stack: list[tuple[str, str, int]] | None) -> list[str]:
    """The frames as text: `file.py(12): function`."""
    return [f"{file}({line}): {function}" for file, function, line in stack or ()]


def _label(code: CodeType) -> tuple[str, str] | None:
    path = os.path.abspath(code.co_filename)
    if any(path.startswith(folder) for folder in _GENERATED):
        return None
    if path.startswith(str(_PACKAGE) + os.sep):
        first = Path(path).relative_to(_PACKAGE).parts
        if (
            first[0].startswith("_")
            or first[0] in ("profiler", "__main__.py")
            or first[:2] == ("autograd", "profiler.py")
        ):
            return None
    roots = [root for root in map(os.path.abspath, sys.path) if path.startswith(root.rstrip(os.sep) + os.sep)]
    shown = os.path.relpath(path, max(roots, key=len)) if roots else code.co_filename
    return shown, code.co_name
