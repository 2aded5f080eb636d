# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.sparse, import-only stub."""

from __future__ import annotations

from mindtorch_v2 import (
    Tensor,
)
from mindtorch_v2._torch_proxy.placeholders import ImportOnly, NoOpContext, import_only_function

_MODULE = "torch.sparse"
_BECAUSE = "sparse tensors are not implemented"
addmm = import_only_function("addmm", _MODULE, _BECAUSE, NotImplementedError)
log_softmax = import_only_function("log_softmax", _MODULE, _BECAUSE, NotImplementedError)
mm = import_only_function("mm", _MODULE, _BECAUSE, NotImplementedError)
softmax = import_only_function("softmax", _MODULE, _BECAUSE, NotImplementedError)
spdiags = import_only_function("spdiags", _MODULE, _BECAUSE, NotImplementedError)
sum = import_only_function("sum", _MODULE, _BECAUSE, NotImplementedError)
to_sparse_semi_structured = import_only_function("to_sparse_semi_structured", _MODULE, _BECAUSE, NotImplementedError)


class check_sparse_tensor_invariants(NoOpContext):
    """Changes nothing."""


class BFloat16Tensor(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ByteTensor(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class CharTensor(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class DoubleTensor(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class FloatTensor(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class HalfTensor(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class IntTensor(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class LongTensor(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ShortTensor(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class SparseSemiStructuredTensor(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class SparseSemiStructuredTensorCUSPARSELT(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class SparseSemiStructuredTensorCUTLASS(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
