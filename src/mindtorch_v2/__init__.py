"""mindtorch_v2: a torch-compatible tensor library whose operators are generated from one schema.

Use it under its own name (`import mindtorch_v2 as torch`), or as `torch` through `python -m mindtorch_v2 script.py`.
"""

# ruff: noqa: E402 (what a floor needs of the one below is put together between the imports)
from __future__ import annotations

import importlib as _importlib
import warnings as _warnings
from typing import Any as _Any

# Kernels follow IEEE arithmetic silently, as PyTorch does; numpy would warn of divisions by zero and overflows in them.
_warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"mindtorch_v2\.")

from . import _dtype, _layout, _tensor
from ._autograd import wiring as _wiring
from ._device import (
    device as device,
    get_default_device as get_default_device,
    set_default_device as set_default_device,
)
from ._dispatch import dispatcher as _dispatcher
from ._dtype import (
    DTYPES as _DTYPES,
    dtype as dtype,
    finfo as finfo,
    get_default_dtype as get_default_dtype,
    iinfo as iinfo,
    set_default_dtype as set_default_dtype,
)
from ._layout import layout as layout, memory_format as memory_format
from ._tensor import Size as Size, Tensor as Tensor

_dispatcher.autograd = _wiring

from . import _generated
from ._backends import cpu as _cpu, meta as _meta  # noqa: F401 (they register themselves)

_generated.install(Tensor)

from . import _methods

_methods.install(Tensor)

from ._functions import construct as _construct, queries as _queries, sugar as _sugar, types as _types

_tensor.legacy_constructor = _construct.legacy_constructor

from ._autograd.modes import (
    enable_grad as enable_grad,
    inference_mode as inference_mode,
    is_anomaly_enabled as is_anomaly_enabled,
    is_grad_enabled as is_grad_enabled,
    is_inference_mode_enabled as is_inference_mode_enabled,
    no_grad as no_grad,
    set_grad_enabled as set_grad_enabled,
)
from ._functions.construct import (
    as_tensor as as_tensor,
    asarray as asarray,
    from_numpy as from_numpy,
    frombuffer as frombuffer,
    tensor as tensor,
)
from ._functions.randomness import (
    Generator as Generator,
    default_generator as default_generator,
    get_rng_state as get_rng_state,
    initial_seed as initial_seed,
    manual_seed as manual_seed,
    seed as seed,
    set_rng_state as set_rng_state,
)
from ._generated import functions as _functions
from ._printing import set_printoptions as set_printoptions
from ._promotion import can_cast as can_cast, promote_types as promote_types, result_type as result_type
from ._storage import UntypedStorage as UntypedStorage
from ._typed_storage import LEGACY_STORAGES as _LEGACY_STORAGES, TypedStorage as TypedStorage
from .torch_version import __version__ as __version__


def _publish() -> None:
    """Put dtypes, layouts and functions under their public names."""
    space = globals()
    for module in (_queries, _sugar):
        for name, value in vars(module).items():
            if callable(value) and getattr(value, "__module__", None) == module.__name__ and not name.startswith("_"):
                space[name] = value
    space.update(_DTYPES)
    space.update(_dtype.ALIASES)
    space.update(_layout.LAYOUTS)
    space.update(_layout.MEMORY_FORMATS)
    space.update(_types.LEGACY_TYPES)
    space.update(_LEGACY_STORAGES)


_publish()

# Submodules are imported when they are first used.
_SUBMODULES = frozenset(
    "_pytree _tensor_str _utils _weights_only_unpickler amp autograd backends compiler distributions fft func functional jit "
    "linalg nn npu optim overrides random return_types serialization special storage testing torch_version types utils version".split()
)
_LAZY = {
    "save": "serialization",
    "load": "serialization",
    "fork_rng": "random",
    "autocast": "amp",
    "vmap": "func",
    "e": "_constants",
    "pi": "_constants",
    "inf": "_constants",
    "nan": "_constants",
    "newaxis": "_constants",
}


_OPERATORS = _functions.NAMESPACES["torch"]


def __getattr__(name: str) -> _Any:
    if name in _OPERATORS:
        value = getattr(_functions, _OPERATORS[name])
        globals()[name] = value
        return value
    if name in _SUBMODULES:
        try:
            return _importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    if name in _LAZY:
        value = getattr(_importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
