# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.backends.mkl, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import NoOpContext, returning

_MODULE = "torch.backends.mkl"
VERBOSE_OFF = 0
VERBOSE_ON = 1
is_available = returning("is_available", _MODULE, False)


class verbose(NoOpContext):
    """Changes nothing."""
