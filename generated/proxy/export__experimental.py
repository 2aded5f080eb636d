# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.export.experimental, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch.export.experimental"
_BECAUSE = "there is no symbolic tracing"
_export_forward_backward = import_only_function("_export_forward_backward", _MODULE, _BECAUSE, NotImplementedError)
