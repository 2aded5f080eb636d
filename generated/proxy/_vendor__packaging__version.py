# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._vendor.packaging.version, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.versions import (
    InvalidVersion, Version, parse,
)

_MODULE = "torch._vendor.packaging.version"
