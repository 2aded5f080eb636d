# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.nn.functional, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch.distributed.nn.functional"
_BECAUSE = "mindtorch_v2 runs in one process"
all_gather = import_only_function("all_gather", _MODULE, _BECAUSE, NotImplementedError)
all_reduce = import_only_function("all_reduce", _MODULE, _BECAUSE, NotImplementedError)
all_to_all = import_only_function("all_to_all", _MODULE, _BECAUSE, NotImplementedError)
all_to_all_single = import_only_function("all_to_all_single", _MODULE, _BECAUSE, NotImplementedError)
broadcast = import_only_function("broadcast", _MODULE, _BECAUSE, NotImplementedError)
gather = import_only_function("gather", _MODULE, _BECAUSE, NotImplementedError)
reduce = import_only_function("reduce", _MODULE, _BECAUSE, NotImplementedError)
reduce_scatter = import_only_function("reduce_scatter", _MODULE, _BECAUSE, NotImplementedError)
scatter = import_only_function("scatter", _MODULE, _BECAUSE, NotImplementedError)
