# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.onnx, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function, lazy_children, returning

_MODULE = "torch.onnx"
_BECAUSE = "there is no graph to export"
is_in_onnx_export = returning("is_in_onnx_export", _MODULE, False)
dynamo_export = import_only_function("dynamo_export", _MODULE, _BECAUSE, NotImplementedError)
export = import_only_function("export", _MODULE, _BECAUSE, NotImplementedError)
register_custom_op_symbolic = import_only_function("register_custom_op_symbolic", _MODULE, _BECAUSE, NotImplementedError)
unregister_custom_op_symbolic = import_only_function("unregister_custom_op_symbolic", _MODULE, _BECAUSE, NotImplementedError)
__getattr__ = lazy_children(_MODULE)


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


class OperatorExportTypes(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class TrainingMode(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
