# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.autograd.profiler_legacy, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly

_MODULE = "torch.autograd.profiler_legacy"
_BECAUSE = "there is no profiler"


class profile(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
