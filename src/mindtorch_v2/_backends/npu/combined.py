"""Compositions of operators that a pipeline records, and the one function of aclnn that computes each: norms by their formula, rotary embeddings.

Note [Combined operators]
Programs write `x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)`, six launches with the weight. When a pipeline runs what it has recorded, it asks here which entries of a device are such a
composition: `TABLE` has them as expressions of operators. Names that are no operators stand for what goes in, an operand or a number, and one name for one thing throughout; `first(x)` and
`second(x)` are views of the halves of x's last dimension. A composition is taken where nobody else reads, or can look at, what is between, nothing writes to memory meanwhile, and everything is float32: the function
rounds once where the operators round each, so in half types other numbers would come out.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from ..._dispatch import ops
from ..._dispatch.pipeline.values import Entry, Value, Window, as_tensor
from ..._dtype import DTYPES
from ..._generated.npu.functions import aclnnInplaceOne, aclnnRmsNorm, aclnnRotaryPositionEmbedding
from ..._tensor import Tensor
from .aclnn import launch, running
from .creation import empty

_FLOAT = DTYPES["float32"]
_COMMUTE = ("add", "mul")


class Combination:
    """Entries that one function computes. run: the payload of the last of them."""

    __slots__ = ("compute", "entries")

    def __init__(self, entries: list[Entry], compute: Callable[[Entry], Any]) -> None:
        self.entries = entries
        self.compute = compute

    def run(self, step: Any) -> None:
        """Compute the entries of a step."""
        last = step.entries[-1]
        with running(last.op.full_name, _FLOAT):
            last.payload = self.compute(last)


def find(chosen: list[Entry], rest: list[Entry]) -> list[Combination]:
    """The compositions among the entries that are to run, each entry in one of them."""
    readers: dict[int, int] = {}
    for entry in (*chosen, *rest):
        for value in {id(v): v for v in entry.operands()}.values():
            readers[id(value)] = readers.get(id(value), 0) + 1
    places = {id(entry): place for place, entry in enumerate(chosen)}
    found: list[Combination] = []
    taken: set[int] = set()
    for entry in reversed(chosen):
        for pattern, build in _TABLE if id(entry) not in taken and _may_end(entry) else ():
            made = _combined(entry, pattern, build, readers, places, chosen, taken)
            if made is not None:
                found.append(made)
                taken.update(id(one) for one in made.entries)
                break
    return found


def _may_end(entry: Entry) -> bool:
    return entry.form == "run" and entry.where.type == "npu" and entry.op.name in _LAST and entry.dtype is _FLOAT


def _combined(
    entry: Entry, pattern: Any, build: Any, readers: dict, places: dict, chosen: list, taken: set
) -> Combination | None:
    for names, used in _match(pattern, entry, {}, ()):
        entries = sorted({id(one): one for one in used}.values(), key=lambda one: places.get(id(one), -1))
        inner = {id(one) for one in entries} - {id(entry)}
        if any(id(one) not in places or id(one) in taken for one in entries):
            continue
        if any(one.is_held() for one in entries if one is not entry):
            continue
        inside: dict[int, int] = {}
        for one in entries:
            for value in {id(v): v for v in one.operands()}:
                inside[value] = inside.get(value, 0) + 1
        if any(readers[one] != inside.get(one, 0) for one in inner):
            continue
        between = chosen[places[id(entries[0])] : places[id(entry)]]
        if any(one.target is not None for one in between):
            continue
        compute = build(names, entry)
        if compute is not None:
            return Combination(entries, compute)
    return None


# ------------------------------------------------------------------------------------------------------------------ expressions


def _match(node: Any, item: Any, names: dict, used: tuple) -> Iterator[tuple[dict, tuple]]:
    """The ways in which an expression is what an operand is: what its names stand for, and the entries that it is made of."""
    if isinstance(node, ast.Name):
        before = names.get(node.id)
        if before is None:
            yield {**names, node.id: item}, used
        elif _geometry(before) == _geometry(item):
            yield names, used
    elif isinstance(node, ast.List):
        yield from _match_all(node.elts, item, names, used) if isinstance(item, list | tuple) else ()
    elif isinstance(node, ast.Call):
        assert isinstance(node.func, ast.Name)
        if node.func.id in ("first", "second"):
            whole = names.get(node.args[0].id)  # type: ignore[attr-defined]
            if whole is not None and _is_half(item, whole, node.func.id == "second"):
                yield names, used
        elif isinstance(item, Entry) and item.op.name == node.func.id and item.form == "run":
            yield from _match_call(node.args, item, names, (*used, item))
    elif ast.literal_eval(node) == item and not isinstance(item, bool | Tensor | Value | Window):
        yield names, used
    elif isinstance(item, bool) and ast.literal_eval(node) is item:
        yield names, used


def _match_call(nodes: list, entry: Entry, names: dict, used: tuple) -> Iterator[tuple[dict, tuple]]:
    given = list(entry.args)
    if any(arg != param.default for param, arg in zip(entry.op.params[len(nodes) :], given[len(nodes) :])):
        return
    orders = [given[: len(nodes)]]
    if entry.op.name in _COMMUTE:
        orders.append(orders[0][::-1])
    for order in orders:
        yield from _match_all(nodes, order, names, used)


def _match_all(nodes: list, items: list, names: dict, used: tuple) -> Iterator[tuple[dict, tuple]]:
    if len(nodes) != len(items):
        return
    if not nodes:
        yield names, used
        return
    for more, entries in _match(nodes[0], items[0], names, used):
        yield from _match_all(nodes[1:], items[1:], more, entries)


def _geometry(item: Any) -> tuple:
    """Which memory an operand is, and how it lies there; a number is itself."""
    if item.__class__ is Window:
        return id(item.value), item.shape, item.stride, item.offset, item.dtype
    if isinstance(item, Value):
        return id(item), item.shape, item.stride, 0, item.dtype
    if isinstance(item, Tensor):
        data = item._payload
        return id(getattr(data, "storage", data)), tuple(item.shape), item.stride(), item.storage_offset(), item._dtype
    return (item,)


def _is_half(item: Any, whole: Any, second: bool) -> bool:
    if not all(isinstance(one, (Tensor, Value, Window)) for one in (item, whole)):
        return False
    memory, shape, stride, offset, dtype = _geometry(whole)
    if not shape or shape[-1] % 2:
        return False
    half = shape[-1] // 2
    there = offset + (half * stride[-1] if second else 0)
    return _geometry(item) == (memory, (*shape[:-1], half), stride, there, dtype)


# ---------------------------------------------------------------------------------------------------------------- what computes


def _floats(names: dict, *wanted: str) -> list[Any] | None:
    """Operands by their names, where they are float32 tensors of an NPU."""
    found = [names[name] for name in wanted]
    for item in found:
        if not isinstance(item, (Tensor, Value, Window)) or item.dtype is not _FLOAT:
            return None
        if isinstance(item, Tensor) and item.device.type != "npu":
            return None
    return found


def _result(entry: Entry) -> Any:
    return empty(entry.shape, entry.stride, entry.dtype, entry.where)


def _rms_norm(names: dict, entry: Entry) -> Any:
    found = _floats(names, "x", "gamma") if "gamma" in names else _floats(names, "x")
    epsilon = names["epsilon"]
    if found is None or epsilon.__class__ is not float:
        return None
    shape = tuple(found[0].shape)
    if shape != entry.shape or not shape or 0 in shape or any(tuple(g.shape) != shape[-1:] for g in found[1:]):
        return None

    def compute(last: Entry) -> Any:
        x, *gamma = (as_tensor(item)._payload for item in found)
        out, rstd = _result(last), empty((*shape[:-1], 1), None, _FLOAT, last.where)
        if not gamma:
            gamma = [empty(shape[-1:], None, _FLOAT, last.where)]
            launch(aclnnInplaceOne, gamma[0])
        launch(aclnnRmsNorm, x, gamma[0], epsilon, out, rstd)
        return out

    return compute


def _rotary(names: dict, entry: Entry) -> Any:
    found = _floats(names, "x", "cos", "sin")
    if found is None:
        return None
    x, cos, sin = (tuple(item.shape) for item in found)
    if len(x) != 4 or x != entry.shape or cos != sin or len(cos) != 4 or 0 in x or x[-1] > 1024:
        return None
    if cos[-1] != x[-1] or any(b not in (1, a) for a, b in zip(x, cos)):
        return None

    def compute(last: Entry) -> Any:
        out = _result(last)
        launch(aclnnRotaryPositionEmbedding, *(as_tensor(item)._payload for item in found), 0, out)
        return out

    return compute


TABLE: dict[str, Callable[[dict, Entry], Any]] = {
    "mul(gamma, mul(x, rsqrt(add(mean(pow(x, 2), [-1], True), epsilon))))": _rms_norm,
    "mul(x, rsqrt(add(mean(pow(x, 2), [-1], True), epsilon)))": _rms_norm,
    "add(mul(x, cos), mul(cat([neg(second(x)), first(x)], -1), sin))": _rotary,
}
"""Each composition, and what makes the function's call of what its names stand for (None where they are nothing for it). Longer ones come first."""

_TABLE = [(ast.parse(text, mode="eval").body, build) for text, build in TABLE.items()]
_LAST = frozenset(node.func.id for node, _ in _TABLE)  # type: ignore[attr-defined]


def _operators() -> Iterator[str]:
    """The operators that the table names."""
    for tree, _ in _TABLE:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and node.func.id not in ("first", "second"):  # type: ignore[attr-defined]
                yield node.func.id  # type: ignore[attr-defined]


for _name in _operators():
    getattr(ops, _name)  # AttributeError for a name that is none
