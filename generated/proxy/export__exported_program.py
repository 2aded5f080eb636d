# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.export.exported_program, import-only stub."""

from __future__ import annotations

from torch.export import (
    ExportedProgram,
)
from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch.export.exported_program"
_BECAUSE = "there is no symbolic tracing"
_convert_guards_to_code = import_only_function("_convert_guards_to_code", _MODULE, _BECAUSE, NotImplementedError)
