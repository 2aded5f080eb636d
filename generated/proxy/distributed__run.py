# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.run, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch.distributed.run"
_BECAUSE = "mindtorch_v2 runs in one process"
get_args_parser = import_only_function("get_args_parser", _MODULE, _BECAUSE, NotImplementedError)
main = import_only_function("main", _MODULE, _BECAUSE, NotImplementedError)
run = import_only_function("run", _MODULE, _BECAUSE, NotImplementedError)
