# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.backends.opt_einsum, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import NoOpContext, returning

_MODULE = "torch.backends.opt_einsum"
enabled = False
strategy = None
get_opt_einsum = returning("get_opt_einsum", _MODULE, None)
is_available = returning("is_available", _MODULE, False)


class flags(NoOpContext):
    """Changes nothing."""
