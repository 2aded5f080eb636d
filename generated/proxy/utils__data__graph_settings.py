# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.utils.data.graph_settings, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import identity, returning

_MODULE = "torch.utils.data.graph_settings"
get_all_graph_pipes = returning("get_all_graph_pipes", _MODULE, [])
apply_random_seed = identity("apply_random_seed", _MODULE)
apply_sharding = identity("apply_sharding", _MODULE)
apply_shuffle_settings = identity("apply_shuffle_settings", _MODULE)
