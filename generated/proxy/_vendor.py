# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._vendor, import-only stub: vendored packages."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import lazy_children

_MODULE = "torch._vendor"
__getattr__ = lazy_children(_MODULE)
