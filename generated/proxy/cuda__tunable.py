# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.cuda.tunable, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import returning

_MODULE = "torch.cuda.tunable"
is_enabled = returning("is_enabled", _MODULE, False)
tuning_is_enabled = returning("tuning_is_enabled", _MODULE, False)
