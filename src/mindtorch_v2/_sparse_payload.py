"""What a sparse tensor holds: tensors of indices and of values, in place of memory for every element.

`coo` tensors have `indices` of shape (sparse dimensions, specified elements) and `values` whose first dimension counts these elements and whose
others are the dense dimensions. `csr` tensors have, of matrices or batches of them, `crow` (where each row begins) and `col`; `csc` tensors have the same of
columns, `ccol` and `row`.

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
        return self.indices._payload.shape[0]

    @property
    def nnz(self) -> int:
        return self.values._payload.shape[0]

    def like(self, values: Tensor, shape: tuple | None = None) -> CooPayload:
        """Other values at the same coordinates."""
        return CooPayload(self.shape if shape is None else shape, self.indices, values, self.coalesced)

    def members(self) -> tuple[Tensor, Tensor]:
        """The tensors that it is made of."""
        return self.indices, self.values


class CompressedPayload(SparsePayload):
    """Matrices, or batches of them, by lines: where each begins, and where the elements stand in it. A line is a row or a column."""

    __slots__ = ("begins", "within")

    kind = "SparseCsrTensorImpl"
    key: str
    of_rows: bool
    names: tuple[str, str, str]  # of the members

    def __init__(self, shape: tuple, begins: Tensor, within: Tensor, values: Tensor):
        SPARSE.add(self.key)
        self.shape = shape
        self.dtype = values._dtype
        self.begins = begins
        self.within = within
        self.values = values

    @property
    def stride(self) -> Any:
        raise RuntimeError(f"Sparse {self.key.upper()} tensors do not have strides")

    @property
    def offset(self) -> Any:
        raise RuntimeError(f"Sparse {self.key.upper()} tensors do not have storage offset")

    @property
    def batch(self) -> int:
        """How many dimensions are batches of matrices."""
        return self.begins._payload.ndim - 1

    @property
    def nnz(self) -> int:
        return self.within._payload.shape[-1]

    def like(self, values: Tensor, shape: tuple | None = None) -> CompressedPayload:
        """Other values at the same places."""
        return self.__class__(self.shape if shape is None else shape, self.begins, self.within, values)

    def members(self) -> tuple[Tensor, Tensor, Tensor]:
        """The tensors that it is made of."""
        return self.begins, self.within, self.values


class CsrPayload(CompressedPayload):
    """Rows of matrices one after the other, each with its columns in order."""

    __slots__ = ()

    layout = _layout.LAYOUTS["sparse_csr"]
    name = "SparseCsr"
    key = "csr"
    of_rows = True
    names = ("crow_indices", "col_indices", "values")

    @property
    def crow(self) -> Tensor:
        """Where each row begins."""
        return self.begins

    @property
    def col(self) -> Tensor:
        """The column of each specified element."""
        return self.within


class CscPayload(CompressedPayload):
    """Columns of matrices one after the other, each with its rows in order."""

    __slots__ = ()

    layout = _layout.LAYOUTS["sparse_csc"]
    name = "SparseCsc"
    key = "csc"
    of_rows = False
    names = ("ccol_indices", "row_indices", "values")


def is_sparse(tensor: Any) -> bool:
    """Whether a tensor holds its elements in a sparse layout."""
    return isinstance(tensor._payload, SparsePayload)
