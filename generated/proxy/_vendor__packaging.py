# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._vendor.packaging, import-only stub: vendored packages."""

from __future__ import annotations

from torch._vendor.packaging.version import (
    Version,
)
from mindtorch_v2._torch_proxy.placeholders import lazy_children

_MODULE = "torch._vendor.packaging"
__getattr__ = lazy_children(_MODULE)
