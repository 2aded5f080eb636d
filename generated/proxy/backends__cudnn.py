# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.backends.cudnn, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.backends import (
    flags, set_flags,
)
from mindtorch_v2._torch_proxy.placeholders import returning

_MODULE = "torch.backends.cudnn"
allow_tf32 = False
benchmark = False
benchmark_limit = 10
deterministic = False
enabled = False
is_acceptable = returning("is_acceptable", _MODULE, False)
is_available = returning("is_available", _MODULE, False)
version = returning("version", _MODULE, None)
