# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.export._unlift, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch.export._unlift"
_BECAUSE = "there is no symbolic tracing"
_ok_to_generate_guards_fn = import_only_function("_ok_to_generate_guards_fn", _MODULE, _BECAUSE, NotImplementedError)
