# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.backends, functional stub: libraries that torch may use; there are none."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.backends import (
    __allow_nonbracketed_mutation, disable_global_flags, flags_frozen,
)
from mindtorch_v2._torch_proxy.placeholders import lazy_children

_MODULE = "torch.backends"
fp32_precision = "none"
__getattr__ = lazy_children(_MODULE)
