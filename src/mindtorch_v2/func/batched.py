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
from dataclasses import dataclass
from typing import Any, TypeGuard

from .._dispatch import ops
from .._layout import contiguous_format
from .._tensor import Size, Tensor, alias_as

run: Any = None
"""Runs a function on batches: that of `rules.py`, which stands above and is handed down."""


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

    def is_contiguous(self, memory_format: Any = contiguous_format) -> bool:
        """Whether the elements of one example are in order. RuntimeError for other formats."""
        if memory_format is not contiguous_format:
            raise RuntimeError(
                "NYI: querying is_contiguous inside of vmap for memory_format other than torch.contiguous_format"
            )
        plain = innermost(self)
        batches = plain.dim() - self.dim()
        step = 1
        for size, stride in zip(reversed(plain.shape[batches:]), reversed(plain.stride()[batches:])):
            if size != 1 and stride != step and 0 not in plain.shape:
                return False
            step *= size
        return True

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


@dataclass(frozen=True)
class Level:
    """A level of `vmap`; called, it says whether something is batched there."""

    number: int

    def __call__(self, value: Any) -> TypeGuard[BatchedTensor]:
        return isinstance(value, BatchedTensor) and value._level == self.number

    def wrap(self, value: Tensor) -> BatchedTensor:
        """A whole batch as the tensor of one example."""
        return batched(value, self.number)


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
    return Level(level)


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


def check_target(name: str, target: Any, given: list, at_level: Level) -> None:
    """RuntimeError when examples would write into one tensor that is not batched."""
    if isinstance(target, Tensor) and not at_level(target) and any(at_level(t) for t in given):
        raise RuntimeError(
            f"vmap: {'inplace arithmetic' if not name.startswith('index') else name}(self, *extra_args) is not possible because there exists a "
            "Tensor `other` in extra_args that has more elements than `self`. This happened due to `other` being vmapped over but `self` not "
            "being vmapped over in a vmap. Please try to use out-of-place operators instead of inplace arithmetic. If said operator is being "
            "called inside the PyTorch framework, please file a bug report instead."
        )


def line_up(t: Tensor, at_level: Level, width: int) -> Tensor:
    """The value of a batched tensor with `width` dimensions behind the batch."""
    if not at_level(t):
        return t
    value = t._value
    missing = width - (value.dim() - 1)
    if missing:
        value = value.reshape((value.shape[0], *([1] * missing), *value.shape[1:]))
    return value
