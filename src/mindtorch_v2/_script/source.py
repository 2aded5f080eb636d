"""The text of a TorchScript file's code: read with Python's parser, into declarations. Nothing of it is run.

Note [The language]
What TorchScript writes is a small part of Python's grammar, with two exceptions: attributes may be called by Python's keywords (`md.in`), which are given
another spelling for the parser, and strings are bytes in octal escapes. The text may be hostile: its size and depth are bounded before it is parsed.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterator

from .errors import ScriptError, at

_LARGEST = 64 << 20
_DEEPEST = 150
_SUFFIX = "__keyword"
_WORDS = "|".join(word for word in keyword.kwlist if word not in ("None", "True", "False"))
_STRING = r'"(?:[^"\\\n]|\\.)*"' + r"|'(?:[^'\\\n]|\\.)*'"
# A keyword behind a dot, and one that a line declares as an attribute.
_RESERVED = re.compile(rf"({_STRING})|(?<=\.)({_WORDS})\b|(?<=\n  )({_WORDS})(?= : )")
_NESTING = re.compile(rf"{_STRING}|[(\[{{]|[)\]}}]|\n *")


def parsed(path: str, raw: bytes) -> ast.Module:
    """The syntax tree of a file of code. ScriptError for text that is no code, too large or too deep."""
    if len(raw) > _LARGEST:
        raise ScriptError(f"{path}: {len(raw)} bytes of code are more than is read")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise ScriptError(f"{path}: the code is no text: {error}") from None
    _check_depth(path, text)
    try:
        return ast.parse(_RESERVED.sub(_respelled, text))
    except SyntaxError as error:
        raise at(path, error.lineno or 0, f"this is not TorchScript: {error.msg}") from None
    except (RecursionError, MemoryError, ValueError) as error:
        raise ScriptError(f"{path}: the code cannot be parsed: {type(error).__name__}") from None


def _respelled(match: re.Match[str]) -> str:
    return match[1] if match[1] is not None else (match[2] or match[3]) + _SUFFIX


def _check_depth(path: str, text: str) -> None:
    depth = 0
    for match in _NESTING.finditer(text):
        found = match[0]
        if found in "([{":
            depth += 1
        elif found in ")]}":
            depth -= 1
        elif found[0] == "\n" and len(found) > 2 * _DEEPEST:
            depth = _DEEPEST + 1
        if depth > _DEEPEST:
            line = text.count("\n", 0, match.end()) + 1
            raise at(path, line, f"the code is nested deeper than {_DEEPEST}")


def name_of(spelled: str) -> str:
    """An attribute's name as the file has it."""
    return spelled.removesuffix(_SUFFIX)


def text_of(literal: str) -> str:
    """A string as the file means it: bytes were written in escapes, which the parser takes for letters."""
    try:
        return literal.encode("latin-1").decode()
    except UnicodeError:
        return literal


def literal(node: ast.expr) -> object:
    """The value of a literal. ValueError for any other expression."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            return text_of(node.value)
        if node.value is None or type(node.value) in (bool, int, float, complex):
            return node.value
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = literal(node.operand)
        if type(value) in (int, float, complex):
            return -value  # type: ignore[operator]
    elif isinstance(node, ast.Name) and node.id in CONSTANTS:
        return CONSTANTS[node.id]
    elif isinstance(node, ast.Tuple):
        return tuple(literal(one) for one in node.elts)
    elif isinstance(node, ast.List):
        return [literal(one) for one in node.elts]
    elif isinstance(node, ast.Dict) and None not in node.keys:
        return {literal(k): literal(v) for k, v in zip(node.keys, node.values)}  # type: ignore[arg-type]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        left, right = literal(node.left), literal(node.right)
        if type(left) in (int, float) and type(right) is complex:
            return left + right if isinstance(node.op, ast.Add) else left - right  # type: ignore[operator]
    raise ValueError(f"no literal: {ast.dump(node)[:80]}")


CONSTANTS = {
    "inf": float("inf"),
    "nan": float("nan"),
    "infj": complex(0, float("inf")),
    "nanj": complex(0, float("nan")),
}
"""Names that stand for numbers everywhere."""


def declared(path: str, tree: ast.Module) -> Iterator[ast.ClassDef | ast.FunctionDef]:
    """The classes and functions of a file. ScriptError for anything else but the numbers of versions of long ago."""
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield node
        elif not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)):
            raise at(path, node.lineno, f"{type(node).__name__} cannot stand outside of functions")
