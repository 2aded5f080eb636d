"""Python expressions inside schema values: rule and kernel calls, and the formulas of derivatives.

Both are parsed by `ast` and never evaluated. An error carries an offset into the text, which the loader turns into a place.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from .loader import Scalar
from .model import SAVED_ATTRIBUTES, Call, Expression, NameUse

DEPTH = 100
"""How deep the parts of an expression may be in each other."""


class ExpressionError(ValueError):
    """A text that is no expression of the wanted kind; `offset` points into it."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


@dataclass(frozen=True)
class _Source:
    """A text with its tree, and the offsets of nodes in the text."""

    text: str
    tree: ast.expr

    def start(self, node: ast.expr) -> int:
        return _offset(self.text, node.lineno, node.col_offset)

    def end(self, node: ast.expr) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return _offset(self.text, node.end_lineno, node.end_col_offset)

    def segment(self, node: ast.expr) -> str:
        return self.text[self.start(node) : self.end(node)]


def parse_call(scalar: Scalar) -> Call:
    """Parse `function(a, b, k=expression)`, where the function may be dotted. Raises ExpressionError."""
    source = _parse(scalar.text)
    call = source.tree
    if not isinstance(call, ast.Call):
        raise ExpressionError(f"expected a call like 'name(self)', found '{scalar.text}'", 0)
    function = dotted_name(call.func)
    if function is None:
        raise ExpressionError("expected a function name before '('", source.start(call.func))
    for argument in call.args:
        if isinstance(argument, ast.Starred):
            raise ExpressionError("'*' is not allowed in the arguments", source.start(argument))
    for keyword in call.keywords:
        if keyword.arg is None:
            raise ExpressionError("'**' is not allowed in the arguments", source.start(keyword.value))

    def expression(node: ast.expr) -> Expression:
        names = tuple(dict.fromkeys(use.name for use in _uses(source, node)))
        return Expression(source.segment(node), names, scalar.at(source.start(node)))

    return Call(
        function,
        tuple(expression(a) for a in call.args),
        tuple((k.arg, expression(k.value)) for k in call.keywords if k.arg is not None),
        scalar.location,
    )


def parse_formula(scalar: Scalar) -> tuple[NameUse, ...]:
    """Every reading of a name in a formula, in order. Names bound inside (comprehensions, lambdas) do not count."""
    source = _parse(scalar.text)
    uses = sorted(_uses(source, source.tree), key=lambda use: use.start)
    return tuple(replace(use, location=scalar.at(use.start)) for use in uses)


def parse_expression(text: str) -> _Source:
    """The tree of an expression, with the places of its nodes. Raises ExpressionError."""
    return _parse(text)


def tuple_length(text: str) -> int | None:
    """The number of items when the expression is a plain tuple, else None."""
    tree = _parse(text).tree
    return len(tree.elts) if isinstance(tree, ast.Tuple) else None


def dotted_name(node: ast.expr) -> str | None:
    """`a.b.c` of a chain of attributes, or None."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = dotted_name(node.value)
        return None if inner is None else f"{inner}.{node.attr}"
    return None


def _parse(text: str) -> _Source:
    if not text.strip():
        raise ExpressionError("expected an expression, found nothing", 0)
    try:
        tree = ast.parse(text, mode="eval").body
    except (RecursionError, MemoryError, ValueError):
        what = "it has a character 0" if "\0" in text else "it is too deep"
        raise ExpressionError(f"not an expression: {what}", max(text.find("\0"), 0)) from None
    except SyntaxError as error:
        lines = text.split("\n")
        line = min(error.lineno or 1, len(lines))
        start = sum(len(previous) + 1 for previous in lines[: line - 1])
        offset = start + min(max((error.offset or 1) - 1, 0), len(lines[line - 1]))
        raise ExpressionError(f"not an expression: {error.msg}", offset) from None
    source = _Source(text, tree)
    _refuse(source)
    return source


def _refuse(source: _Source) -> None:
    """What is an expression of Python, and would make something else of the function that it is written into; and what is too deep for those who read it."""
    level: list[ast.AST] = [source.tree]
    for _ in range(DEPTH):
        for node in level:
            if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr)):
                found = source.segment(node)
                raise ExpressionError(f"not an expression: '{found}' has no place here", source.start(node))
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return
    place = next((node for node in level if isinstance(node, ast.expr)), source.tree)
    raise ExpressionError(f"not an expression: it is more than {DEPTH} deep", source.start(place))


def _uses(source: _Source, node: ast.AST, bound: frozenset[str] = frozenset()) -> Iterator[NameUse]:
    """Free names below `node`; `x.shape` and the other saved attributes are one use each."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in SAVED_ATTRIBUTES:
        if node.value.id not in bound:
            yield NameUse(node.value.id, node.attr, source.start(node), source.end(node))
        return
    if isinstance(node, ast.Name):
        if node.id not in bound:
            yield NameUse(node.id, None, source.start(node), source.end(node))
        return
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        yield from (replace(use, called=True) for use in _uses(source, node.func, bound))
        for child in (*node.args, *node.keywords):
            yield from _uses(source, child, bound)
        return
    if isinstance(node, ast.Lambda):
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        arguments += [a for a in (node.args.vararg, node.args.kwarg) if a is not None]
        bound |= {a.arg for a in arguments}
    elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        targets = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        # The first iterable is evaluated outside of the comprehension; the others see its names. Close enough for a
        # formula: a name that is both free and bound would be unreadable anyway.
        bound |= targets
    for child in ast.iter_child_nodes(node):
        yield from _uses(source, child, bound)


def _offset(text: str, line: int, column: int) -> int:
    """Offset of a position of `ast`, which counts UTF-8 bytes from the start of the line."""
    lines = text.split("\n")
    start = sum(len(previous) + 1 for previous in lines[: line - 1])
    return start + len(lines[line - 1].encode()[:column].decode())
