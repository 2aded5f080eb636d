# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.backends.mps, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import returning

_MODULE = "torch.backends.mps"
get_core_count = returning("get_core_count", _MODULE, 0)
get_name = returning("get_name", _MODULE, "")
is_available = returning("is_available", _MODULE, False)
is_built = returning("is_built", _MODULE, False)
is_macos13_or_newer = returning("is_macos13_or_newer", _MODULE, False)
is_macos_or_newer = returning("is_macos_or_newer", _MODULE, False)
