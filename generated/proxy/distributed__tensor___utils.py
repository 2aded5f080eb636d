# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.tensor._utils, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch.distributed.tensor._utils"
_BECAUSE = "mindtorch_v2 runs in one process"
compute_global_tensor_info = import_only_function("compute_global_tensor_info", _MODULE, _BECAUSE, NotImplementedError)
compute_local_shape = import_only_function("compute_local_shape", _MODULE, _BECAUSE, NotImplementedError)
compute_local_shape_and_global_offset = import_only_function("compute_local_shape_and_global_offset", _MODULE, _BECAUSE, NotImplementedError)
compute_local_stride = import_only_function("compute_local_stride", _MODULE, _BECAUSE, NotImplementedError)
