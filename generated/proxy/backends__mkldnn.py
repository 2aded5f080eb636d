# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.backends.mkldnn, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import NoOpContext, returning

_MODULE = "torch.backends.mkldnn"
allow_tf32 = False
deterministic = False
enabled = False
is_available = returning("is_available", _MODULE, False)


class flags(NoOpContext):
    """Changes nothing."""


class verbose(NoOpContext):
    """Changes nothing."""
