"""Every operator on a batch gives what it gives of the examples one by one, and few run that way. The calls are those recorded for `test_values`."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
from strategies import Case, Row, unpack
from strategies.outcomes import Failure, attempt, leaves
from test_values import RECORDED, ROWS

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import ops
from mindtorch_v2.func import vmap

APART = {
    "as_strided_scatter": "elements by their place in memory",
    "empty_like": "no defined values",
    "as_strided": "elements by their place in memory",
    "as_strided_copy": "elements by their place in memory",
    "mode": "a complex number has one, a row of them none",
}
REFUSED = (
    "inplace arithmetic",
    "Batch norm got a batched tensor",
    ".item()",
    "Cannot access data pointer",
    "dynamic shape",
    "return a differently shaped Tensor",
    "data-dependent control flow",
    "it gives no tensors",
)
"""Examples would write to one tensor, one of several numbers is read, or what is done depends on elements, which differ between examples."""
CALLS = 3
"""How many calls of an operator are tried."""


def _examples(tensor: Any) -> list:
    """Three tensors of one geometry."""
    turned = tensor.flip(list(range(tensor.dim()))) if tensor.dim() else tensor
    return [tensor, turned.contiguous(), tensor.clone()]


def _fresh(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone()
    return [_fresh(item) for item in value] if isinstance(value, list) else value


def _same(batch: Any, rows: list) -> bool:
    wanted = torch.stack(rows)
    if batch.dtype is not wanted.dtype or batch.shape != wanted.shape:
        return False
    if not (wanted.is_floating_point() or wanted.is_complex()):
        return torch.equal(batch, wanted)
    wide = torch.complex128 if wanted.is_complex() else torch.float64
    tolerance = {2: 1e-2, 1: 0.2}.get(wanted.dtype.itemsize, 1e-7 if wanted.dtype.to_real() is torch.float64 else 1e-4)
    return torch.allclose(batch.to(wide), wanted.to(wide), tolerance, tolerance, True)


def _check(row: Row, arguments: dict) -> None:
    """Compare a call on batches of all its tensors, and of each alone, with the calls of the examples."""
    positional, keywords = Case(row, {k: unpack(v) for k, v in arguments.items()}).build(torch)
    given = {**dict(enumerate(positional)), **keywords}
    tensors = [key for key, value in given.items() if isinstance(value, torch.Tensor)]
    if any(given[key].layout is not torch.strided for key in tensors):
        return
    lists = [
        key for key, v in given.items() if isinstance(v, list) and v and all(isinstance(t, torch.Tensor) for t in v)
    ]
    every = [*tensors, *lists]
    for chosen in [every, *([key] for key in tensors)] if len(every) > 1 else [every][: len(every)]:
        _check_batches(row, given, len(positional), chosen)


def _check_batches(row: Row, given: dict, positional: int, chosen: list) -> None:
    """Compare a call in which the arguments chosen are batched: `given` has the others, the first of them `positional` ones."""
    lists = {key: len(given[key]) for key in chosen if isinstance(given[key], list)}
    flat = [_examples(t) for key in chosen for t in (given[key] if key in lists else [given[key]])]

    def call(*parts: Any) -> Any:
        left = list(parts)
        now = {key: _fresh(value) for key, value in given.items() if key not in chosen}
        for key in chosen:
            now[key] = [left.pop(0) for _ in range(lists[key])] if key in lists else left.pop(0)
        keywords = {key: value for key, value in now.items() if isinstance(key, str)}
        return getattr(ops, row.base_name)(*(now[i] for i in range(positional)), **keywords)

    rows = [attempt(functools.partial(call, *(triple[i].clone() for triple in flat))) for i in range(3)]
    if any(isinstance(r, Failure) for r in rows) or any(leaf is None for leaf in leaves(rows[0])):
        return
    try:
        batch = vmap(call)(*map(torch.stack, flat))
    except RuntimeError as error:
        if any(sentence in str(error) for sentence in REFUSED):
            return
        raise
    for number, leaf in enumerate(leaves(batch)):
        parts = [leaves(r)[number] for r in rows]
        assert _same(leaf, parts), (row.name, chosen, given, leaf, parts)


def _has_values(row: Row) -> bool:
    """Whether equal calls give equal values: neither it nor what it is the in-place form of draws numbers, or leaves memory as it is."""
    rows = (row, ROWS.get(row.base_name.removesuffix("_"), row))
    return not {"random", "draws", "uninitialized"} & {tag for one in rows for tag in one.tags}


@pytest.mark.parametrize(
    "name", [name for name, row in ROWS.items() if name in RECORDED and name not in APART and _has_values(row)]
)
def test_batches_are_their_examples(name: str) -> None:
    row = ROWS[name]
    calls = [arguments for arguments, expected in RECORDED[name] if "error" not in expected]
    for arguments in calls[:CALLS]:
        _check(row, arguments)


def test_few_run_example_by_example() -> None:
    text = (Path(__file__).parents[2] / "generated/OPS.md").read_text()
    names = (
        text.partition("## Example by example under `vmap`\n\n")[2].partition("\n")[0].partition(": ")[2].split(", ")
    )
    assert len([name for name in names if "npu_" not in name]) <= 42  # those of one device aside


def test_attention_of_an_expanded_query() -> None:
    torch.manual_seed(0)
    query = torch.randn(1, 2, 5, 8).expand(3, 2, 5, 8)
    key, value = torch.randn(3, 2, 7, 8), torch.randn(3, 2, 7, 8)
    wanted = torch.softmax(query @ key.mT / 8**0.5, -1) @ value
    assert torch.allclose(torch.nn.functional.scaled_dot_product_attention(query, key, value), wanted, atol=1e-6)
