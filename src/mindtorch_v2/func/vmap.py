"""`vmap`: a function of single examples applied to a batch at once.

Note [Batched tensors]
Inside, an argument is a `BatchedTensor`: a tensor with the batch as its first dimension, which shows the shape of one example. A pointwise operator
lines the examples' dimensions up behind the batch and runs once; so does indexing an ordinary tensor by batched positions. Every other operator runs
example by example and stacks the results: right for all, fast for few. Levels nest: the value of a batched tensor may be batched itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeGuard

from .._dispatch import ops
from .._dispatch.overrides import DisableTorchFunctionSubclass
from .._tensor import Size, Tensor, alias_as


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

    def dim(self) -> int:
        """The number of dimensions of one example."""
        return self._value.dim() - 1

    def size(self, dim: int | None = None) -> Any:
        """The shape of one example."""
        return self.shape if dim is None else self.shape[dim]

    def item(self) -> Any:
        """Batches have no single value."""
        raise RuntimeError(
            "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor"
        )

    def __bool__(self) -> bool:
        raise RuntimeError(
            "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that yet"
        )

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return f"BatchedTensor(level={self._level}, value={self._value!r})"

    @classmethod
    def __torch_function__(cls, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return _run(func, args, kwargs or {})


_Level = Callable[[Tensor], TypeGuard[BatchedTensor]]


def _batched(value: Tensor, level: int) -> BatchedTensor:
    plain = value
    while isinstance(plain, BatchedTensor):
        plain = plain._value
    made = alias_as(BatchedTensor, plain)
    made._node = plain._node
    made._value = value
    made._level = level
    return made


def _tensors(tree: Any) -> list:
    if isinstance(tree, Tensor):
        return [tree]
    if isinstance(tree, dict):
        return [t for item in tree.values() for t in _tensors(item)]
    if isinstance(tree, (tuple, list)):
        return [t for item in tree for t in _tensors(item)]
    return []


def _map(tree: Any, function: Callable) -> Any:
    if isinstance(tree, Tensor):
        return function(tree)
    if isinstance(tree, dict):
        return {key: _map(item, function) for key, item in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(_map(item, function) for item in tree))
    if isinstance(tree, (tuple, list)):
        return type(tree)(_map(item, function) for item in tree)
    return tree


def _run(func: Callable, args: tuple, kwargs: dict) -> Any:
    """Run a torch function on the innermost level of its batched arguments."""
    batched = [t for t in _tensors((args, kwargs)) if isinstance(t, BatchedTensor)]
    level = max(t._level for t in batched)
    mine = [t for t in batched if t._level == level]
    size = mine[0]._value.shape[0]

    def at_level(t: Tensor) -> TypeGuard[BatchedTensor]:
        return isinstance(t, BatchedTensor) and t._level == level

    if _is_pointwise(func):
        width = max(t.dim() for t in _tensors((args, kwargs)))
        lined_up = functools.partial(_line_up, at_level=at_level, width=width)
        result = func(*_map(args, lined_up), **_map(kwargs, lined_up))
        return _map(result, lambda t: _batched(t, level))
    if func is Tensor.__getitem__ and not at_level(args[0]):
        found = _index(args[0], args[1], at_level, level)
        if found is not None:
            return found
    rows = []
    for row in range(size):
        pick = functools.partial(_row, at_level=at_level, row=row)
        rows.append(func(*_map(args, pick), **_map(kwargs, pick)))
    return _stack(rows, level)


def _line_up(t: Tensor, at_level: _Level, width: int) -> Tensor:
    if not at_level(t):
        return t
    value = t._value
    missing = width - (value.dim() - 1)
    if missing:
        value = value.reshape((value.shape[0], *([1] * missing), *value.shape[1:]))
    return value


def _row(t: Tensor, at_level: _Level, row: int) -> Tensor:
    return t._value[row] if at_level(t) else t


def _stack(rows: list, level: int) -> Any:
    first = rows[0]
    if isinstance(first, Tensor):
        return _batched(ops.stack(rows), level)
    if isinstance(first, (tuple, list)):
        return type(first)(_stack([row[i] for row in rows], level) for i in range(len(first)))
    return first


def _index(source: Tensor, index: Any, at_level: _Level, level: int) -> Any:
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
        lined_up = _line_up(item, at_level, width)
        # A tensor without dimensions would be read for its number.
        return lined_up if isinstance(lined_up, BatchedTensor) or lined_up.dim() else lined_up.reshape((1,))

    return _batched(source[tuple(map(position, items))], level)


@functools.cache
def _pointwise_names() -> frozenset:
    from .._generated.tables import operators

    return frozenset(op.name for op in operators() if "pointwise" in op.tags)


@functools.cache
def _is_pointwise(func: Callable) -> bool:
    return getattr(func, "__name__", "") in _pointwise_names()


_depth = 0


def vmap(
    func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Callable:
    """A function that maps `func` over a dimension of its arguments.

    in_dims: the dimension per argument (nested like the arguments), None for one that is shared. out_dims: where the batch goes in the results.
    ValueError when nothing is mapped or sizes differ.
    """

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        global _depth
        dims = in_dims if isinstance(in_dims, (tuple, list)) else (in_dims,) * len(args)
        if len(dims) != len(args):
            raise ValueError(
                f"vmap({getattr(func, '__name__', func)}, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible with the structure of "
                f"inputs. in_dims has structure of {len(dims)} items but inputs has {len(args)}."
            )
        _depth += 1
        level = _depth
        try:
            sizes: set[int] = set()
            wrapped = [_wrap(argument, dim, level, sizes) for argument, dim in zip(args, dims)]
            if not sizes:
                raise ValueError(
                    f"vmap({getattr(func, '__name__', func)}, in_dims={in_dims}, ...)(<inputs>): at least one input should be mapped over"
                )
            if len(sizes) > 1:
                raise ValueError(
                    f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sorted(sizes)} for the mapped dimension"
                )
            result = func(*wrapped, **kwargs)
            return _unwrap(result, out_dims, level, sizes.pop())
        finally:
            _depth -= 1

    return mapped


def _wrap(argument: Any, dim: Any, level: int, sizes: set) -> Any:
    if dim is None:
        return argument
    if isinstance(argument, Tensor):
        if argument.dim() == 0:
            raise ValueError(
                f"vmap: Got in_dim={dim} for an input but the input is a Tensor of dimensionality 0 so expected in_dim to satisfy -0 <= in_dim < 0."
            )
        with DisableTorchFunctionSubclass() if not isinstance(argument, BatchedTensor) else _Nothing():
            value = argument.movedim(dim, 0) if dim % argument.dim() else argument
        sizes.add(value.shape[0])
        return _batched(value, level)
    if isinstance(argument, dict):
        inner = dim if isinstance(dim, dict) else dict.fromkeys(argument, dim)
        return {key: _wrap(item, inner[key], level, sizes) for key, item in argument.items()}
    if isinstance(argument, (tuple, list)):
        inner = dim if isinstance(dim, (tuple, list)) else [dim] * len(argument)
        return type(argument)(_wrap(item, d, level, sizes) for item, d in zip(argument, inner))
    return argument


class _Nothing:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass


def _unwrap(result: Any, out_dims: Any, level: int, size: int) -> Any:
    if isinstance(result, (tuple, list)):
        dims = out_dims if isinstance(out_dims, (tuple, list)) else [out_dims] * len(result)
        return type(result)(_unwrap(item, dim, level, size) for item, dim in zip(result, dims))
    if not isinstance(result, Tensor):
        raise ValueError(f"vmap: the function must only return Tensors, got type {type(result)}.")
    if isinstance(result, BatchedTensor) and result._level == level:
        value = result._value
    else:
        value = result.expand((size, *result.shape))
    return value.movedim(0, out_dims) if out_dims else value
