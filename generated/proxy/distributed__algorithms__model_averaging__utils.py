# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.algorithms.model_averaging.utils, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch.distributed.algorithms.model_averaging.utils"
_BECAUSE = "mindtorch_v2 runs in one process"
average_parameters = import_only_function("average_parameters", _MODULE, _BECAUSE, NotImplementedError)
