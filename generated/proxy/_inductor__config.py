# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._inductor.config, functional stub: settings, which may be assigned and have no effect."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import NoOpContext

_MODULE = "torch._inductor.config"
compile_threads = 1
coordinate_descent_tuning = False
cpp_wrapper = False
debug = False
emulate_precision_casts = False
epilogue_fusion = True
fallback_random = False
force_disable_caches = False
freezing = False
fx_graph_cache = True
max_autotune = False


class patch(NoOpContext):
    """Changes nothing."""
