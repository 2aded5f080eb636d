# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.jit._recursive, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.jit import (
    concrete_type_store,
)
from mindtorch_v2._torch_proxy.placeholders import NoOpContext

_MODULE = "torch.jit._recursive"


class ConcreteTypeStore(NoOpContext):
    """Changes nothing."""
