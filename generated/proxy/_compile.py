# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._compile, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.compiler import (
    _disable_dynamo,
)

_MODULE = "torch._compile"
