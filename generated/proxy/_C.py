# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._C, functional stub: the C extension of torch, of which a few names are looked at by programs."""

from __future__ import annotations

import enum

from mindtorch_v2 import (
    Generator, Size, device, dtype, layout, memory_format,
)
from mindtorch_v2._dispatch.overrides import (
    _disabled_torch_function_impl,
)
from mindtorch_v2._tensor import (
    _disabled_torch_dispatch_impl,
)
from mindtorch_v2._torch_proxy.stubs.core import (
    _WeakTensorRef, _current_graph_task_execution_order, _current_graph_task_id, _will_engine_execute_node,
    is_grad_enabled,
)
from mindtorch_v2._torch_proxy.stubs.internals import (
    DispatchKeySet, _LinAlgError, _TensorMeta, _are_functorch_transforms_active, _get_default_device, _is_alias_of,
)
from mindtorch_v2.autograd.forward_ad import (
    _is_fwd_grad_enabled, _set_fwd_grad_enabled,
)
from mindtorch_v2.futures import (
    Future,
)
from mindtorch_v2.overrides import (
    DisableTorchFunctionSubclass,
)
from mindtorch_v2.storage import (
    StorageBase,
)
from mindtorch_v2._torch_proxy.placeholders import ImportOnly, NoOpContext, lazy_children, returning

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
_jit_can_fuse_on_cpu = returning("_jit_can_fuse_on_cpu", _MODULE, False)
_jit_can_fuse_on_gpu = returning("_jit_can_fuse_on_gpu", _MODULE, False)
_jit_clear_class_registry = returning("_jit_clear_class_registry", _MODULE, None)
_jit_get_profiling_executor = returning("_jit_get_profiling_executor", _MODULE, False)
_jit_nvfuser_enabled = returning("_jit_nvfuser_enabled", _MODULE, False)
_jit_override_can_fuse_on_cpu = returning("_jit_override_can_fuse_on_cpu", _MODULE, None)
_jit_override_can_fuse_on_gpu = returning("_jit_override_can_fuse_on_gpu", _MODULE, None)
_jit_set_nvfuser_enabled = returning("_jit_set_nvfuser_enabled", _MODULE, False)
_jit_set_nvfuser_guard_mode = returning("_jit_set_nvfuser_guard_mode", _MODULE, False)
_jit_set_profiling_executor = returning("_jit_set_profiling_executor", _MODULE, False)
_jit_set_profiling_mode = returning("_jit_set_profiling_mode", _MODULE, False)
_jit_set_texpr_fuser_enabled = returning("_jit_set_texpr_fuser_enabled", _MODULE, None)
_len_torch_dispatch_stack = returning("_len_torch_dispatch_stack", _MODULE, 0)
_len_torch_function_stack = returning("_len_torch_function_stack", _MODULE, 0)
_log_api_usage_once = returning("_log_api_usage_once", _MODULE, None)
_set_math_sdp_allow_fp16_bf16_reduction = returning("_set_math_sdp_allow_fp16_bf16_reduction", _MODULE, None)
_show_config = returning("_show_config", _MODULE, "")
__getattr__ = lazy_children(_MODULE)


class DispatchKey(enum.Enum):
    """An enumeration of torch._C."""

    Undefined = enum.auto()
    CompositeExplicitAutogradNonFunctional = enum.auto()
    CompositeExplicitAutograd = enum.auto()
    CompositeImplicitAutogradNestedTensor = enum.auto()
    CompositeImplicitAutograd = enum.auto()
    AutogradNestedTensor = enum.auto()
    AutogradOther = enum.auto()
    Autograd = enum.auto()
    Conjugate = enum.auto()
    ZeroTensor = enum.auto()
    Negative = enum.auto()
    BackendSelect = enum.auto()
    ADInplaceOrView = enum.auto()
    PythonTLSSnapshot = enum.auto()
    Python = enum.auto()
    FuncTorchDynamicLayerFrontMode = enum.auto()
    FuncTorchDynamicLayerBackMode = enum.auto()
    FuncTorchBatchedDecomposition = enum.auto()
    FuncTorchBatched = enum.auto()
    FuncTorchVmapMode = enum.auto()
    FuncTorchGradWrapper = enum.auto()
    PythonDispatcher = enum.auto()
    PreDispatch = enum.auto()
    Functionalize = enum.auto()
    AutocastCPU = enum.auto()
    AutocastMPS = enum.auto()
    AutocastXPU = enum.auto()
    AutocastHPU = enum.auto()
    AutocastIPU = enum.auto()
    AutocastCUDA = enum.auto()
    AutocastPrivateUse1 = enum.auto()
    Dense = enum.auto()
    CPU = enum.auto()
    CUDA = enum.auto()
    HIP = enum.auto()
    XLA = enum.auto()
    MPS = enum.auto()
    IPU = enum.auto()
    XPU = enum.auto()
    HPU = enum.auto()
    VE = enum.auto()
    Lazy = enum.auto()
    MTIA = enum.auto()
    MAIA = enum.auto()
    PrivateUse1 = enum.auto()
    PrivateUse2 = enum.auto()
    PrivateUse3 = enum.auto()
    Meta = enum.auto()
    Quantized = enum.auto()
    QuantizedCPU = enum.auto()
    QuantizedCUDA = enum.auto()
    Sparse = enum.auto()
    SparseCPU = enum.auto()
    SparseCUDA = enum.auto()
    SparseCsr = enum.auto()
    SparseCsrCPU = enum.auto()
    SparseCsrCUDA = enum.auto()
    NestedTensor = enum.auto()
    NestedTensorCPU = enum.auto()
    NestedTensorCUDA = enum.auto()
    AutogradFunctionality = enum.auto()
    AutogradCPU = enum.auto()
    AutogradCUDA = enum.auto()
    AutogradXLA = enum.auto()
    AutogradMPS = enum.auto()
    AutogradXPU = enum.auto()
    AutogradHPU = enum.auto()
    AutogradPrivateUse1 = enum.auto()
    AutogradMeta = enum.auto()


class FatalError(RuntimeError):
    """An error of torch._C, which mindtorch_v2 never raises."""


class JITException(RuntimeError):
    """An error of torch._C, which mindtorch_v2 never raises."""


class _DisableAutocast(NoOpContext):
    """Changes nothing."""


class _ExcludeDispatchKeyGuard(NoOpContext):
    """Changes nothing."""


class _IncludeDispatchKeyGuard(NoOpContext):
    """Changes nothing."""


class ExcludeDispatchKeyGuard(NoOpContext):
    """Changes nothing."""


class _TensorBase(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class FunctionSchema(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class Gradient(metaclass=ImportOnly):
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


class PyTorchFileReader(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class PyTorchFileWriter(metaclass=ImportOnly):
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
