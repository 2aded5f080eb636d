"""Members of Tensor that only sparse tensors have a use for."""

from __future__ import annotations

from typing import Any

from ..._dispatch import native
from ..._tensor import Tensor
from ..functions import sparse
from .signatures import checked

MEMBERS: dict[str, Any] = {
    "is_coalesced": sparse.is_coalesced,
    "_coalesced_": sparse._coalesced_,
    "_nnz": sparse._nnz,
    "sparse_dim": sparse.sparse_dim,
    "dense_dim": sparse.dense_dim,
    "_dimI": sparse.sparse_dim,
    "_dimV": sparse.dense_dim,
    "to_sparse_coo": sparse.to_sparse_coo,
}
ATTACHED = native.members(Tensor, checked(MEMBERS))
