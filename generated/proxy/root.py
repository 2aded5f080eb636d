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
    _running_with_deploy, are_deterministic_algorithms_enabled, compiled_with_cxx11_abi,
    get_deterministic_debug_mode, get_device_module, get_float32_matmul_precision,
    is_deterministic_algorithms_warn_only_enabled, is_warn_always_enabled, set_deterministic_debug_mode,
    set_float32_matmul_precision, set_warn_always, typename, use_deterministic_algorithms,
)

_MODULE = 'torch'
_BECAUSE = 'there is no compiler and no symbolic tracing'
