# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._subclasses.meta_utils, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly

_MODULE = "torch._subclasses.meta_utils"
_BECAUSE = "there are no fake tensors; the meta device computes shapes"


class MetaConverter(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
