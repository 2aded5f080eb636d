# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.cuda.nvtx, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch.cuda.nvtx"
_BECAUSE = "NVTX functions not installed. Are you sure you have a CUDA build?"
mark = import_only_function("mark", _MODULE, _BECAUSE, RuntimeError)
range = import_only_function("range", _MODULE, _BECAUSE, RuntimeError)
range_end = import_only_function("range_end", _MODULE, _BECAUSE, RuntimeError)
range_pop = import_only_function("range_pop", _MODULE, _BECAUSE, RuntimeError)
range_push = import_only_function("range_push", _MODULE, _BECAUSE, RuntimeError)
range_start = import_only_function("range_start", _MODULE, _BECAUSE, RuntimeError)
