# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._functorch.config, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import NoOpContext

_MODULE = "torch._functorch.config"
activation_memory_budget = 1.0
donated_buffer = False
functionalize_rng_ops = False


class patch(NoOpContext):
    """Changes nothing."""
