# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._dynamo.external_utils, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import identity, returning

_MODULE = "torch._dynamo.external_utils"
is_compiling = returning("is_compiling", _MODULE, False)
wrap_inline = identity("wrap_inline", _MODULE)
wrap_numpy = identity("wrap_numpy", _MODULE)
