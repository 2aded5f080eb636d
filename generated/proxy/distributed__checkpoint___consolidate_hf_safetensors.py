# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.checkpoint._consolidate_hf_safetensors, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch.distributed.checkpoint._consolidate_hf_safetensors"
_BECAUSE = "mindtorch_v2 runs in one process"
consolidate_safetensors_files = import_only_function("consolidate_safetensors_files", _MODULE, _BECAUSE, NotImplementedError)
consolidate_safetensors_files_on_every_rank = import_only_function("consolidate_safetensors_files_on_every_rank", _MODULE, _BECAUSE, NotImplementedError)
