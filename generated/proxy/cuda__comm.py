# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.cuda.comm, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch.cuda.comm"
_BECAUSE = "Torch not compiled with CUDA enabled"
broadcast = import_only_function("broadcast", _MODULE, _BECAUSE, AssertionError)
gather = import_only_function("gather", _MODULE, _BECAUSE, AssertionError)
reduce_add = import_only_function("reduce_add", _MODULE, _BECAUSE, AssertionError)
scatter = import_only_function("scatter", _MODULE, _BECAUSE, AssertionError)
