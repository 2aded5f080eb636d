"""`x[index]` and `x[index] = value`.

Basic indices become views by `select`, `slice` and `unsqueeze`, tensors become `index` and `index_put_`. For plain CPU tensors without
history, an index that numpy reads alike is numpy's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from ..._autograd import wiring as _wiring  # noqa: F401 (connects the extension)
from ..._autograd.node import live_node, requires_grad
from ..._autograd.wiring import VIEW
from ..._dispatch import native, ops, overrides
from ..._dispatch.refusals import type_name
from ..._dtype import DTYPES
from ..._memory import FAR
from ..._payload import is_expanded
from ..._pending import settled
from ..._state import PLAIN, SPARSE, TLS
from ..._tensor import Tensor, bump_version, check_word, rare_of
from .signatures import checked

_new = object.__new__
_OF_HEAP = 1 << 9  # a flag of classes that are written in Python, whose names in C are without their module
_int64, _bool, _uint8 = (DTYPES[name] for name in ("int64", "bool", "uint8"))


def _numpy_reads_alike(index: Any) -> bool:
    """Whether an index is basic and means the same view, with the same strides, to numpy: no None, no bool, no negative step."""
    kind = index.__class__
    if kind is int or index is Ellipsis:
        return True
    if kind is slice:
        step = index.step
        return step is None or (step.__class__ is int and 0 < step < FAR)
    if kind is tuple:
        for item in index:
            part = item.__class__
            if part is int or item is Ellipsis:
                continue
            if part is slice:
                step = item.step
                if step is None or (step.__class__ is int and 0 < step < FAR):
                    continue
            return False
        return True
    return False


def __getitem__(self: Tensor, index: Any) -> Tensor:
    if self.__class__ in PLAIN:
        data = self._payload
        node = self._node
        if (
            data.__class__ is ndarray
            and (node is None or node is VIEW or not (TLS.grad_enabled or TLS.inference))
            and _numpy_reads_alike(index)
        ):
            try:
                found = data[index]
            except (IndexError, OverflowError):
                found = None  # out of range: the general path says so in PyTorch's words
            if found is not None and (found.size == 0 or (node is VIEW and requires_grad(self))):
                found = None  # numpy places a view without elements where its array begins
            if found is not None:
                if found.__class__ is not ndarray:
                    found = data[(*index, ...)] if index.__class__ is tuple else data[index, ...]
                made = _new(Tensor)
                made._payload = found
                kind = made._dtype = self._dtype
                base = self._base
                made._base = self if base is None else base
                made._node = VIEW if kind.category > 1 and (node is None or node is VIEW) else None
                return made
        if data.__class__ is ndarray:
            if index is None:
                return ops.unsqueeze(self, 0)
            if index.__class__ is tuple:
                view = _by_steps(self, index, index)
                if view is not None:
                    return ops.alias(self) if view is self else view
            if _selects(index) and data.ndim and not (index._dtype is _bool and index._payload.ndim > data.ndim):
                return ops.index(self, [index])
    special = overrides.find_for((self, *index) if index.__class__ is tuple else (self, index))
    if special is not None:
        return overrides.run_function(Tensor.__getitem__, special, (self, index), {})
    return read(self, index)


def _keep_none(position: Tensor) -> bool:
    return TLS.exporting is not None and TLS.exporting.varies(position)


def read(self: Tensor, index: Any, keep: Callable[[Tensor], bool] = _keep_none) -> Tensor:
    """`self[index]` by operators; `keep` says which positions without dimensions are no number to read."""
    view, indices = _basic(self, index, keep)
    if indices is None:
        return ops.alias(self) if view is self else view
    return ops.index(view, indices)


def __setitem__(self: Tensor, index: Any, value: Any) -> None:
    if self.__class__ in PLAIN and (_numpy_reads_alike(index) or _selects(index)) and _has_no_past(self):
        data = self._payload
        if data.__class__ is ndarray and data.flags.writeable and not is_expanded(data) and _store(data, index, value):
            bump_version(self)
            return
    special = overrides.find_for((self, value))
    if special is not None:
        overrides.run_function(Tensor.__setitem__, special, (self, index, value), {})
        return
    if SPARSE and (self.is_sparse or self.is_sparse_csr):
        raise TypeError("Cannot assign to a sparse tensor")
    write(self, index, value)


def write(self: Tensor, index: Any, value: Any, keep: Callable[[Tensor], bool] = _keep_none) -> None:
    """`self[index] = value` by operators; `keep` as of `read`."""
    view, indices = _basic(self, index, keep)
    if not isinstance(value, Tensor):
        value = _as_value(value, self)
    if indices is None:
        value = _without_leading_ones(value, view)
        ops.copy_(view, value if value.shape == view.shape else ops.expand(value, tuple(view.shape)))
        return
    ones = next((i for i, n in enumerate(value.shape) if n != 1), value.dim())
    ops.index_put_(view, indices, ops.reshape(value, tuple(value.shape)[ones:]) if ones else value)


def __delitem__(self: Tensor, index: Any) -> None:
    raise TypeError("Tensor does not support deleting items")


def _selects(index: Any) -> bool:
    """Whether an index is a tensor of the CPU that chooses elements as an array of numpy does."""
    if index.__class__ not in PLAIN:
        return False
    data = index._payload
    return data.__class__ is ndarray and data.ndim > 0 and (index._dtype is _bool or index._dtype is _int64)


def _has_no_past(self: Tensor) -> bool:
    """Whether a write to the tensor concerns no history, and nothing forbids it."""
    base = self._base
    for tensor in (self,) if base is None else (self, base):
        node = tensor._node
        if node is not None and (node is not VIEW or live_node(tensor) is not None):
            return False
        rare = rare_of(tensor)
        if rare is not None and (rare.inference or rare.multi_view):
            return False
    return True


def _store(data: ndarray, index: Any, value: Any) -> bool:
    """Let numpy write, where it writes as PyTorch does; False leaves it to the general path."""
    kind = value.__class__
    if kind is float or kind is int:
        if kind is float and data.dtype.kind not in "fc":
            return False
        stored = value
    elif kind in PLAIN and value._payload.__class__ is ndarray and _has_no_past(value):
        stored = value._payload
        if stored.dtype != data.dtype or np.may_share_memory(stored, data):
            return False
    else:
        return False
    if index.__class__ in PLAIN:
        index = index._payload
        if np.may_share_memory(index, data):
            return False
    try:
        data[index] = stored
    except (IndexError, ValueError, OverflowError, TypeError):  # the last of ml_dtypes' arrays
        return False
    return True


def _as_value(value: Any, like: Tensor) -> Tensor:
    """A number as a tensor. TypeError for all else: what is assigned is a tensor, or a number of Python's, which some of numpy's are."""
    from ..functions.construct import tensor

    if not isinstance(value, (int, float, complex, np.integer)) and not hasattr(type(value), "__torch_function__"):
        kind = type(value)
        name = (
            kind.__qualname__
            if kind.__flags__ & _OF_HEAP or kind.__module__ == "builtins"
            else f"{kind.__module__}.{kind.__qualname__}"
        )
        raise TypeError(f"can't assign a {type_name(value) if name == kind.__name__ else name} to a {like.type()}")
    if isinstance(value, complex) and not like._dtype.is_complex and value.imag:
        if like._dtype is _bool:
            return tensor(True, device=like.device)
        to = "int64_t" if like._dtype.category == 1 else like._dtype.cpp.lower()
        raise RuntimeError(f"value cannot be converted to type {to} without overflow")
    try:
        return tensor(value, dtype=like._dtype, device=like.device)
    except RuntimeError as error:  # PyTorch fills what is assigned to, whose dtypes have their names in C
        said = f"to type {str(like._dtype).partition('.')[2]} without"
        if said not in str(error):
            raise
        kind = str(like._dtype).partition(".")[2]
        raise RuntimeError(
            str(error).replace(said, f"to type {'int' if kind == 'int32' else kind + '_t'} without")
        ) from None


def _without_leading_ones(value: Tensor, target: Tensor) -> Tensor:
    """PyTorch lets an assigned value have more leading dimensions of size one than its place."""
    extra = value.dim() - target.dim()
    if extra > 0 and all(n == 1 for n in value.shape[:extra]):
        return ops.reshape(value, tuple(value.shape[extra:]))
    return value


def _basic(self: Tensor, index: Any, keep: Callable[[Tensor], bool] = _keep_none) -> tuple[Tensor, list | None]:
    """The view that the basic parts of an index give, and the tensors for `index`, by dimension; None when there are none."""
    view = _by_steps(self, index if index.__class__ is tuple else (index,), index)
    if view is not None:
        return view, None
    items = _items(index)
    result = self
    dim = 0  # of the result
    place = 0  # of self: what errors name
    tensors: dict[int, Tensor] = {}
    consumed = sum(_consumes(item) for item in items)
    if not self.dim() and len(items) == 1 and not isinstance(items[0], (slice, Tensor)) and consumed:
        _as_int(items[0])
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor to a "
            "number"
        )
    if consumed > self.dim():
        if not self.dim() and isinstance(items[0], slice):
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        raise IndexError(f"too many indices for tensor of dimension {self.dim()}")
    for item in items:
        if item is None:
            result = ops.unsqueeze(result, dim)
            dim += 1
        elif item is Ellipsis:
            dim += self.dim() - consumed
            place += self.dim() - consumed
        elif isinstance(item, bool) or item.__class__ is np.bool_:
            result = ops.unsqueeze(result, dim)
            tensors[dim] = _mask(bool(item), self)
            dim += 1
        elif isinstance(item, slice):
            result = _slice(result, dim, item, index is item)
            dim += 1
            place += 1
        elif isinstance(item, Tensor):
            if item.dim() == 0 and item._dtype.category == 1 and item._dtype is not _uint8 and not keep(item):
                result = _select(result, dim, int(item.item()), place)
                place += 1
                continue
            if item.dim() == 0 and item._dtype in (_bool, _uint8):  # a 0-dim mask adds a dimension of its own
                result = ops.unsqueeze(result, dim)
                tensors[dim] = ops.reshape(item, (1,)).to(_bool)
                dim += 1
                continue
            tensors[dim] = item
            dim += item.dim() if item._dtype in (_bool, _uint8) else 1
            place += item.dim() if item._dtype in (_bool, _uint8) else 1
        else:
            result = _select(result, dim, _as_int(item), place)
            place += 1
    if not tensors:
        return result, None
    indices: list = []
    dim = 0
    while dim <= max(tensors):
        item = tensors.get(dim)
        indices.append(item)
        dim += item.dim() if item is not None and item._dtype in (_bool, _uint8) else 1
    return result, indices if result.device.type == "cpu" else _read_on_cpu(result, indices)


def _by_steps(self: Tensor, parts: tuple, index: Any) -> Tensor | None:
    """The view that numbers, slices, None and Ellipsis give; None for another index, and where it is refused."""
    ndim = self.dim()
    place = 0
    for part in parts:
        if part.__class__ is int or part.__class__ is slice:
            place += 1
        elif part is not None and part is not Ellipsis:
            return None
    if place > ndim or not ndim:
        return None
    skipped = ndim - place
    result = self
    dim = place = 0
    for part in parts:
        if part is None:
            result = ops.unsqueeze(result, dim)
            dim += 1
        elif part is Ellipsis:
            dim += skipped
            place += skipped
        elif part.__class__ is slice:
            result = _slice(result, dim, part, index is part)
            dim += 1
            place += 1
        else:
            result = _select(result, dim, part, place)
            place += 1
    return result


def _read_on_cpu(view: Tensor, indices: list) -> list:
    """Indices for a tensor without data at hand, of which those that lie on the CPU are known: masks become positions, and bounds
    are checked."""
    known: list = []
    for item in indices:
        if item is None or settled(item).__class__ is not ndarray:
            known.append(item)
        elif item._dtype in (_bool, _uint8):
            start = len(known)
            if item.shape != view.shape[start : start + item.dim()]:
                known.append(item)  # the rule says what is wrong
            else:
                known.extend(ops.unbind(ops.nonzero(item), 1))
        else:
            _check_bounds(item._payload, len(known), view)
            known.append(item)
    return known


def _check_bounds(positions: ndarray, dim: int, view: Tensor) -> None:
    size = view.shape[dim] if dim < view.dim() else None
    if size is None or not positions.size:
        return
    outside = positions[(positions < -size) | (positions >= size)]
    if outside.size:
        raise IndexError(f"index {int(outside[0])} is out of bounds for dimension {dim} with size {size}")


def _items(index: Any) -> list:
    if isinstance(index, tuple):
        parts = list(index)
    elif isinstance(index, list) and any(
        isinstance(i, (slice, Tensor, list, tuple, ndarray, str, bytes)) or i is None or i is Ellipsis for i in index
    ):
        # A list that holds more than numbers is a tuple to PyTorch, if it is not long.
        parts = list(index) if len(index) < 32 else [index]
    else:
        parts = [index]
    return [_item(part) for part in parts]


def _item(part: Any) -> Any:
    """Sequences and arrays as tensors; all else as it is."""
    if isinstance(part, (list, tuple, range)):
        from ..functions.construct import tensor

        made = tensor(part if not isinstance(part, range) else list(part), device="cpu")
        if made._dtype.is_complex:
            raise TypeError("'complex' object cannot be interpreted as an integer")
        return made if made.numel() and made._dtype.category < 2 else made.to(_int64)
    if isinstance(part, ndarray):
        from ..functions.construct import from_numpy

        return from_numpy(np.array(part)) if part.ndim else (bool(part) if part.dtype == bool else int(part))
    if isinstance(part, Tensor) and part._dtype.category > 1:
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    return part


def _consumes(item: Any) -> int:
    if item is None or item is Ellipsis or isinstance(item, (bool, np.bool_)):
        return 0
    if isinstance(item, Tensor) and item._dtype in (_bool, _uint8):
        return item.dim()
    return 1


def _mask(value: bool, like: Tensor) -> Tensor:
    """Indices for a dimension of size 1 that a bool stands for: its element, or none."""
    return ops.zeros((1 if value else 0,), dtype=_int64, device=like.device)


def _as_int(item: Any) -> int:
    if hasattr(item, "__index__"):
        return item.__index__()
    if isinstance(item, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(item).__name__}'")
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got "
        f"{type_name(item)})"
    )


def _select(result: Tensor, dim: int, position: int, place: int) -> Tensor:
    size = result.shape[dim]
    if not -size <= position < size:
        check_word(position)
        raise IndexError(f"index {position} is out of bounds for dimension {place} with size {size}")
    return ops.select(result, dim, position)


def _slice(result: Tensor, dim: int, item: slice, alone: bool) -> Tensor:
    if isinstance(item.start, float) or isinstance(item.stop, float) or isinstance(item.step, float):
        raise TypeError("slice indices must be integers or None or have an __index__ method")
    step = 1 if item.step is None else _as_int(item.step)
    if step <= 0:
        raise ValueError("step must be greater than zero" if step else "slice step cannot be zero")
    start = None if item.start is None else _as_int(item.start)
    stop = None if item.stop is None else _as_int(item.stop)
    # An item that leaves everything in place is no operation, unless it is the whole index.
    if not alone and start in (None, 0) and step == 1 and (stop is None or stop >= result.shape[dim]) and result.dim():
        return result
    return ops.slice(result, dim, start, stop, step)


def _view_operators() -> tuple:
    from ..._generated.tables import view

    return view.slice_Tensor, view.select_int, view.unsqueeze, ops.index


MEMBERS = {
    "__getitem__": native.subscript(__getitem__, _view_operators),
    "__delitem__": __delitem__,
    "__setitem__": native.subscript(__setitem__, _view_operators),
}
ATTACHED = native.members(Tensor, checked(MEMBERS))
