"""Functions of the operators that follow from another one's entry (`copy:` and `foreach:` in the schema).

Each takes the record of the derived operator, and makes its function of the operator behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mindtorch_v2._dispatch.operator import Operator
from mindtorch_v2._generated import functions as F
from mindtorch_v2._layout import contiguous_format
from mindtorch_v2._rules.promotion import check_can_cast
from mindtorch_v2._tensor import Tensor


def copy(op: Operator) -> Callable[..., Any]:
    """Of a view: its elements in memory of their own, contiguous; of several views a tuple of such."""
    base = _base_of(op)

    def copied(*args: Any) -> Any:
        view = base(*args)
        if isinstance(view, Tensor):
            return F.clone(view, memory_format=contiguous_format)
        return tuple(F.clone(one, memory_format=contiguous_format) for one in view)

    return copied


def each(op: Operator) -> Callable[..., tuple[Tensor, ...]]:
    """Of an operator: a function of lists that calls it for each tensor; what is no list is the same for all."""
    base = _base_of(op)
    rows = _rows(op)

    def results(*args: Any) -> tuple[Tensor, ...]:
        found = _together(op.full_name, args, False)
        if found is not None:
            return tuple(found)
        return tuple([base(*row) for row in rows(args)])

    return results


def each_in_place(op: Operator) -> Callable[..., list[Tensor]]:
    """Of an operator: a function of lists that calls its in-place form for each tensor, and gives the first list back."""
    assert op.base is not None
    name = op.base.name if op.base.is_inplace else f"{op.base.name}_"
    method = getattr(Tensor, name, None)
    # maximum has no in-place form of its own.
    call = _caller(op, method) if method is not None else _writer(_base_of(op))
    rows = _rows(op)

    plain = f"{op.name[:-1]}{op.full_name[len(op.name) :]}"

    def change(*args: Any) -> list[Tensor]:
        if _together(plain, args, True) is not None:
            return args[0]
        for row in rows(args):
            call(*row)
        return args[0]

    return change


def _together(name: str, args: tuple, in_place: bool) -> list[Tensor] | None:
    """What a device's function of whole lists gives; None where there is none, or it is nothing for these arguments."""
    given = next((arg for arg in args if isinstance(arg, list | tuple)), None)
    if not given or not isinstance(given[0], Tensor) or given[0].device.type != "npu":
        return None
    from mindtorch_v2._backends.npu.lists import launched

    return launched(name, args, in_place)


def _base_of(op: Operator) -> Callable[..., Any]:
    assert op.base is not None
    return _caller(op, getattr(F, op.base.name))


def _caller(op: Operator, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` of arguments in the order of `op`: those that the base takes by keyword only are given so."""
    assert op.base is not None
    theirs = {p.name: p for p in op.base.params}
    keywords: list[tuple[int, str]] = []
    for index, own in enumerate(op.params):
        # Lists go by other names (`scalars` for `value`), in the same order.
        param = theirs.get(own.name) or op.base.params[index]
        if param.keyword:
            keywords.append((index, param.name))
    if not keywords:
        return function
    count = min(index for index, _ in keywords)
    return lambda *args: function(*args[:count], **{name: args[index] for index, name in keywords})


def _writer(function: Callable[..., Any]) -> Callable[..., Any]:
    def write(first: Tensor, *rest: Any) -> Tensor:
        result = function(first, *rest)
        if result.shape != first.shape:
            raise RuntimeError(
                f"output with shape {list(first.shape)} doesn't match the broadcast shape {list(result.shape)}"
            )
        check_can_cast(result.dtype, first.dtype)
        return F.copy_(first, result)

    return write


def _rows(op: Operator) -> Callable[[tuple], Iterable[tuple]]:
    """What turns the arguments of a call into one row of arguments per tensor, and refuses lists of unequal lengths."""
    lists = [index for index, param in enumerate(op.params) if param.is_list]
    numbers = [index for index in lists if op.params[index].type == "Scalar"]
    tensors = [index for index in lists if op.params[index].type == "Tensor"]
    spread = next((i for i, p in enumerate(op.params) if p.name == "scalars" and not p.is_list), None)
    shared = next((i for i, p in enumerate(op.params) if p.name == "other" and not p.is_list), None)

    def rows(args: tuple) -> Iterator[tuple]:
        count = len(args[tensors[0]])
        if not count and not (len(tensors) > 1 and args[tensors[1]]):
            raise RuntimeError("Tensor list must have at least one tensor.")
        for index in tensors[1:]:
            if len(args[index]) != count:
                raise RuntimeError(
                    f"Tensor lists must have the same number of tensors, got {count} and {len(args[index])}"
                )
        for index in numbers:
            if len(args[index]) != count:
                raise RuntimeError("Tensor list must have same number of elements as scalar list.")
        listed = lists
        if spread is not None:
            args = (*args[:spread], _scalars(args[spread], count), *args[spread + 1 :])
            listed = [*lists, spread]
        if shared is not None and args[shared].dim():
            raise RuntimeError(
                f"scalar tensor expected to be 0 dim but it has {args[shared].dim()} dimensions and "
                f"{args[shared].numel()} elements."
            )
        return (tuple([args[i][n] if i in listed else args[i] for i in range(len(args))]) for n in range(count))

    return rows


def _scalars(scalars: Tensor, count: int) -> list:
    """The numbers of a tensor that stands for a list of them."""
    if not scalars.is_contiguous():
        raise RuntimeError("Expected scalars to be contiguous.")
    if scalars.dim() != 1:
        raise RuntimeError(f"Expected packed scalar Tensor to be of dimension 1. Got {scalars.dim()} instead.")
    if scalars.numel() != count:
        raise RuntimeError(
            f"Expected length of scalars to match input of length {count} but got {scalars.numel()} instead."
        )
    return scalars.tolist()
