# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._inductor.runtime, import-only stub: the runtime of compiled programs."""

from __future__ import annotations

_MODULE = "torch._inductor.runtime"
