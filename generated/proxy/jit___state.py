# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.jit._state, functional stub: the state of scripting."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import returning

_MODULE = "torch.jit._state"
_clear_class_state = returning("_clear_class_state", _MODULE, None)
disable = returning("disable", _MODULE, None)
enable = returning("enable", _MODULE, None)
