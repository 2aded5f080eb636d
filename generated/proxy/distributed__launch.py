# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.launch, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch.distributed.launch"
_BECAUSE = "mindtorch_v2 runs in one process"
launch = import_only_function("launch", _MODULE, _BECAUSE, NotImplementedError)
main = import_only_function("main", _MODULE, _BECAUSE, NotImplementedError)
