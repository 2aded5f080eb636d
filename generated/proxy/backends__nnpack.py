# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.backends.nnpack, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import NoOpContext, returning

_MODULE = "torch.backends.nnpack"
is_available = returning("is_available", _MODULE, False)
set_flags = returning("set_flags", _MODULE, [False])


class flags(NoOpContext):
    """Changes nothing."""
