# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.ao.quantization, import-only stub."""

from __future__ import annotations

import enum

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function, lazy_children

_MODULE = "torch.ao.quantization"
_BECAUSE = "quantization is not implemented"
convert = import_only_function("convert", _MODULE, _BECAUSE, NotImplementedError)
default_observer = import_only_function("default_observer", _MODULE, _BECAUSE, NotImplementedError)
default_per_channel_weight_observer = import_only_function("default_per_channel_weight_observer", _MODULE, _BECAUSE, NotImplementedError)
default_weight_observer = import_only_function("default_weight_observer", _MODULE, _BECAUSE, NotImplementedError)
disable_fake_quant = import_only_function("disable_fake_quant", _MODULE, _BECAUSE, NotImplementedError)
disable_observer = import_only_function("disable_observer", _MODULE, _BECAUSE, NotImplementedError)
enable_fake_quant = import_only_function("enable_fake_quant", _MODULE, _BECAUSE, NotImplementedError)
enable_observer = import_only_function("enable_observer", _MODULE, _BECAUSE, NotImplementedError)
fuse_modules = import_only_function("fuse_modules", _MODULE, _BECAUSE, NotImplementedError)
fuse_modules_qat = import_only_function("fuse_modules_qat", _MODULE, _BECAUSE, NotImplementedError)
get_default_qat_qconfig = import_only_function("get_default_qat_qconfig", _MODULE, _BECAUSE, NotImplementedError)
get_default_qconfig = import_only_function("get_default_qconfig", _MODULE, _BECAUSE, NotImplementedError)
get_default_qconfig_mapping = import_only_function("get_default_qconfig_mapping", _MODULE, _BECAUSE, NotImplementedError)
prepare = import_only_function("prepare", _MODULE, _BECAUSE, NotImplementedError)
prepare_qat = import_only_function("prepare_qat", _MODULE, _BECAUSE, NotImplementedError)
quantize = import_only_function("quantize", _MODULE, _BECAUSE, NotImplementedError)
quantize_dynamic = import_only_function("quantize_dynamic", _MODULE, _BECAUSE, NotImplementedError)
__getattr__ = lazy_children(_MODULE)


class QuantType(enum.Enum):
    """An enumeration of torch.ao.quantization."""

    DYNAMIC = enum.auto()
    STATIC = enum.auto()
    QAT = enum.auto()
    WEIGHT_ONLY = enum.auto()


class DeQuantStub(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class FakeQuantize(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class FakeQuantizeBase(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class HistogramObserver(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class MinMaxObserver(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ObserverBase(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class PerChannelMinMaxObserver(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class QConfig(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class QConfigMapping(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class QuantStub(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class QuantWrapper(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
