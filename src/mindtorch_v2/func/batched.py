"""Batched tensors, and how functions run on them.

Note [Batched tensors]
Inside `vmap` an argument is a `BatchedTensor`: a tensor with the batch as its first dimension, which shows the shape of one example. A pointwise operator
lines the examples' dimensions up behind the batch and runs once; so do products of matrices, full sums, and indexing an ordinary tensor by batched
positions. Every other operator runs example by example and stacks the results: right for all, fast for few. Levels nest: the value of a batched
tensor may be batched itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeGuard

from .._autograd import api
from .._dispatch import ops
from .._tensor import Size, Tensor, alias_as
from . import rules


class BatchedTensor(Tensor):
    """One example's view of a batch; see Note [Batched tensors]."""

    _value: Tensor
    _level: int

    @property
    def shape(self) -> Size:
        return Size(self._value.shape[1:])

    @property
    def ndim(self) -> int:
        return self._value.dim() - 1

    @property
    def data(self) -> Tensor:
        raise RuntimeError("accessing `data` under vmap transform is not allowed")

    @data.setter
    def data(self, value: Tensor) -> None:
        raise RuntimeError("mutating directly with `.data` under vmap transform is not allowed.")

    def dim(self) -> int:
        """The number of dimensions of one example."""
        return self._value.dim() - 1

    def size(self, dim: int | None = None) -> Any:
        """The shape of one example."""
        return self.shape if dim is None else self.shape[dim]

    def item(self) -> Any:
        """Batches have no single value."""
        raise RuntimeError(
            "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, please try to "
            "rewrite what you're doing with other operations. If error is occurring somewhere inside PyTorch internals, please file a bug "
            "report."
        )

    def __bool__(self) -> bool:
        raise RuntimeError(
            "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that yet, please "
            "shout over at https://github.com/pytorch/functorch/issues/257 ."
        )

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return f"BatchedTensor(lvl={self._level}, bdim=0, value=\n    {self._value!r}\n)"

    @classmethod
    def __torch_function__(cls, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return run(func, args, kwargs or {})


Level = Callable[[Any], TypeGuard[BatchedTensor]]


def batched(value: Tensor, level: int) -> BatchedTensor:
    """A batched tensor over a value whose first dimension is the batch."""
    plain = innermost(value)
    made = alias_as(BatchedTensor, plain)
    made._node = plain._node
    made._value = value
    made._level = level
    return made


def innermost(value: Tensor) -> Tensor:
    """The plain tensor under all levels."""
    while isinstance(value, BatchedTensor):
        value = value._value
    return value


def at(level: int) -> Level:
    """Whether something is batched at a level."""

    def check(value: Any) -> TypeGuard[BatchedTensor]:
        return isinstance(value, BatchedTensor) and value._level == level

    return check


def tensors_in(tree: Any) -> list:
    """The tensors of nested arguments."""
    if isinstance(tree, Tensor):
        return [tree]
    if isinstance(tree, dict):
        return [t for item in tree.values() for t in tensors_in(item)]
    if isinstance(tree, (tuple, list)):
        return [t for item in tree for t in tensors_in(item)]
    return []


def mapped(tree: Any, function: Callable) -> Any:
    """Nested arguments with every tensor replaced."""
    if isinstance(tree, Tensor):
        return function(tree)
    if isinstance(tree, dict):
        return {key: mapped(item, function) for key, item in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(mapped(item, function) for item in tree))
    if isinstance(tree, (tuple, list)):
        return type(tree)(mapped(item, function) for item in tree)
    return tree


def run(func: Callable, args: tuple, kwargs: dict) -> Any:
    """Run a torch function on the innermost level of its batched arguments."""
    given = tensors_in((args, kwargs))
    level = max(t._level for t in given if isinstance(t, BatchedTensor))
    at_level = at(level)
    name = getattr(func, "__name__", "")
    if func is api.grad:
        size = next(t for t in given if at_level(t))._value.shape[0]
        found = rules.gradients(args, kwargs, at_level, size)
        return tuple(None if g is None else batched(g, level) for g in found)
    inplace = is_inplace(name)
    if inplace or kwargs.get("out") is not None:
        _check_target(name, args[0] if inplace else kwargs["out"], given, at_level)
    _check_dynamic(name, args, at_level)
    found = _inplace_at_once(func, name, args, kwargs, at_level) if inplace else None
    if not inplace:
        found = _at_once(func, name, args, kwargs, at_level, level)
    if found is not None:
        return found
    if not Fallback.enabled:
        raise RuntimeError(
            f"Batching rule not implemented for aten::{name}. We could not generate a fallback. (torch._C._functorch._set_vmap_fallback_enabled "
            "has switched it off)"
        )
    rows = run_rows(func, args, kwargs, level)
    return args[0] if inplace and isinstance(args[0], Tensor) else stack(rows, level)


class Fallback:
    """Whether operators without a rule for whole batches may run example by example."""

    enabled = True


def run_rows(func: Callable, args: tuple, kwargs: dict, level: int) -> list:
    """The results of every example."""
    at_level = at(level)
    size = next(t for t in tensors_in((args, kwargs)) if at_level(t))._value.shape[0]
    rows = []
    for row in range(size):
        pick = functools.partial(_row, at_level=at_level, row=row)
        rows.append(func(*mapped(args, pick), **mapped(kwargs, pick)))
    return rows


def _row(t: Tensor, at_level: Level, row: int) -> Tensor:
    return t._value[row] if at_level(t) else t


def stack(rows: list, level: int) -> Any:
    """The results of all examples as batched tensors."""
    first = rows[0]
    if isinstance(first, Tensor):
        return batched(ops.stack(rows), level)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(stack([row[i] for row in rows], level) for i in range(len(first))))
    if isinstance(first, (tuple, list)):
        return type(first)(stack([row[i] for row in rows], level) for i in range(len(first)))
    return first


# Refusals


def is_inplace(name: str) -> bool:
    """Whether a function of this name writes into its first argument."""
    return name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))


def _check_target(name: str, target: Any, given: list, at_level: Level) -> None:
    """RuntimeError when examples would write into one tensor that is not batched."""
    if isinstance(target, Tensor) and not at_level(target) and any(at_level(t) for t in given):
        raise RuntimeError(
            f"vmap: {'inplace arithmetic' if not name.startswith('index') else name}(self, *extra_args) is not possible because there exists a "
            "Tensor `other` in extra_args that has more elements than `self`. This happened due to `other` being vmapped over but `self` not "
            "being vmapped over in a vmap. Please try to use out-of-place operators instead of inplace arithmetic. If said operator is being "
            "called inside the PyTorch framework, please file a bug report instead."
        )


_DYNAMIC = {"nonzero", "argwhere", "unique", "_unique2", "unique_dim", "unique_consecutive"}


def _check_dynamic(name: str, args: tuple, at_level: Level) -> None:
    """RuntimeError for operators whose result has another shape for each example."""
    if name in _DYNAMIC or (name == "where" and len(args) == 1):
        shown = {"unique": "_unique2"}.get(name, name)
        raise RuntimeError(
            f"vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over aten::{shown}. Please file an "
            "issue at https://github.com/pytorch/pytorch/issues if you need this feature."
        )
    if name == "masked_select" and at_level(args[1]):
        raise RuntimeError(
            "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support this because for each batch this would "
            "return a differently shaped Tensor. Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature."
        )
    if name == "__getitem__":
        items = args[1] if isinstance(args[1], tuple) else (args[1],)
        if any(at_level(i) and i.dtype.category == 0 for i in items):
            raise RuntimeError(
                "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing with a boolean mask."
            )


# Whole batches at once


_PRODUCTS = {"matmul": None, "__matmul__": None, "mm": (2, 2), "bmm": (3, 3), "mv": (2, 1), "dot": (1, 1)}
"""Products, and how many dimensions their operands have."""


def _inplace_at_once(func: Callable, name: str, args: Any, kwargs: dict, at_level: Level) -> Any:
    """The target of a pointwise operator that has written to the whole batch, or None."""
    target = args[0] if args else None
    if not isinstance(target, Tensor) or not at_level(target) or not _is_pointwise(name[:-1]):
        return None
    width = target.dim()
    if any(t.dim() > width for t in tensors_in((args, kwargs))):
        return None
    lined_up = functools.partial(line_up, at_level=at_level, width=width)
    func(*mapped(args, lined_up), **mapped(kwargs, lined_up))
    return target


def _at_once(func: Callable, name: str, args: Any, kwargs: dict, at_level: Level, level: int) -> Any:
    """The result of an operator that can run on the whole batch, or None."""
    if _is_pointwise(name):
        operands = tensors_in((args, kwargs))
        width = max(t.dim() for t in operands)
        if any(t.dim() == 0 < width for t in operands) and any(t.dtype is not operands[0].dtype for t in operands):
            return None  # examples without dimensions promote as numbers do, and in a batch they have one
        lined_up = functools.partial(line_up, at_level=at_level, width=width)
        result = func(*mapped(args, lined_up), **mapped(kwargs, lined_up))
        return mapped(result, lambda t: batched(t, level))
    if name in rules.AS and len(args) == 2 and not at_level(args[0]):
        return getattr(ops, rules.AS[name])(args[0], list(args[1].shape))  # of the other one the shape counts alone
    seen = rules.view(func, name, args, kwargs, at_level)
    if seen is not None:
        return mapped(seen, lambda t: batched(t, level))
    if name == "__getitem__":
        if not at_level(args[0]):
            return _index(args[0], args[1], at_level, level)
        part = rules.subscript(args[0], args[1])
        return None if part is None else batched(part, level)
    if name in ("sum", "mean") and len(args) == 1 and not kwargs.keys() - {"dtype"} and args[0].dim():
        value = args[0]._value
        return batched(func(value, list(range(1, value.dim())), **kwargs), level)
    if name in _PRODUCTS and len(args) == 2 and not kwargs:
        if _PRODUCTS[name] not in (None, tuple(t.dim() for t in args)):
            return None  # the example's own call says what is wrong
        return batched(_product(args[0], args[1], at_level), level) if all(t.dim() for t in args) else None
    if name == "linear" and not kwargs and len(args) in (2, 3) and args[0].dim() and args[1].dim() == 2:
        flipped = (
            args[1].transpose(-2, -1) if not at_level(args[1]) else batched(args[1]._value.transpose(-2, -1), level)
        )
        made: Any = (
            batched(_product(args[0], flipped, at_level), level)
            if at_level(args[0]) or at_level(flipped)
            else args[0] @ flipped
        )
        return made if len(args) == 2 or args[2] is None else made + args[2]
    return None


def line_up(t: Tensor, at_level: Level, width: int) -> Tensor:
    """The value of a batched tensor with `width` dimensions behind the batch."""
    if not at_level(t):
        return t
    value = t._value
    missing = width - (value.dim() - 1)
    if missing:
        value = value.reshape((value.shape[0], *([1] * missing), *value.shape[1:]))
    return value


def _product(a: Tensor, b: Tensor, at_level: Level) -> Tensor:
    """`a @ b` of every example."""
    row, column = a.dim() == 1, b.dim() == 1
    width = max(a.dim() + row, b.dim() + column)
    left = _as_matrix(a, -2, at_level) if row else a
    right = _as_matrix(b, -1, at_level) if column else b
    result = line_up(left, at_level, width) @ line_up(right, at_level, width)
    if row:
        result = result.squeeze(-2 + column) if column else result.squeeze(-2)
    return result.squeeze(-1) if column else result


def _as_matrix(t: Tensor, place: int, at_level: Level) -> Any:
    return batched(t._value.unsqueeze(place), t._level) if at_level(t) else t.unsqueeze(place)


def _index(source: Tensor, index: Any, at_level: Level, level: int) -> Any:
    """`source[i, j, ...]` with positions for leading dimensions, some of them batched: one index operation.

    Positions have dimensions where another level's batch lies in them.
    """
    items = index if isinstance(index, tuple) else (index,)
    if not all(isinstance(i, int) or (isinstance(i, Tensor) and i.dtype.category == 1) for i in items):
        return None
    width = max(i.dim() for i in items if isinstance(i, Tensor))

    def position(item: Any) -> Any:
        if not isinstance(item, Tensor):
            return item
        lined_up = line_up(item, at_level, width)
        # A tensor without dimensions would be read for its number.
        return lined_up if isinstance(lined_up, BatchedTensor) or lined_up.dim() else lined_up.reshape((1,))

    return batched(source[tuple(map(position, items))], level)


@functools.cache
def _pointwise_names() -> frozenset:
    from .._generated.tables import operators

    return frozenset(op.name for op in operators() if "pointwise" in op.tags)


def _is_pointwise(name: str) -> bool:
    return name in _pointwise_names()
