"""mindtorch_v2: a torch-compatible tensor library whose operators are generated from one schema.

Use it under its own name (`import mindtorch_v2 as torch`), or as `torch` through `python -m mindtorch_v2 script.py`.

Importing it imports numpy and little else: operators, methods, functions and submodules are imported when they are first used.
"""

from __future__ import annotations

import importlib as _importlib
import warnings as _warnings
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any as _Any

# Kernels follow IEEE arithmetic silently, as PyTorch does; numpy would warn of divisions by zero and overflows in them.
_warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"mindtorch_v2\.")

from . import _imports  # noqa: E402

_imports.install()

from ._above import PLACES as _PLACES  # noqa: E402

# What lower floors ask for, see Note [Asking upwards].
_PLACES.update(
    autograd=f"{__name__}._autograd.wiring",
    backends=f"{__name__}._backends",
    composites=f"{__name__}._composite",
    derivatives=f"{__name__}._generated.autograd",
    forward=f"{__name__}._autograd.forward",
    from_dlpack=f"{__name__}.utils.dlpack:from_dlpack",
    legacy_constructor=f"{__name__}._api.functions.construct:legacy_constructor",
    loops=f"{__name__}._generated.native:LOOPS",
    module_hooks=f"{__name__}.nn.modules._hooks",
    nested_tensor=f"{__name__}.nested:NestedTensor",
    npu_allocator=f"{__name__}.npu:_get_allocator",
    npu_available=f"{__name__}._backends.npu:is_available",
    npu_generator=f"{__name__}._backends.npu.generator:of_device",
    npu_storage=f"{__name__}._backends.npu.storage:NpuStorage",
    overload=f"{__name__}.ops:overload",
    operators=f"{__name__}._generated.tables:operators",
    overloads=f"{__name__}._generated.overloads",
    reader=f"{__name__}.ops:reader",
    package_tables=f"{__name__}._packages:take",
    process_group=f"{__name__}.distributed._groups:_group_of_operator",
    operators_of_groups=f"{__name__}.distributed._c10d_operators:find",
    reduction_options=f"{__name__}.distributed._options:options_of",
    parameter=f"{__name__}.nn.parameter:Parameter",
    pickled_storage=f"{__name__}.storage:_reduced",
    pin_array=f"{__name__}._backends.npu.pinned:pin_array",
    script_writer=f"{__name__}._script.writer:save",
    script_reader=f"{__name__}._script.reader:load",
    tensor_names=f"{__name__}._api.methods.tensor_names:NAMES",
)

from . import _dtype, _generated, _layout  # noqa: E402
from ._api import methods as _methods  # noqa: E402
from ._device import (  # noqa: E402
    device as device,
    get_default_device as get_default_device,
    set_default_device as set_default_device,
)
from ._dtype import (  # noqa: E402
    dtype as dtype,
    finfo as finfo,
    iinfo as iinfo,
    set_default_dtype as set_default_dtype,
)
from ._layout import layout as layout, memory_format as memory_format  # noqa: E402
from ._tensor import Size as Size, Tensor as Tensor  # noqa: E402

_generated.install(Tensor)
_methods.install(Tensor)
globals().update(_dtype.DTYPES)
globals().update(_dtype.ALIASES)
globals().update(_layout.LAYOUTS)
globals().update(_layout.MEMORY_FORMATS)

if _TYPE_CHECKING:  # the same by name for type checkers
    from ._api.functions.construct import (
        as_tensor as as_tensor,
        asarray as asarray,
        from_numpy as from_numpy,
        frombuffer as frombuffer,
        tensor as tensor,
    )
    from ._api.functions.randomness import Generator as Generator, manual_seed as manual_seed
    from ._autograd.modes import (
        enable_grad as enable_grad,
        inference_mode as inference_mode,
        no_grad as no_grad,
        set_grad_enabled as set_grad_enabled,
    )

# Names by the module that has them. These win over operators of the same name.
_BY_MODULE = {
    "_autograd.modes": (
        "enable_grad inference_mode is_anomaly_check_nan_enabled is_anomaly_enabled is_grad_enabled is_inference_mode_enabled no_grad "
        "set_anomaly_enabled set_grad_enabled"
    ),
    "_api.functions.assertions": "_assert",
    "_api.functions.removed": "eig lstsq matrix_rank solve symeig",
    "_backends.npu.errors": "OutOfMemoryError",
    "_constants": "e inf nan newaxis pi",
    "_dispatch.pipeline": "pipeline",
    "_api.functions.construct": "as_tensor asarray from_numpy frombuffer tensor",
    "_api.functions.queries": (
        "_debug_has_internal_overlap can_cast get_device is_complex is_conj is_distributed is_floating_point is_inference is_neg is_nonzero is_same_size is_signed is_storage is_tensor numel "
        "promote_types resolve_conj resolve_neg result_type typename"
    ),
    "_api.functions.randomness": (
        "Generator default_generator get_rng_state initial_seed manual_seed seed set_rng_state"
    ),
    "_api.functions.sugar": (
        "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist chain_matmul detach_ einsum histogramdd lu "
        "meshgrid nonzero norm resize_as_ split stft tensordot unique unique_consecutive unravel_index where"
    ),
    "_api.functions.sparse": (
        "_validate_sparse_compressed_tensor_args _validate_sparse_coo_tensor_args _validate_sparse_csr_tensor_args ccol_indices_copy col_indices_copy "
        "crow_indices_copy dsmm hsmm indices_copy row_indices_copy saddmm sparse_bsc_tensor "
        "sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor spmm values_copy"
    ),
    "_api.functions.settings": (
        "are_deterministic_algorithms_enabled get_default_dtype get_deterministic_debug_mode get_float32_matmul_precision get_num_interop_threads "
        "get_num_threads is_deterministic_algorithms_warn_only_enabled is_warn_always_enabled set_default_tensor_type "
        "set_deterministic_debug_mode set_float32_matmul_precision set_flush_denormal set_num_interop_threads set_num_threads "
        "set_warn_always use_deterministic_algorithms"
    ),
    "_compiling.public": "compile",
    "_lobpcg": "lobpcg",
    "_lowrank": "pca_lowrank svd_lowrank",
    "_planning.run": "plan",
    "_printing": "set_printoptions",
    "_storage": "UntypedStorage",
    "_typed_storage": "TypedStorage _storage_classes",
    "_api.functions.types": "_tensor_classes",
    "amp": "GradScaler autocast",
    "amp._state": (
        "autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache get_autocast_cpu_dtype get_autocast_dtype "
        "get_autocast_gpu_dtype is_autocast_available is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled "
        "set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled "
        "set_autocast_gpu_dtype"
    ),
    "_schemas": "FunctionSchema Tag",
    "func": "vmap",
    "nn._functional.recurrent_calls": "gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell",
    "_quantization": "quantize_weights",
    "random": "fork_rng thread_safe_generator",
    "serialization": "load save",
    "torch_version": "__version__",
    "utils.dlpack": "from_dlpack to_dlpack",
}
_MODULES = {name: module for module, names in _BY_MODULE.items() for name in names.split()}
_SUBMODULES = {"registry": "_dispatch.registry", "_weights_only_unpickler": "_serialization.weights_only"} | {
    name: name
    for name in "__config__ __future__ _tensor_str _utils accelerator amp autograd distributed distributions fft func functional futures fx hub library linalg masked nested nn npu ops optim "
    "overrides quasirandom random return_types serialization signal sparse special storage testing torch_version types utils version".split()
}
_OPERATORS = {k: v for k, v in _generated.functions.NAMESPACES["torch"].items() if k != "unique_dim"}  # `_VF` has that


def _legacy(name: str) -> _Any:
    """`FloatTensor`, `FloatStorage` and their kin, or None."""
    if name.endswith("Tensor"):
        return _importlib.import_module(f"{__package__}._api.functions.types").LEGACY_TYPES.get(name)
    if name.endswith("Storage"):
        return _importlib.import_module(f"{__package__}._typed_storage").LEGACY_STORAGES.get(name)
    return None


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        value = getattr(_importlib.import_module(f"{__package__}.{_MODULES[name]}"), name)
    elif name in _OPERATORS:
        value = getattr(_generated.functions, _OPERATORS[name])
    elif name in _SUBMODULES:
        return _importlib.import_module(f"{__package__}.{_SUBMODULES[name]}")
    else:
        value = _legacy(name)
        if value is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_OPERATORS, *_SUBMODULES})
