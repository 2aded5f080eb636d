# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.xpu.random, functional stub."""

from __future__ import annotations

from torch.xpu import (
    get_rng_state, get_rng_state_all, initial_seed, manual_seed, manual_seed_all, seed, seed_all, set_rng_state,
    set_rng_state_all,
)

_MODULE = "torch.xpu.random"
