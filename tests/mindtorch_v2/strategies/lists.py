"""Lists of tensors, on each of which an operator is called."""

from __future__ import annotations

from typing import Any

from .cases import strategy
from .generic import complete, draw_number
from .operands import broadcast, draw_dtype, draw_operand, draw_shape
from .picking import Picker
from .table import Row


@strategy("derived.each", "derived.each_in_place")
def each(pick: Picker, row: Row) -> dict[str, Any]:
    """As many items in each list, the first of several shapes; the numbers of a list may stand in a tensor."""
    count = pick.integer(1, 3) if not pick.wrong(20) else 0
    matrices = row.base_name == "_foreach_mm"
    shapes = [draw_shape(pick, 2, 2) if matrices else draw_shape(pick) for _ in range(count)]
    dtype = draw_dtype(pick)
    arguments: dict[str, Any] = {}
    for index, parameter in enumerate(row.parameters):
        length = count + 1 if index and parameter.is_list and pick.wrong(16) else count
        if parameter.is_tensors:
            arguments[parameter.name] = [
                draw_operand(pick, _shape_of(pick, shapes[n % count], index, matrices), dtype) if count else None
                for n in range(length if count else 0)
            ]
        elif parameter.base == "Scalar" and parameter.is_list:
            arguments[parameter.name] = [_number(pick, dtype) for _ in range(length)]
        elif parameter.base == "Scalar" and not parameter.has_default:
            arguments[parameter.name] = _number(pick, dtype)
        elif parameter.name == "scalars":
            shape = (count, 2) if pick.wrong(16) else (count + 1 if pick.wrong(16) else count,)
            arguments[parameter.name] = draw_operand(pick, shape, dtype)
        elif parameter.name == "other":
            arguments[parameter.name] = draw_operand(pick, (2,) if pick.wrong(16) else (), dtype)
    return complete(pick, row, arguments)


def _shape_of(pick: Picker, shape: tuple[int, ...], index: int, matrices: bool) -> tuple[int, ...]:
    if not index:
        return shape
    return (shape[1], pick.choice((1, 2, 0, 3))) if matrices else broadcast(pick, shape)


def _number(pick: Picker, dtype: str) -> Any:
    number = draw_number(pick)
    return 2 if isinstance(number, complex) and not dtype.startswith("complex") else number
