# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._C, functional stub: the C extension of torch, of which a few names are looked at by programs."""

from __future__ import annotations

from mindtorch_v2 import (
    Generator, Size, device, dtype, layout, memory_format,
)
from mindtorch_v2.overrides import (
    DisableTorchFunctionSubclass,
)
from mindtorch_v2._torch_proxy.placeholders import ImportOnly, lazy_children, returning

_MODULE = "torch._C"
_BECAUSE = "there is no such C extension"
_has_cudnn = False
_has_mps = False
_has_xpu = False
has_lapack = True
has_mkl = False
has_mkldnn = False
has_openmp = False
_cuda_getDeviceCount = returning("_cuda_getDeviceCount", _MODULE, 0)
_cuda_isCurrentStreamCapturing = returning("_cuda_isCurrentStreamCapturing", _MODULE, False)
_cuda_isInBadFork = returning("_cuda_isInBadFork", _MODULE, False)
_dispatch_isTensorSubclassLike = returning("_dispatch_isTensorSubclassLike", _MODULE, False)
_get_accelerator = returning("_get_accelerator", _MODULE, None)
_get_privateuse1_backend_name = returning("_get_privateuse1_backend_name", _MODULE, "npu")
_get_tracing_state = returning("_get_tracing_state", _MODULE, None)
_has_cuda = returning("_has_cuda", _MODULE, False)
_is_torch_function_mode_enabled = returning("_is_torch_function_mode_enabled", _MODULE, False)
_is_tracing = returning("_is_tracing", _MODULE, False)
_jit_clear_class_registry = returning("_jit_clear_class_registry", _MODULE, None)
_jit_get_profiling_executor = returning("_jit_get_profiling_executor", _MODULE, False)
_jit_override_can_fuse_on_cpu = returning("_jit_override_can_fuse_on_cpu", _MODULE, None)
_jit_override_can_fuse_on_gpu = returning("_jit_override_can_fuse_on_gpu", _MODULE, None)
_jit_set_profiling_executor = returning("_jit_set_profiling_executor", _MODULE, False)
_jit_set_profiling_mode = returning("_jit_set_profiling_mode", _MODULE, False)
_jit_set_texpr_fuser_enabled = returning("_jit_set_texpr_fuser_enabled", _MODULE, None)
_len_torch_dispatch_stack = returning("_len_torch_dispatch_stack", _MODULE, 0)
_len_torch_function_stack = returning("_len_torch_function_stack", _MODULE, 0)
_log_api_usage_once = returning("_log_api_usage_once", _MODULE, None)
_show_config = returning("_show_config", _MODULE, "")
__getattr__ = lazy_children(_MODULE)


class _TensorBase(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class FunctionSchema(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class Future(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class Graph(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class Node(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ScriptFunction(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ScriptModule(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ScriptObject(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class StreamBase(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class TensorType(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class Type(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class Value(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
