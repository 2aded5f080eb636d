# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.backends.cpu, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import returning

_MODULE = "torch.backends.cpu"
get_cpu_capability = returning("get_cpu_capability", _MODULE, "DEFAULT")
