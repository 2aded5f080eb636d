# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.cuda.streams, functional stub."""

from __future__ import annotations

from torch.cuda import (
    Event, ExternalStream, Stream,
)

_MODULE = "torch.cuda.streams"
