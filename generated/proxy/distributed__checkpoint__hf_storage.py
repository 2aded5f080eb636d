# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.checkpoint.hf_storage, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly

_MODULE = "torch.distributed.checkpoint.hf_storage"
_BECAUSE = "mindtorch_v2 runs in one process"


class HuggingFaceStorageReader(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class HuggingFaceStorageWriter(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
