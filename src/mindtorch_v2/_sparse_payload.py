"""What a sparse tensor holds: tensors of indices and of values, in place of memory for every element.

`coo` tensors have `indices` of shape (sparse dimensions, specified elements) and `values` whose first dimension counts these elements and whose
others are the dense dimensions. `csr` tensors have, of matrices or batches of them, `crow` (where each row begins) and `col`.

The members are tensors without history. They are shared by what shares memory: views of values, detached tensors, aliases. A kernel that changes values
alone writes into them; one that changes which elements are specified gives the tensor another payload.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from . import _layout
from ._payload import Shaped
from ._state import SPARSE

if TYPE_CHECKING:
    from ._device import device
    from ._dtype import dtype
    from ._tensor import Tensor


class SparsePayload(Shaped):
    """Shape and dtype over the values of the specified elements."""

    __slots__ = ("shape", "dtype", "values", "__weakref__")

    shape: tuple
    dtype: dtype
    values: Tensor
    layout: _layout.layout
    name: str  # of the layout in messages
    kind: str  # of PyTorch's tensors of this layout

    def members(self) -> tuple[Tensor, ...]:
        """The tensors that it is made of: places, and values behind them."""
        raise NotImplementedError

    @property
    def device(self) -> device:
        return self.values.device

    @property
    def storage(self) -> NoReturn:
        raise NotImplementedError(f"Cannot access storage of {self.kind}")


class CooPayload(SparsePayload):
    """Elements by their coordinates. coalesced: no coordinates stand twice, and they are sorted."""

    __slots__ = ("indices", "coalesced")

    layout = _layout.LAYOUTS["sparse_coo"]
    name = "Sparse"
    kind = "SparseTensorImpl"
    offset = 0

    def __init__(self, shape: tuple, indices: Tensor, values: Tensor, coalesced: bool):
        SPARSE.add("coo")
        self.shape = shape
        self.dtype = values._dtype
        self.indices = indices
        self.values = values
        self.coalesced = coalesced

    @property
    def stride(self) -> tuple:
        return (0,) * len(self.shape)

    @property
    def sparse_dim(self) -> int:
        return self.indices._data.shape[0]

    @property
    def nnz(self) -> int:
        return self.values._data.shape[0]

    def like(self, values: Tensor, shape: tuple | None = None) -> CooPayload:
        """Other values at the same coordinates."""
        return CooPayload(self.shape if shape is None else shape, self.indices, values, self.coalesced)

    def members(self) -> tuple[Tensor, Tensor]:
        """The tensors that it is made of."""
        return self.indices, self.values


class CsrPayload(SparsePayload):
    """Rows of matrices one after the other, each with its columns in order."""

    __slots__ = ("crow", "col")

    layout = _layout.LAYOUTS["sparse_csr"]
    name = "SparseCsr"
    kind = "SparseCsrTensorImpl"

    def __init__(self, shape: tuple, crow: Tensor, col: Tensor, values: Tensor):
        SPARSE.add("csr")
        self.shape = shape
        self.dtype = values._dtype
        self.crow = crow
        self.col = col
        self.values = values

    @property
    def stride(self) -> Any:
        raise RuntimeError("Sparse CSR tensors do not have strides")

    @property
    def offset(self) -> Any:
        raise RuntimeError("Sparse CSR tensors do not have storage offset")

    @property
    def batch(self) -> int:
        """How many dimensions are batches of matrices."""
        return self.crow._data.ndim - 1

    @property
    def nnz(self) -> int:
        return self.col._data.shape[-1]

    def like(self, values: Tensor, shape: tuple | None = None) -> CsrPayload:
        """Other values at the same places."""
        return CsrPayload(self.shape if shape is None else shape, self.crow, self.col, values)

    def members(self) -> tuple[Tensor, Tensor, Tensor]:
        """The tensors that it is made of."""
        return self.crow, self.col, self.values


def is_sparse(tensor: Any) -> bool:
    """Whether a tensor holds its elements in a sparse layout."""
    return isinstance(tensor._data, SparsePayload)
