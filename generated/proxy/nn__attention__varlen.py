# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.nn.attention.varlen, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch.nn.attention.varlen"
_BECAUSE = "attention over packed sequences is not implemented"
varlen_attn = import_only_function("varlen_attn", _MODULE, _BECAUSE, NotImplementedError)
