# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._inductor.utils, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import returning

_MODULE = "torch._inductor.utils"
fresh_inductor_cache = returning("fresh_inductor_cache", _MODULE, None)
is_big_gpu = returning("is_big_gpu", _MODULE, False)
