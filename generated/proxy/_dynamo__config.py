# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._dynamo.config, functional stub: settings, which may be assigned and have no effect."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import NoOpContext

_MODULE = "torch._dynamo.config"
accumulated_cache_size_limit = 256
accumulated_recompile_limit = 256
allow_rnn = False
allow_unspec_int_on_nn_module = False
assume_static_by_default = True
automatic_dynamic_shapes = True
cache_size_limit = 8
caching_precompile = False
capture_dynamic_output_shape_ops = False
capture_scalar_outputs = False
compiled_autograd = False
disable = False
do_not_emit_runtime_asserts = False
dynamic_shapes = True
enable_cpp_guard_manager = True
error_on_recompile = False
fail_on_recompile_limit_hit = False
force_parameter_static_shapes = True
inline_inbuilt_nn_modules = True
optimize_ddp = True
prefer_deferred_runtime_asserts_over_guards = False
recompile_limit = 8
skip_fwd_side_effects_in_bwd_under_checkpoint = False
specialize_int = False
suppress_errors = False
use_lazy_graph_module = True
verbose = False


class patch(NoOpContext):
    """Changes nothing."""
