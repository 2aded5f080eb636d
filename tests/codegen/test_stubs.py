"""Definitions that type checkers read: types of the grammar, overloads, lists item by item, results with names."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

from codegen import forms, stubs
from codegen.schema import read_schema


def _functions(tree: Path, text: str) -> list[forms.Function]:
    (tree / "schema/ops/f.yaml").write_text(textwrap.dedent(text))
    return forms.functions(read_schema(tree)[0])


def _lines(definitions: Iterator[stubs.Definition]) -> list[str]:
    return [f"{'@' * d.overloaded}{d.name}({d.parameters}) -> {d.result}" for d in definitions]


def test_types_and_the_in_place_form(tree: Path) -> None:
    (add,) = _functions(
        tree,
        """\
        - func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
          variants: [function, method, inplace, out]
          tags: [pointwise, numbers_first]
        """,
    )
    assert _lines(stubs.functions_of(add)) == [
        "add(input: Tensor | _Number, other: Tensor | _Number, *, alpha: _Scalar = 1, out: Tensor | None = None) -> Tensor",
        "add_(input: Tensor | _Number, other: Tensor | _Number, *, alpha: _Scalar = 1) -> Tensor",
    ]
    assert _lines(stubs.methods_of(add)) == [
        "add(self, other: Tensor | _Number, *, alpha: _Scalar = 1) -> Tensor",
        "add_(self, other: Tensor | _Number, *, alpha: _Scalar = 1) -> Tensor",
    ]


def test_overloads_and_results_with_names(tree: Path) -> None:
    (biggest,) = _functions(
        tree,
        """\
        - func: max(Tensor self) -> Tensor
          variants: [function, method]
        - func: max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
          variants: [method]
        """,
    )
    assert _lines(stubs.methods_of(biggest)) == [
        "@max(self) -> Tensor",
        "@max(self, dim: _int = ..., keepdim: _bool = False, **spellings: Any) -> _max_values_indices",
    ]
    assert stubs.results([biggest]) == [
        stubs.Results("_max_values_indices", (("values", "Tensor"), ("indices", "Tensor")))
    ]


def test_a_list_may_be_given_item_by_item(tree: Path) -> None:
    (view,) = _functions(
        tree,
        """\
        - func: view(Tensor(a) self, SymInt[] size) -> Tensor(a)
          variants: [function, method]
        """,
    )
    assert _lines(stubs.functions_of(view)) == ["view(input: Tensor, size: _Sequence[_int]) -> Tensor"]
    assert _lines(stubs.methods_of(view)) == [
        "@view(self, size: _Sequence[_int]) -> Tensor",
        "@view(self, *size: _int) -> Tensor",
    ]


def test_factories_and_what_python_cannot_name(tree: Path) -> None:
    full, uniform = _functions(
        tree,
        """\
        - func: full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Device? device=None) -> Tensor
          variants: [function]
        - func: uniform_(Tensor(a!) self, float from=0, float to=1, *, Generator? generator=None) -> Tensor(a!)
          variants: [method]
        """,
    )
    assert _lines(stubs.functions_of(full)) == [
        "full(size: _Sequence[_int], fill_value: _Scalar, *, dtype: _dtype | None = None, device: _Device | None = None, "
        "requires_grad: _bool = False) -> Tensor"
    ]
    assert _lines(stubs.methods_of(uniform)) == ["uniform_(self, *args: Any, **kwargs: Any) -> Tensor"]


def test_lists_and_several_results(tree: Path) -> None:
    (cat, split, pair) = _functions(
        tree,
        """\
        - func: cat(Tensor[] tensors, int dim=0) -> Tensor
          variants: [function]
        - func: split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]
          variants: [method]
        - func: pair(Tensor self, Tensor?[] indices, int[2] padding=0) -> (Tensor, Tensor)
          variants: [function]
        """,
    )
    assert _lines(stubs.functions_of(cat)) == [
        "cat(tensors: _Sequence[Tensor], dim: _int = 0, **spellings: Any) -> Tensor"
    ]
    assert _lines(stubs.methods_of(split)) == [
        "split_with_sizes(self, split_sizes: _Sequence[_int], dim: _int = 0, **spellings: Any) -> _tuple[Tensor, ...]"
    ]
    assert _lines(stubs.functions_of(pair)) == [
        "pair(input: Tensor, indices: _Sequence[Tensor | None], padding: _int | _Sequence[_int] = ...) -> _tuple[Tensor, Tensor]"
    ]
