# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed._composable.replicate, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch.distributed._composable.replicate"
_BECAUSE = "mindtorch_v2 runs in one process"
replicate = import_only_function("replicate", _MODULE, _BECAUSE, NotImplementedError)
