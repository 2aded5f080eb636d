# Generated from schema/torch_proxy.yaml; do not edit.
"""torch, functional stub: what torch has beyond the runtime."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.checks import (
    _check, _check_index, _check_is_size, _check_tensor_all, _check_tensor_all_with, _check_type, _check_value,
    _check_with,
)
from mindtorch_v2._torch_proxy.stubs.compiler import (
    compile,
)
from mindtorch_v2._torch_proxy.stubs.higher_order import (
    cond, while_loop,
)
from mindtorch_v2._torch_proxy.stubs.symbols import (
    SymBool, SymFloat, SymInt, sym_float, sym_int, sym_ite, sym_max, sym_min, sym_not, sym_sum,
)
from mindtorch_v2._torch_proxy.stubs.toplevel import (
    _running_with_deploy, compiled_with_cxx11_abi, get_device_module, torch,
)
from mindtorch_v2.amp._state import (
    autocast_decrement_nesting, autocast_increment_nesting, clear_autocast_cache, get_autocast_cpu_dtype,
    get_autocast_dtype, get_autocast_gpu_dtype, is_autocast_cache_enabled, is_autocast_cpu_enabled,
    is_autocast_enabled, set_autocast_cache_enabled, set_autocast_cpu_dtype, set_autocast_cpu_enabled,
    set_autocast_dtype, set_autocast_enabled, set_autocast_gpu_dtype,
)
from mindtorch_v2.futures import (
    Future,
)
from torch._C import (
    DisableTorchFunctionSubclass, DispatchKey, DispatchKeySet, ExcludeDispatchKeyGuard, FatalError, FunctionSchema,
    Gradient, Graph, JITException, Node, PyTorchFileReader, PyTorchFileWriter, ScriptObject, StorageBase,
    TensorType, Type, Value,
)
from torch.jit import (
    CompilationUnit, ScriptFunction, ScriptModule,
)
from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function

_MODULE = "torch"
_BECAUSE = "there is no such device, no symbolic tracing, and no sparse, nested or quantized tensor"
_make_per_channel_quantized_tensor = import_only_function("_make_per_channel_quantized_tensor", _MODULE, _BECAUSE, NotImplementedError)
_make_per_tensor_quantized_tensor = import_only_function("_make_per_tensor_quantized_tensor", _MODULE, _BECAUSE, NotImplementedError)
_nested_view_from_buffer = import_only_function("_nested_view_from_buffer", _MODULE, _BECAUSE, NotImplementedError)
_scaled_mm = import_only_function("_scaled_mm", _MODULE, _BECAUSE, NotImplementedError)
dsmm = import_only_function("dsmm", _MODULE, _BECAUSE, NotImplementedError)
hsmm = import_only_function("hsmm", _MODULE, _BECAUSE, NotImplementedError)
quantize_per_channel = import_only_function("quantize_per_channel", _MODULE, _BECAUSE, NotImplementedError)
quantize_per_tensor = import_only_function("quantize_per_tensor", _MODULE, _BECAUSE, NotImplementedError)
quantize_per_tensor_dynamic = import_only_function("quantize_per_tensor_dynamic", _MODULE, _BECAUSE, NotImplementedError)
sparse_bsc_tensor = import_only_function("sparse_bsc_tensor", _MODULE, _BECAUSE, NotImplementedError)
sparse_bsr_tensor = import_only_function("sparse_bsr_tensor", _MODULE, _BECAUSE, NotImplementedError)
sparse_compressed_tensor = import_only_function("sparse_compressed_tensor", _MODULE, _BECAUSE, NotImplementedError)
sparse_coo_tensor = import_only_function("sparse_coo_tensor", _MODULE, _BECAUSE, NotImplementedError)
sparse_csc_tensor = import_only_function("sparse_csc_tensor", _MODULE, _BECAUSE, NotImplementedError)
sparse_csr_tensor = import_only_function("sparse_csr_tensor", _MODULE, _BECAUSE, NotImplementedError)


class AcceleratorError(RuntimeError):
    """An error of torch, which mindtorch_v2 never raises."""

    __module__ = _MODULE


class Event(metaclass=ImportOnly):
    """Import only."""

    __module__ = _MODULE
    _because = _BECAUSE
    _error = NotImplementedError


class Stream(metaclass=ImportOnly):
    """Import only."""

    __module__ = _MODULE
    _because = _BECAUSE
    _error = NotImplementedError
