# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.utils.data.datapipes.iter.combinatorics, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly

_MODULE = "torch.utils.data.datapipes.iter.combinatorics"
_BECAUSE = "data pipes are not implemented"


class Sampler(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class SamplerIterDataPipe(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class Shuffler(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ShufflerIterDataPipe(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
