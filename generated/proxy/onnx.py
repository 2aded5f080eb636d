# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.onnx, import-only stub."""

from __future__ import annotations

import enum

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function, lazy_children, returning

_MODULE = "torch.onnx"
_BECAUSE = "there is no graph to export"
is_in_onnx_export = returning("is_in_onnx_export", _MODULE, False)
register_custom_op_symbolic = returning("register_custom_op_symbolic", _MODULE, None)
unregister_custom_op_symbolic = returning("unregister_custom_op_symbolic", _MODULE, None)
dynamo_export = import_only_function("dynamo_export", _MODULE, _BECAUSE, NotImplementedError)
export = import_only_function("export", _MODULE, _BECAUSE, NotImplementedError)
__getattr__ = lazy_children(_MODULE)


class OperatorExportTypes(enum.Enum):
    """An enumeration of torch.onnx."""

    ONNX = enum.auto()
    ONNX_ATEN = enum.auto()
    ONNX_ATEN_FALLBACK = enum.auto()
    ONNX_FALLTHROUGH = enum.auto()


class TensorProtoDataType(enum.Enum):
    """An enumeration of torch.onnx."""

    UNDEFINED = enum.auto()
    FLOAT = enum.auto()
    UINT8 = enum.auto()
    INT8 = enum.auto()
    UINT16 = enum.auto()
    INT16 = enum.auto()
    INT32 = enum.auto()
    INT64 = enum.auto()
    STRING = enum.auto()
    BOOL = enum.auto()
    FLOAT16 = enum.auto()
    DOUBLE = enum.auto()
    UINT32 = enum.auto()
    UINT64 = enum.auto()
    COMPLEX64 = enum.auto()
    COMPLEX128 = enum.auto()
    BFLOAT16 = enum.auto()
    FLOAT8E4M3FN = enum.auto()
    FLOAT8E4M3FNUZ = enum.auto()
    FLOAT8E5M2 = enum.auto()
    FLOAT8E5M2FNUZ = enum.auto()


class TrainingMode(enum.Enum):
    """An enumeration of torch.onnx."""

    EVAL = enum.auto()
    PRESERVE = enum.auto()
    TRAINING = enum.auto()


class OnnxExporterError(RuntimeError):
    """An error of torch.onnx, which mindtorch_v2 never raises."""


class ExportableModule(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ExportOptions(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class InputObserver(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ONNXProgram(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
