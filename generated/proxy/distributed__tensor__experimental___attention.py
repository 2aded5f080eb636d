# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.tensor.experimental._attention, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch.distributed.tensor.experimental._attention"
_BECAUSE = "mindtorch_v2 runs in one process"
context_parallel = import_only_function("context_parallel", _MODULE, _BECAUSE, NotImplementedError)
set_rotate_method = import_only_function("set_rotate_method", _MODULE, _BECAUSE, NotImplementedError)
