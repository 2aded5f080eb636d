"""Batched tensors, and how functions run on them.

Note [Batched tensors]
Inside `vmap` an argument is a `BatchedTensor`: a tensor with the batch as its first dimension, which shows the shape of one example. What an operator does
to a whole batch its entry says (`whole/`), or its rule for all operators of a kind (`kinds.py`); composites run as they are, of operators that know
of batches. The few others run example by example and stack the results. Levels nest: the value of a batched tensor may be batched itself.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeGuard

from .._dispatch import ops
from .._layout import contiguous_format
from .._tensor import Size, Tensor, alias_as

run: Any = None
"""Runs a function on batches: that of `rules.py`, which stands above and is handed down."""
LEVELS: list[tuple[int, int]] = []
"""(level, size of the batch) of every `vmap` that is running, the outermost first."""
MODES: dict[int, Any] = {}
"""By level of this thread's `vmap`, the mode that answers for random operators; see randomness.py."""
PARTS: list[int] = []
"""The sizes of the nested tensors of which `vmap` is running a function part by part: one at most."""


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

    def stride(self, dim: int | None = None) -> Any:
        """The strides of one example."""
        strides = self._value.stride()[1:]
        return strides if dim is None else strides[dim]

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

    def numel(self) -> int:
        """How many elements one example has."""
        return math.prod(self.shape)

    nelement = numel

    def __len__(self) -> int:
        if not self.dim():
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """RuntimeError: examples are no leaves."""
        raise RuntimeError(
            "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* APIs) inside of a function being "
            "transformed by a functorch transform. This is unsupported, please attempt to use the functorch transforms (e.g. grad, vjp, jacrev, "
            "jacfwd, hessian) or call requires_grad_() outside of a function being transformed instead."
        )

    def numpy(self, *, force: bool = False) -> Any:
        """RuntimeError: an example has no memory of its own."""
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    def item(self) -> Any:
        """Batches have no single value."""
        raise RuntimeError(
            "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, please try to "
            "rewrite what you're doing with other operations. If error is occurring somewhere inside PyTorch internals, please file a bug "
            "report."
        )

    __int__ = __float__ = __complex__ = __index__ = item
    tolist = numpy

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
    found: list = []
    _collect((tree,), found)
    return found


_NUMBERS = frozenset((int, float, bool, str, type(None)))


def _collect(items: Any, found: list) -> None:
    for item in items:
        if item.__class__ in _NUMBERS:
            continue
        if isinstance(item, Tensor):
            found.append(item)
        elif isinstance(item, (tuple, list)):
            _collect(item, found)
        elif isinstance(item, dict):
            _collect(item.values(), found)


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
    """The results of every example; of an empty batch those of one of zeros, whose shapes `stack` wants to know."""
    at_level = at(level)
    size = next(t for t in tensors_in((args, kwargs)) if at_level(t))._value.shape[0]
    rows = []
    for row in range(size or 1):
        pick = functools.partial(_row, at_level=at_level, row=row)
        rows.append(func(*mapped(args, pick), **mapped(kwargs, pick)))
    return rows


def _row(t: Tensor, at_level: Level, row: int) -> Tensor:
    if not at_level(t):
        return t
    return t._value[row] if t._value.shape[0] else t._value.new_zeros(t._value.shape[1:])


def stack(rows: list, level: int) -> Any:
    """The results of all examples as batched tensors."""
    first = rows[0]
    if isinstance(first, Tensor):
        return batched(ops.stack(rows) if LEVELS[level - 1][1] else first.new_empty((0, *first.shape)), level)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(stack([row[i] for row in rows], level) for i in range(len(first))))
    if isinstance(first, (tuple, list)):
        return type(first)(stack([row[i] for row in rows], level) for i in range(len(first)))
    if any(row is not first and row != first for row in rows):
        raise RuntimeError(f"vmap: examples gave different values that are no tensors: {rows}")
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
