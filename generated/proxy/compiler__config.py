# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.compiler.config, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import NoOpContext

_MODULE = "torch.compiler.config"
cache_key_tag = ""
force_disable_caches = False
job_id = None


class patch(NoOpContext):
    """Changes nothing."""
