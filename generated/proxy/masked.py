# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.masked, import-only stub."""

from __future__ import annotations

from mindtorch_v2.masked import (
    amax, amin, argmax, argmin, cumprod, cumsum, log_softmax, logaddexp, logsumexp, mean, median, norm, normalize,
    prod, softmax, softmin, std, sum, var,
)
from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function

_MODULE = "torch.masked"
_BECAUSE = "masked tensors are not implemented"
as_masked_tensor = import_only_function("as_masked_tensor", _MODULE, _BECAUSE, NotImplementedError)
masked_tensor = import_only_function("masked_tensor", _MODULE, _BECAUSE, NotImplementedError)


class MaskedTensor(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
