"""Operators that follow from another one's entry: copies of views (`copy: true`), and lists of tensors (`foreach:`).

A derived operator is a composite whose function (`_composite/derived.py`) is made of the operator that it follows from, its `base`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from .model import Alias, Argument, Op, Return, Signature, Type

UNARY = "unary"
"""`foreach: unary` is the operator of one list of tensors, in place too where the base has an in-place form."""

COPIES, LISTS = "copies", "foreach"
"""The families of derived operators: few programs call them, so that they are imported apart from those that they are derived of."""


def with_derived(ops: Iterable[Op]) -> Iterator[Op]:
    """The operators, each followed by those that are derived of it."""
    for op in ops:
        yield op
        if op.copy:
            yield _copy(op)
        for signature in op.foreach:
            yield _each(op, signature)
            written = signature.argument("self")
            if op.has("inplace") and written is not None and written.type == _TENSORS:
                yield _each(op, _in_place(signature))


_TENSORS = Type("Tensor", list=True)


def unary(base: Signature) -> Signature:
    """The list form of an operator of one tensor; of one that writes its tensor the in-place form."""
    plain = Signature(f"_foreach_{base.name}", "", (Argument("self", _TENSORS),), (Return(None, _TENSORS),))
    return _in_place(replace(plain, name=plain.name[:-1])) if base.name.endswith("_") else plain


def _in_place(signature: Signature) -> Signature:
    first, *rest = signature.arguments
    return Signature(
        f"{signature.name}_", signature.overload, (replace(first, alias=Alias("a", write=True)), *rest), ()
    )


def _copy(op: Op) -> Op:
    """`expand_copy` of `expand`: the view's elements in memory of their own."""
    plain = Signature(
        f"{op.name}_copy",
        op.overload,
        tuple(replace(a, alias=None) for a in op.arguments),
        tuple(replace(r, alias=None) for r in op.returns),
    )
    return _derived(op, plain, COPIES, "derived.copy", ("function", "out"), op.sample)


def _each(op: Op, signature: Signature) -> Op:
    """`_foreach_add.List` of `add.Tensor`: the operator on each tensor of a list."""
    in_place = signature.name.endswith("_")
    return _derived(op, signature, LISTS, "derived.each_in_place" if in_place else "derived.each", ("function",), {})


def _derived(
    op: Op, signature: Signature, family: str, composite: str, variants: tuple[str, ...], sample: object
) -> Op:
    places = {"func": op.location_of("func"), "composite": op.location}
    return Op(
        signature,
        family,
        op.location,
        variants=variants,
        composite=composite,
        out=("exact",) if "out" in variants else (),
        sample=sample,  # type: ignore[arg-type]
        locations=places,
        base=op,
    )
