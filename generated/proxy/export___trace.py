# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.export._trace, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch.export._trace"
_BECAUSE = "there is no symbolic tracing"
_export = import_only_function("_export", _MODULE, _BECAUSE, NotImplementedError)
_export_to_torch_ir = import_only_function("_export_to_torch_ir", _MODULE, _BECAUSE, NotImplementedError)
