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
from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function

_MODULE = "torch"
_BECAUSE = "there is no such device, and no symbolic tracing"
cond = import_only_function("cond", _MODULE, _BECAUSE, NotImplementedError)


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
