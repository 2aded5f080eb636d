# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.cuda.profiler, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch.cuda.profiler"
_BECAUSE = "Torch not compiled with CUDA enabled"
profile = import_only_function("profile", _MODULE, _BECAUSE, AssertionError)
start = import_only_function("start", _MODULE, _BECAUSE, AssertionError)
stop = import_only_function("stop", _MODULE, _BECAUSE, AssertionError)
