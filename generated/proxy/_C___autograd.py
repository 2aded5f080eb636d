# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._C._autograd, functional stub: the tape, as the C extension of torch shows it."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.core import (
    SavedTensor, _get_sequence_nr, _pop_saved_tensors_default_hooks, _push_saved_tensors_default_hooks,
    _saved_tensors_hooks_disable, _saved_tensors_hooks_enable, _saved_tensors_hooks_get_disabled_error_message,
    _saved_tensors_hooks_is_enabled, _unsafe_set_version_counter,
)
from torch.profiler import (
    DeviceType,
)
from mindtorch_v2._torch_proxy.placeholders import returning

_MODULE = "torch._C._autograd"
_profiler_enabled = returning("_profiler_enabled", _MODULE, False)
kineto_available = returning("kineto_available", _MODULE, False)
