# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.algorithms.ddp_comm_hooks.default_hooks, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch.distributed.algorithms.ddp_comm_hooks.default_hooks"
_BECAUSE = "mindtorch_v2 runs in one process"
allreduce_hook = import_only_function("allreduce_hook", _MODULE, _BECAUSE, NotImplementedError)
bf16_compress_hook = import_only_function("bf16_compress_hook", _MODULE, _BECAUSE, NotImplementedError)
bf16_compress_wrapper = import_only_function("bf16_compress_wrapper", _MODULE, _BECAUSE, NotImplementedError)
fp16_compress_hook = import_only_function("fp16_compress_hook", _MODULE, _BECAUSE, NotImplementedError)
fp16_compress_wrapper = import_only_function("fp16_compress_wrapper", _MODULE, _BECAUSE, NotImplementedError)
