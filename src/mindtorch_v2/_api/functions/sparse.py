"""Making sparse tensors of Python data, and the checks of what they are made of."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._device import placed as _device
from ..._dispatch import ops
from ..._dispatch.native import builtin, unbound
from ..._dispatch.sparse import unavailable
from ..._dtype import int64
from ..._layout import LAYOUTS, layout as _layout
from ..._pending import settled
from ..._sparse_payload import CompressedPayload, CooPayload, CscPayload, CsrPayload, SparsePayload
from ..._tensor import Size, Tensor
from .construct import as_tensor, dtype_argument

_COMPRESSED = {
    "sparse_csr": ("crow_indices", "col_indices", "SparseCsr"),
    "sparse_csc": ("ccol_indices", "row_indices", "SparseCsc"),
    "sparse_bsr": ("crow_indices", "col_indices", "SparseBsr"),
    "sparse_bsc": ("ccol_indices", "row_indices", "SparseBsc"),
}
_CSR = CsrPayload.layout
_CSC = CscPayload.layout
_MOST_ELEMENTS = (1 << 63) - 1


class _Checks:
    """Whether what sparse tensors are made of is checked when nothing is said."""

    enabled = False
    warned = False  # of constructors of old


def checks_enabled() -> bool:
    """Whether what sparse tensors are made of is checked when nothing is said."""
    return _Checks.enabled


def set_checks(enabled: bool) -> None:
    """Say whether what sparse tensors are made of is checked when nothing is said."""
    _Checks.enabled = enabled


def _members(name: str, indices: Sequence[Any], values: Any, dtype: Any, device: Any, int_only: bool) -> tuple:
    kind = dtype_argument(name, dtype)
    where = None if device is None else _device(device)
    made = as_tensor(values, dtype=kind, device=where)
    found = []
    for given in indices:
        one = as_tensor(given, device=made.device)
        found.append(one.to(int64) if int_only or not isinstance(given, (Tensor, np.ndarray)) else one)
    return (*found, made)


@unbound
def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *more: int,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """A sparse tensor with `values` at coordinates, of which each column of `indices` is one; without `values`, `indices` is the shape of an empty one.

    RuntimeError for members that do not go together; for coordinates outside of the shape when `check_invariants`, or the setting
    `torch.sparse.check_sparse_tensor_invariants`, says so.
    """
    if values is None:
        shape = tuple(size if indices is None else indices)
        return ops.empty(shape, dtype=dtype, layout=CooPayload.layout, device=device, requires_grad=requires_grad)
    at, given = _members("sparse_coo_tensor", (indices,), values, dtype, device, True)
    if given.dim() == 0:
        given = given.expand(1)
    if size is None:
        shape = _inferred(at, given)
    else:
        shape = tuple(int(n) for n in ([size, *more] if isinstance(size, int) else size))
    check = _Checks.enabled if check_invariants is None else check_invariants
    check_coo(at, given, shape, is_coalesced, check)
    made = ops._sparse_coo_tensor_with_dims_and_tensors(
        at.shape[0], given.dim() - 1, shape, at, given, is_coalesced=is_coalesced
    )
    return _with_gradient(made, requires_grad)


def _with_gradient(made: Tensor, requires_grad: bool) -> Tensor:
    if requires_grad:
        if made._dtype.category < 2:
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        made.requires_grad_(True)
    return made


def _check_indices(indices: Tensor) -> None:
    if indices.dim() != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")


def _inferred(indices: Tensor, values: Tensor) -> tuple:
    """The smallest shape that has all coordinates."""
    _check_indices(indices)
    if indices.device.type == "meta":
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    array = settled(indices)
    lead: list[int] = [0] * len(array)
    if array.size:
        low, high = array.min(1), array.max(1)
        for dim, n in enumerate(low):
            if n < 0:
                raise RuntimeError(f"found negative index {n} for dim {dim}")
        lead = [int(n) + 1 for n in high]
    return (*lead, *values.shape[1:])


def check_coo(indices: Tensor, values: Tensor, size: Sequence[int], is_coalesced: bool | None, deep: bool) -> None:
    """RuntimeError where members of a coo tensor do not go together; `deep`: where coordinates are not of the shape, or not sorted as they should be."""
    dense_dim = values.dim() - 1
    lead = indices.shape[0] if indices.dim() else 0
    if indices.dim() == 2 or lead + dense_dim != len(size):
        if lead + dense_dim != len(size):
            raise RuntimeError(
                f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {lead}, dense_dim = {dense_dim}"
            )
    _check_indices(indices)
    if any(n < 0 for n in size) or math.prod(size) > _MOST_ELEMENTS:
        raise RuntimeError("numel: integer multiplication overflow")
    if indices.shape[1] != values.shape[0]:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {indices.shape[1]}, nnz from values: {values.shape[0]}"
        )
    wanted = [values.shape[0], *size[lead:]]
    if list(values.shape) != wanted:
        raise RuntimeError(f"values has incorrect size, expected {wanted}, got {list(values.shape)}")
    if not deep:
        return
    array = settled(indices)
    if array.size:
        for dim, (low, high) in enumerate(zip(array.min(1), array.max(1))):
            if low < 0:
                raise RuntimeError(f"found negative index {low} for dim {dim}")
            if high >= size[dim]:
                raise RuntimeError(
                    f"size is inconsistent with indices: for dim {dim}, size is {size[dim]} but found index {high}"
                )
    if is_coalesced and array.shape[1] > 1:
        order = np.lexsort(array[::-1]) if len(array) else np.arange(array.shape[1])
        ordered = bool((order == np.arange(len(order))).all())
        if not ordered or not (array[:, 1:] != array[:, :-1]).any(0).all():
            raise RuntimeError("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor")


def _absent(name: str, layout: _layout) -> NotImplementedError:
    return NotImplementedError(
        f"{name}(): tensors of the layout {layout} are not there; sparse_coo, sparse_csr and sparse_csc are"
    )


@unbound
def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    layout: _layout | None = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """A sparse matrix, or a batch of them, of compressed rows or columns. `layout` is sparse_csr or sparse_csc.

    RuntimeError for members that do not go together, and, as for `sparse_coo_tensor`, for what they hold. NotImplementedError for another compressed layout.
    """
    if layout is None or layout.name not in _COMPRESSED:
        names = {"strided": "Strided", "sparse_coo": "Sparse"}
        got = "none" if layout is None else names.get(layout.name, layout.name)
        raise RuntimeError(f"sparse_compressed_tensor expected sparse compressed tensor layout but got {got}")
    if layout is not _CSR and layout is not _CSC:
        raise _absent("sparse_compressed_tensor", layout)
    begins, within, given = _members(
        "sparse_compressed_tensor", (compressed_indices, plain_indices), values, dtype, device, False
    )
    if size is None:
        size = _inferred_size(begins, within, given, layout is _CSR)
    shape = tuple(int(n) for n in size)
    check_lines(
        begins, within, given, shape, layout is _CSR, _Checks.enabled if check_invariants is None else check_invariants
    )
    made = ops._sparse_compressed_tensor_unsafe(begins, within, given, shape, layout=layout)
    return _with_gradient(made, requires_grad)


def _inferred_size(begins: Tensor, within: Tensor, values: Tensor, of_rows: bool) -> tuple:
    if begins.dim() < 1:
        name = "crow_indices" if of_rows else "ccol_indices"
        raise RuntimeError(f"{name} must have dimensionality >= 1 but got {begins.dim()}")
    places = settled(within)
    pair = begins.shape[-1] - 1, int(places.max()) + 1 if places.size else 0
    batch = begins.dim() - 1
    return (*begins.shape[:-1], *(pair if of_rows else pair[::-1]), *values.shape[batch + 1 :])


def check_lines(begins: Tensor, within: Tensor, values: Tensor, size: Sequence[int], of_rows: bool, deep: bool) -> None:
    """RuntimeError where members of a compressed tensor do not go together; `deep`: where lines do not begin where they should, or are not sorted."""
    first, second, _ = (CsrPayload if of_rows else CscPayload).names
    line, place = ("row", "col") if of_rows else ("col", "row")
    batch = begins.dim() - 1
    for name, tensor in ((first, begins), (second, within), ("values", values)):
        if tensor.dim() < 1:
            raise RuntimeError(f"{name} must have dimensionality >= 1 but got {tensor.dim()}")
    if within.dim() != begins.dim():
        raise RuntimeError(
            f"{first} and {second} dimensionalities must be equal but got {begins.dim()} and {within.dim()}, respectively"
        )
    dense = values.dim() - batch - 1
    if dense < 0:
        raise RuntimeError(
            f"values must have dimensionality > sum of batch and block dimensionalities (={batch} + 0) but got {values.dim()}"
        )
    if len(size) != batch + 2 + dense:
        raise RuntimeError(
            "tensor dimensionality must be sum of batch, base, and dense dimensionalities "
            f"(={batch} + 2 + {dense}) but got {len(size)}"
        )
    if begins._dtype is not within._dtype:
        raise RuntimeError(
            f"{first} and {second} must have the same dtype, bot got {begins._dtype.cpp} and {within._dtype.cpp}, respectively"
        )
    if begins._dtype.name not in ("int32", "int64"):
        raise RuntimeError(f"{first} and {second} must be an int32 or int64 type, but got: {begins._dtype.cpp}")
    lines, places = size[batch : batch + 2] if of_rows else (size[batch + 1], size[batch])
    if any(list(t.shape[:batch]) != list(size[:batch]) for t in (begins, within, values)):
        raise RuntimeError(
            f"all batch dimensions of {first} (={list(begins.shape[:batch])}), {second} (={list(within.shape[:batch])}), values "
            f"(={list(values.shape[:batch])}), and input (={list(size[:batch])}) must be equal."
        )
    if begins.shape[-1] != lines + 1:
        which = "rows" if of_rows else "columns"
        raise RuntimeError(
            f"{first}.shape[-1] must be equal to the number of {which} + 1 (={lines + 1}), but got {begins.shape[-1]}"
        )
    nnz = values.shape[batch]
    if within.shape[-1] != nnz:
        raise RuntimeError(
            f"{second}.shape[-1] must be equal to nnz (={nnz}) as defined by values.shape[{batch}], but got {within.shape[-1]}"
        )
    if list(values.shape[batch + 1 :]) != list(size[batch + 2 :]):
        raise RuntimeError(
            f"values has incorrect size: its dense dimensions {list(values.shape[batch + 1 :])} are not those of {list(size)}"
        )
    if deep:
        count = math.prod(size[:batch])
        arrays = settled(begins).reshape(count, lines + 1), settled(within).reshape(count, nnz)
        _check_places(*arrays, places, (first, second, line, place))


def _check_places(begins: np.ndarray, within: np.ndarray, places: int, names: tuple[str, str, str, str]) -> None:
    first, second, line, place = names
    nnz = within.shape[1]
    counts = np.diff(begins, axis=1)
    for holds, what in (
        ((begins[:, 0] == 0).all(), f"{first}[..., 0] == 0"),
        ((begins[:, -1] == nnz).all(), f"{first}[..., -1] == nnz"),
        (
            (counts >= 0).all() and (counts <= places).all(),
            f"0 <= {first}[..., 1:] - {first}[..., :-1] <= n{place}s",
        ),
        ((within >= 0).all() and (within < places).all(), f"0 <= {second} < n{place}s"),
    ):
        if not holds:
            raise RuntimeError(f"`{what}` is not satisfied.")
    for starts, found in zip(begins, within):
        fresh = np.zeros(nnz + 1, bool)
        fresh[starts] = True
        if not ((found[1:] > found[:-1]) | fresh[1:nnz]).all():
            raise RuntimeError(
                f"`{second}[..., {first}[..., i - 1]:{first}[..., i]] for all i = 1, ..., n{line}s are sorted and distinct along the "
                "last dimension values` is not satisfied."
            )


@unbound
def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """`sparse_compressed_tensor` of the layout sparse_csr."""
    return sparse_compressed_tensor(
        crow_indices,
        col_indices,
        values,
        size,
        dtype=dtype,
        layout=_CSR,
        device=device,
        requires_grad=requires_grad,
        check_invariants=check_invariants,
    )


@unbound
def sparse_csc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """`sparse_compressed_tensor` of the layout sparse_csc."""
    return sparse_compressed_tensor(
        ccol_indices,
        row_indices,
        values,
        size,
        dtype=dtype,
        layout=_CSC,
        device=device,
        requires_grad=requires_grad,
        check_invariants=check_invariants,
    )


@unbound
def sparse_bsr_tensor(*args: Any, **kwargs: Any) -> Tensor:
    """Not there."""
    raise _absent("sparse_bsr_tensor", LAYOUTS["sparse_bsr"])


@unbound
def sparse_bsc_tensor(*args: Any, **kwargs: Any) -> Tensor:
    """Not there."""
    raise _absent("sparse_bsc_tensor", LAYOUTS["sparse_bsc"])


def _warn_of_old(form: str) -> None:
    """Say once what takes the place of the constructors of old."""
    if _Checks.warned:
        return
    _Checks.warned = True
    called, device = ("", "") if form == "(0,)" else (f"{form}, *, device=", "" if form == "(0,)" else ", device=")
    warnings.warn(
        f"torch.sparse.SparseTensor({called}) is deprecated.  Please use torch.sparse_coo_tensor({form}, dtype={device})",
        UserWarning,
        stacklevel=4,
    )


def legacy_sparse_tensor(dtype: Any, args: tuple, device: Any = None) -> Tensor:
    """`torch.sparse.FloatTensor(...)`: an empty tensor of a shape, or one of indices, values and perhaps a shape."""
    if device is not None and _device(device).type == "cuda":
        raise RuntimeError("legacy constructor expects device type: cpu but device type: cuda was passed")
    if len(args) == 1 and not isinstance(args[0], (int, Size)):
        raise TypeError(
            "SparseTensor.new(sequence) only accepts sizes.  Please use torch.sparse_coo_tensor() or construct a strided tensor and convert it "
            "to sparse via to_sparse."
        )
    form = (
        "(0,)"
        if not args
        else "shape"
        if not isinstance(args[0], Tensor)
        else "indices, values" + ", shape" * (len(args) > 2)
    )
    _warn_of_old(form)
    if len(args) > 1 and isinstance(args[0], Tensor):
        return sparse_coo_tensor(*args, dtype=dtype)
    shape = tuple(args[0]) if len(args) == 1 and not isinstance(args[0], int) else args or (0,)
    return ops.empty(shape, dtype=dtype, layout=CooPayload.layout, device=device)


@builtin
def dsmm(input: Tensor, mat2: Tensor) -> Tensor:
    """`mm`."""
    return ops.mm(input, mat2)


@builtin
def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """`mm`."""
    return ops.mm(input, mat2)


@builtin
def hsmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """`hspmm`."""
    return ops.hspmm(mat1, mat2)


@builtin
def saddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`sspaddmm`."""
    return ops.sspaddmm(input, mat1, mat2, beta=beta, alpha=alpha)


@unbound
def _validate_sparse_coo_tensor_args(
    indices: Tensor, values: Tensor, size: Any, is_coalesced: bool | None = None, check_pinning: bool | None = None
) -> None:
    """RuntimeError for what no coo tensor can be made of."""
    check_coo(indices, values, tuple(size), is_coalesced, True)


@unbound
def _validate_sparse_compressed_tensor_args(
    compressed_indices: Tensor,
    plain_indices: Tensor,
    values: Tensor,
    size: Any,
    layout: _layout,
    check_pinning: bool | None = None,
) -> None:
    """RuntimeError for what no csr tensor can be made of."""
    if layout is not _CSR and layout is not _CSC:
        raise _absent("_validate_sparse_compressed_tensor_args", layout)
    check_lines(compressed_indices, plain_indices, values, tuple(size), layout is _CSR, True)


@unbound
def _validate_sparse_csr_tensor_args(
    crow_indices: Tensor, col_indices: Tensor, values: Tensor, size: Any, check_pinning: bool | None = None
) -> None:
    """RuntimeError for what no csr tensor can be made of."""
    check_lines(crow_indices, col_indices, values, tuple(size), True, True)


# Members of Tensor that are no operators


def _name(self: Tensor) -> str:
    return self._payload.name if isinstance(self._payload, SparsePayload) else "Strided"


def _unavailable(self: Tensor, name: str) -> NotImplementedError:
    return unavailable(name, {"Sparse": "coo", "SparseCsr": "csr", "SparseCsc": "csc"}.get(_name(self), "strided"))


def is_coalesced(self: Tensor) -> bool:
    """Whether no coordinates stand twice, and they are sorted. RuntimeError for another layout."""
    if not isinstance(self._payload, CooPayload):
        raise RuntimeError(f"is_coalesced expected sparse coordinate tensor layout but got {_name(self)}")
    return self._payload.coalesced


def _coalesced_(self: Tensor, coalesced: bool) -> Tensor:
    """Take somebody's word for whether coordinates are sorted and stand once."""
    data = self._payload
    if not isinstance(data, CooPayload):
        raise _unavailable(self, "_coalesced_")
    self._payload = CooPayload(data.shape, data.indices, data.values, bool(coalesced))
    return self


def _nnz(self: Tensor) -> int:
    """The number of specified elements. NotImplementedError for dense tensors."""
    if not isinstance(self._payload, (CooPayload, CompressedPayload)):
        raise _unavailable(self, "_nnz")
    return self._payload.nnz


def sparse_dim(self: Tensor) -> int:
    """The number of sparse dimensions."""
    data = self._payload
    return data.sparse_dim if isinstance(data, CooPayload) else 2 if isinstance(data, CompressedPayload) else 0


def dense_dim(self: Tensor) -> int:
    """The number of dense dimensions."""
    data = self._payload
    if isinstance(data, CompressedPayload):
        return data.values.dim() - data.batch - 1
    return data.ndim - sparse_dim(self)


def to_sparse_coo(self: Tensor) -> Tensor:
    """The elements that are not zero, in the layout sparse_coo."""
    return self.to_sparse()


def _copying(name: str) -> Any:
    def copying(input: Tensor) -> Tensor:
        return getattr(input, name)().clone()

    copying.__name__ = copying.__qualname__ = f"{name}_copy"
    copying.__doc__ = f"A copy of what `{name}` of a sparse tensor gives."
    return builtin(copying)


ccol_indices_copy, row_indices_copy = _copying("ccol_indices"), _copying("row_indices")
crow_indices_copy, col_indices_copy = _copying("crow_indices"), _copying("col_indices")
indices_copy, values_copy = _copying("indices"), _copying("values")
