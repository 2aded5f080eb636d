"""What operators do to whole batches of examples, by the word of their rule: `@rule(batch="along")`.

Each function takes the level, the operator, and its arguments in schema order as the examples show them. It returns the result as the examples show it,
or None where they are to run one by one, which also says what is wrong with their arguments.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

from .._dispatch import ops
from .._dispatch.operator import Operator, Param
from .._layout import contiguous_format, preserve_format
from .._rules.promotion import promote_types
from .._tensor import Tensor
from .batched import Level, line_up, mapped, tensors_in

Given = Sequence[Any]
DIMS = frozenset(
    "dim dims dim0 dim1 dim2 axis0 axis1 start_dim end_dim source destination dimension".split(),
)
_VECTORS = frozenset(("pivots", "LU_pivots", "tau"))
"""Arguments that have a dimension less than the matrices beside them."""


def call(op: Operator, given: Given) -> Any:
    """The operator's function of arguments in schema order."""
    positional = [a for p, a in zip(op.params, given) if not p.keyword]
    named = {p.name: a for p, a in zip(op.params, given) if p.keyword}
    return (op.function or getattr(ops, op.name))(*positional, **named)


def count_of(level: Level, given: Any) -> int:
    """How many examples there are."""
    return next(t for t in tensors_in(given) if level(t))._value.shape[0]


def front(level: Level, tensor: Tensor, count: int) -> Tensor:
    """A tensor with the batch in front, whether or not it is batched."""
    return tensor._value if level(tensor) else tensor.expand((count, *tensor.shape))


def moved(param: Param, argument: Any, count: int) -> Any:
    """Dimensions of an example as those of the batch; None for one that is out of range, which the example's own call refuses."""
    many = isinstance(argument, (list, tuple))
    found = []
    for dim in argument if many else (argument,):
        if not -count <= dim < count:
            return None
        found.append(dim + 1 if dim >= 0 else dim)
    return found if many else found[0]


def with_options(op: Operator, given: Given, **options: Any) -> list:
    """The arguments with some of them changed, by name."""
    return [options.get(p.name, a) for p, a in zip(op.params, given)]


def named(op: Operator, given: Given, name: str) -> Any:
    """The argument of a name."""
    return next(a for p, a in zip(op.params, given) if p.name == name)


# Element by element


def elements(level: Level, op: Operator, given: Given) -> Any:
    """An element of the result depends on the elements at its place."""
    for param, argument in zip(op.params, given):
        if param.type == "MemoryFormat" and argument not in (None, contiguous_format, preserve_format):
            return None
    lined_up = functools.partial(line_up, at_level=level, width=max(t.dim() for t in tensors_in(list(given))))
    given = _promoted(level, given)
    return mapped(call(op, mapped(list(given), lined_up)), level.wrap)


def _promoted(level: Level, given: Given) -> Given:
    """The arguments, of which tensors without dimensions promote as numbers do, though the batched ones have a dimension in a batch."""
    operands = tensors_in(list(given))
    if all(t.dtype is operands[0].dtype for t in operands):
        return given
    wide = [t.dtype for t in operands if t.dim()]
    highest = max((d.category for d in wide), default=-1)
    target = functools.reduce(promote_types, [d for d in wide if d.category == highest]) if wide else None
    ones = [1] * max(*(t.dim() for t in operands), 1)

    def equal(tensor: Tensor) -> Tensor:
        if tensor.dim():
            return tensor
        if target is not None and tensor.dtype.category <= highest:
            return tensor if tensor.dtype is target else tensor.to(target)
        return tensor if level(tensor) else tensor.reshape(ones)

    return mapped(list(given), equal)


def copied(level: Level, op: Operator, given: Given) -> Any:
    """The second tensor in the shape of the first."""
    target, source, *rest = given
    width = target.dim()
    if source.dim() > width:
        return None
    batch = front(level, target, count_of(level, given[:2]))
    return level.wrap(call(op, (batch, line_up(source, level, width), *rest)))


def loss(level: Level, op: Operator, given: Given) -> Any:
    """Element by element, and then a mean or a sum of each example's."""
    count = count_of(level, list(given))
    width = max(t.dim() for t in tensors_in(list(given)))
    fronted = mapped(list(given), lambda t: line_up(level.wrap(front(level, t, count)), level, width))
    made = level.wrap(call(op, with_options(op, fronted, reduction=0)))
    return reduced(made, named(op, given, "reduction"))


def reduced(losses: Tensor, reduction: int) -> Tensor:
    """The losses of each example as `reduction` says: 0 leaves them, 1 is their mean, 2 their sum."""
    return losses if reduction == 0 else ops.mean(losses) if reduction == 1 else ops.sum(losses)


def new(level: Level, op: Operator, given: Given) -> Any:
    """A fresh tensor for each example."""
    count = count_of(level, given[:1])
    size = [count, *named(op, given, "size")]
    return level.wrap(call(op, with_options(op, [given[0]._value, *given[1:]], size=size)))


def new_strided(level: Level, op: Operator, given: Given) -> Any:
    """A fresh tensor of a geometry for each example, one behind the other."""
    size, stride = named(op, given, "size"), named(op, given, "stride")
    if len(size) != len(stride):
        return None
    count = count_of(level, given[:1])
    room = 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride))
    options = with_options(op, [given[0]._value, *given[1:]], size=[count, *size], stride=[room, *stride])
    return level.wrap(call(op, options))


# Dimensions that are named


def along(level: Level, op: Operator, given: Given) -> Any:
    """All tensors have the same number of dimensions, of which some are named."""
    return named_dims(level, op, given, tensors_in(list(given)))


def named_dims(level: Level, op: Operator, given: Given, tensors: Sequence[Tensor]) -> Any:
    """`along`, where only those tensors have the batch in front; the others stay as they are."""
    ndim = tensors[0].dim()
    if any(t.dim() != ndim for t in tensors):
        return None
    count = count_of(level, list(given))
    mine = {id(t) for t in tensors}

    def fronted(tensor: Tensor) -> Tensor:
        if id(tensor) not in mine:
            return tensor
        value = front(level, tensor, count)
        return value if ndim else value.unsqueeze(1)

    values: list = []
    flat = None
    for param, argument in zip(op.params, given):
        if param.name in DIMS:
            if argument is None and not param.is_list:
                flat, argument = (1,) * ndim, 1
            elif argument is None or (param.is_list and not len(argument) and not len(param.default or [0])):
                argument = list(range(1, max(ndim, 1) + 1))
            elif param.is_list and not len(argument):
                return None
            else:
                argument = moved(param, argument, max(ndim, 1))
                if argument is None:
                    return None
        values.append(mapped(argument, fronted))
    if flat is not None and ndim:
        values[0] = values[0].flatten(1)
        keeps = any(p.name == "keepdim" and a for p, a in zip(op.params, given))
        shape = (count, *flat) if keeps else (count,)
        return mapped(call(op, values), lambda t: level.wrap(t.reshape(shape)))
    made = call(op, values)
    return mapped(made, lambda t: level.wrap(t if ndim or t.dim() == 1 else t.squeeze(1)))


def stacked(level: Level, op: Operator, given: Given) -> Any:
    """Tensors joined along a dimension that is new."""
    tensors, dim = given
    ndim = tensors[0].dim() + 1
    if any(t.shape != tensors[0].shape for t in tensors) or not -ndim <= dim < ndim:
        return None
    count = count_of(level, tensors)
    return level.wrap(call(op, ([front(level, t, count) for t in tensors], dim + 1 if dim >= 0 else dim)))


def back_to_view(level: Level, op: Operator, given: Given) -> Any:
    """The gradient of a view: sizes, and dimensions of what was viewed."""
    values: list = [given[0]._value]
    ndim = len(given[1])
    for param, argument in zip(op.params[1:], given[1:]):
        if param.is_list:
            argument = [values[0].shape[0], *argument]
        elif param.name in DIMS:
            argument = moved(param, argument, ndim)
            if argument is None:
                return None
        values.append(argument)
    return level.wrap(call(op, values))


# Dimensions in front


def leading(level: Level, op: Operator, given: Given, number: int = 2) -> Any:
    """The operator takes any dimensions in front of the last ones, `number` of them."""
    cores = [1 if p.name in _VECTORS else number for p in op.params]
    return with_cores(level, op, given, cores)


def with_cores(level: Level, op: Operator, given: Given, cores: Sequence[int]) -> Any:
    """`leading`, with the number of last dimensions for each argument."""
    count = count_of(level, list(given))
    ranked = [(a, core) for a, core in zip(given, cores) if isinstance(a, Tensor)]
    if any(t.dim() < core for t, core in ranked):
        return None
    width = max(t.dim() - core for t, core in ranked)
    values = [
        line_up(level.wrap(front(level, a, count)), level, width + core) if isinstance(a, Tensor) else a
        for a, core in zip(given, cores)
    ]
    return mapped(call(op, values), lambda t: level.wrap(t if t.shape[:1] == (count,) else t.expand((count, *t.shape))))


def vectors(level: Level, op: Operator, given: Given) -> Any:
    """The operator takes vectors, alone or in a batch, of which it makes others."""
    self, *options = given
    if not 1 <= self.dim() <= 2:
        return None
    value = self._value
    made = call(op, (value if self.dim() == 1 else value.flatten(0, 1), *options))
    return level.wrap(made if self.dim() == 1 else made.unflatten(0, value.shape[:2]))


def images(level: Level, op: Operator, given: Given, number: int = 0) -> Any:
    """The operator takes images, channels first, alone or in a batch; of as many dimensions as its name says."""
    return _images(level, op, given, number, alone=True)


def batches(level: Level, op: Operator, given: Given, number: int = 0) -> Any:
    """The operator takes batches of images, channels first."""
    return _images(level, op, given, number, alone=False)


def _images(level: Level, op: Operator, given: Given, ndim: int, alone: bool) -> Any:
    tensors = tensors_in(list(given))
    ndim = ndim or int(_digit(op))
    rank = tensors[0].dim()
    if any(t.dim() != rank for t in tensors):
        return None
    count = count_of(level, list(given))
    if alone and rank == ndim + 1:
        return mapped(call(op, mapped(list(given), lambda t: front(level, t, count))), level.wrap)
    return fold(level, functools.partial(call, op), op, given) if rank == ndim + 2 else None


def _digit(op: Operator) -> str:
    found = re.search(r"\d(?=d)", op.name)
    if found is None:
        raise ValueError(f"{op.name} does not say how many dimensions its images have")
    return found[0]


def fold(level: Level, function: Callable, op: Operator, given: Given) -> Any:
    """A function of arguments whose tensors begin with a batch: all examples' batches are one."""
    count = count_of(level, list(given))
    own = tensors_in(list(given))[0].shape[0]
    if not own or not count:
        return None
    folded = mapped(list(given), lambda t: front(level, t, count).flatten(0, 1))
    for place, param in enumerate(op.params):
        if param.name in ("input_size", "size"):  # that of the whole batch
            folded[place] = [folded[place][0] * count, *folded[place][1:]]
    return mapped(function(folded), lambda t: level.wrap(t.unflatten(0, (count, own))))
