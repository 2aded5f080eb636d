"""Kernels in numpy, made of `block` expressions: an entry that says what an element is, and names no kernel for the CPU, gets one.

An expression that is one ufunc of the operator's tensors, or one function of `_backends/cpu/ops/elements.py`, is that function; all others become functions of
`generated/kernels.py`, of which those that make temporaries run block by block.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from .expressions import ExpressionError, parse_expression
from .forms import default, safe
from .model import Argument, Block, Kernel, Op
from .sources import Sources

GENERATED = "made"
"""The module, in place of one of hand-written kernels, of those that are written out."""
_UFUNCS: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.USub: "negative",
    ast.Not: "logical_not",
    ast.And: "logical_and",
    ast.Or: "logical_or",
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
}
_NUMBERS = {"infinity": "np.inf", "nan": "np.nan"}
MANY = 3
"""Passes over memory that a choice counts for, or a function of elements.py."""


@dataclass(frozen=True)
class Function:
    """A kernel that is written out: `body` are its lines."""

    name: str
    parameters: str
    body: tuple[str, ...]
    decorator: str


def with_kernels(ops: Iterable[Op], sources: Sources) -> Iterator[Op]:
    """The operators, those with a block and without a kernel on the CPU with the one that is made of it."""
    for op in ops:
        if op.block and op.kernel("cpu") is None and op.composite is None:
            made = Kernel("cpu", _target(op, sources.elements), None, op.location_of("block"))
            op = replace(op, kernels=(made, *op.kernels))
        yield op


def is_made(op: Op) -> bool:
    """Whether the operator's kernel is one of `generated/kernels.py`."""
    kernel = op.kernel("cpu")
    return kernel is not None and kernel.module == GENERATED


def _target(op: Op, elements: dict[str, str]) -> str:
    """`numpy.add`, `elements.sigmoid`, or the function that is made."""
    made = f"{GENERATED}.{op.identifier}"
    try:
        tree = parse_expression(op.block[0].text).tree
    except ExpressionError:
        return made  # reported by the checks
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
        parts, target = tree.args, elements.get(tree.func.id, made)
    elif isinstance(tree, ast.Compare):
        parts, target = [tree.left, *tree.comparators], _ufunc(tree.ops[0])
    elif isinstance(tree, ast.BoolOp):
        parts, target = tree.values, _ufunc(tree.op)
    elif isinstance(tree, ast.BinOp):
        parts, target = [tree.left, tree.right], _ufunc(tree.op)
    elif isinstance(tree, ast.UnaryOp):
        parts, target = [tree.operand], _ufunc(tree.op)
    else:
        return made
    names = [part.id if isinstance(part, ast.Name) else "" for part in parts]
    plain = len(op.block) == 1 and len(names) <= 2 and names == [a.python_name for a in op.arguments]
    return target if plain and target is not None and all(a.is_tensor for a in op.arguments) else made


def _ufunc(node: ast.AST) -> str | None:
    name = _UFUNCS.get(type(node))
    return None if name is None else f"numpy.{name}"


def check_made(op: Op, elements: dict[str, str]) -> Iterator[tuple[str, str]]:
    """What a kernel that is made lacks: (place, message)."""
    for block in op.block:
        for node in ast.walk(parse_expression(block.text).tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in elements:
                yield (
                    "block",
                    f"'{node.func.id}' is not in elements.py, so that no kernel in numpy can be made; name one for cpu",
                )
    for argument in op.arguments:
        if argument.python_name not in _read(op.block) and not _is_said(argument, op.block):
            yield (
                "block",
                f"says nothing of other values of '{argument.name}', so that no kernel can be made; name one for cpu",
            )


def _read(blocks: tuple[Block, ...]) -> set[str]:
    """Every name in the expressions."""
    trees = [parse_expression(block.text).tree for block in blocks]
    return {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _is_said(argument: Argument, blocks: tuple[Block, ...]) -> bool:
    """Whether the conditions give all values of a parameter that no expression reads: both of a bool; of texts the rule knows which there are."""
    values = [dict(block.conditions).get(argument.python_name) for block in blocks]
    if argument.type.base == "bool" and not argument.type.optional:
        return {argument.default == "True" if value is None else value for value in values} == {False, True}
    return argument.type.base == "str" and not argument.type.optional


def function(op: Op, elements: dict[str, str]) -> Function:
    """The kernel that is made of an operator's block."""
    writers = [_Writer(op, block, elements) for block in op.block]
    expressions: dict[tuple[str, ...], list[str]] = {}
    for writer, block in zip(writers, op.block):
        expressions.setdefault(writer.lines, []).append(_condition(op, block, _read((block,))))
    body: list[str] = []
    for i, (lines, conditions) in enumerate(expressions.items()):
        texts = any("'" in condition for condition in conditions)
        if i < len(expressions) - 1 or texts:
            body += [f"if {' or '.join(conditions)}:", *(f"    {line}" for line in lines)]
        else:
            body += lines
        if i == len(expressions) - 1 and texts:
            body.append(f'raise ValueError("{op.name}: no expression for these arguments")')
    to_bool = any(writer.is_condition for writer in writers)
    parameters = [safe(a.name) for a in op.arguments] + ["out=None"] * (not to_bool)
    passes = max(writer.passes for writer in writers)
    plain = to_bool or not passes or not op.arguments[0].is_tensor
    decorator = "" if plain else "few_passes" if passes < MANY else "many_passes"
    return Function(op.identifier, ", ".join(parameters), tuple(body), decorator)


def _condition(op: Op, block: Block, read: set[str]) -> str:
    """When an expression is taken, in Python."""
    values = dict(block.conditions)
    found = []
    for argument in op.arguments:
        name = safe(argument.name)
        if argument.python_name in read:
            found += [f"{name} is not None"] * argument.type.optional
            continue
        value = repr(values[argument.python_name]) if argument.python_name in values else default(argument)
        found.append({"None": f"{name} is None", "True": name, "False": f"not {name}"}.get(value, f"{name} == {value}"))
    return " and ".join(found)


class _Writer:
    """One expression as lines of Python. passes: about how often arrays are read and written before the outermost step."""

    def __init__(self, op: Op, block: Block, elements: dict[str, str]) -> None:
        self.elements = elements
        tree = parse_expression(block.text).tree
        read = _read((block,))
        self.arrays = [a.python_name for a in op.arguments if a.is_tensor and a.python_name in read]
        numbers = [a.python_name for a in op.arguments if not a.is_tensor and a.python_name in read]
        self.is_condition = isinstance(tree, (ast.Compare, ast.BoolOp)) or _is_not(tree)
        made = self.condition(tree) if self.is_condition else self.value(tree)
        shared: list[tuple[str, ast.expr]] = []
        while (part := self._repeated([made, *(value for _, value in shared)])) is not None:
            # The longest first, so that those before may read a later one, and never the other way round.
            name = f"part{len(shared) or ''}"
            made = _replaced(made, part, name)
            shared = [(name, _parsed(part)), *((other, _replaced(value, part, name)) for other, value in shared)]
        is_choice = isinstance(made, ast.Call) and ast.unparse(made.func) == "chosen"
        before = [made] if is_choice else [*ast.iter_child_nodes(made)]
        self.passes = sum(map(_passes, [*before, *(value for _, value in shared)]))
        result = ast.unparse(made if self.is_condition else self.into_out(made))
        self.lines = (
            *(f"{name} = number({name}, {self.arrays[0]})" for name in numbers),
            *(f"{name} = {ast.unparse(value)}" for name, value in shared),
            f"return {result}",
        )

    def value(self, node: ast.expr) -> ast.expr:
        """A number of an element."""
        if isinstance(node, ast.Name):
            if node.id == "largest":
                return _parsed(f"np.finfo({self.arrays[0]}.dtype).max")
            return _parsed(_NUMBERS.get(node.id, node.id))
        if isinstance(node, ast.BinOp):
            return ast.BinOp(self.value(node.left), node.op, self.value(node.right))
        if isinstance(node, ast.UnaryOp):
            return ast.UnaryOp(node.op, self.value(node.operand))
        if isinstance(node, ast.IfExp):
            return self.choice(self.condition(node.test), self.value(node.body), self.value(node.orelse))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            target = self.elements[node.func.id].replace("numpy.", "np.")
            return ast.Call(_parsed(target), [self.value(a) for a in node.args], [])
        return node

    def choice(self, test: ast.expr, a: ast.expr, b: ast.expr) -> ast.expr:
        if not self.is_array(a) and not self.is_array(b):
            if (ast.unparse(a), ast.unparse(b)) == ("1", "0"):
                return ast.Call(ast.Attribute(test, "astype"), [_parsed(f"{self.arrays[0]}.dtype")], [])
            b = ast.Call(_parsed("number"), [b, _parsed(self.arrays[0])], [])
        return ast.Call(_parsed("chosen"), [test, a, b], [])

    def condition(self, node: ast.expr) -> ast.expr:
        """A truth value of an element."""
        if isinstance(node, ast.Compare):
            return ast.Compare(self.value(node.left), node.ops, [self.value(c) for c in node.comparators])
        if isinstance(node, ast.BoolOp):
            sign = ast.BitAnd() if isinstance(node.op, ast.And) else ast.BitOr()
            first, *rest = map(self.condition, node.values)
            for other in rest:
                first = ast.BinOp(first, sign, other)
            return first
        if _is_not(node):
            return ast.UnaryOp(ast.Invert(), self.condition(node.operand))  # type: ignore[attr-defined]
        return ast.Compare(self.value(node), [ast.NotEq()], [ast.Constant(0)])

    def is_array(self, node: ast.AST) -> bool:
        return any(isinstance(n, ast.Name) and n.id in self.arrays for n in ast.walk(node))

    def _repeated(self, trees: list[ast.expr]) -> str | None:
        """The longest part of expressions that stands in them more than once and is computed of arrays."""
        parts = [part for tree in trees for part in _steps(tree)]
        counts = Counter(ast.unparse(part) for part in parts if self.is_array(part))
        return max((text for text, count in counts.items() if count > 1), key=len, default=None)

    def into_out(self, node: ast.expr) -> ast.expr:
        """The outermost step with `out` as its last argument."""
        if isinstance(node, ast.Call):
            function, args = node.func, node.args
        else:
            assert isinstance(node, (ast.BinOp, ast.UnaryOp))
            function = _parsed(f"np.{_UFUNCS[type(node.op)]}")
            args = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.operand]
        return ast.Call(function, args, [ast.keyword("out", _parsed("out"))])


def _is_not(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


class _Replacer(ast.NodeTransformer):
    def __init__(self, part: str, name: str) -> None:
        self.part, self.name = part, name

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.expr) and ast.unparse(node) == self.part:
            return ast.Name(self.name)
        return self.generic_visit(node)


def _replaced(tree: ast.expr, part: str, name: str) -> ast.expr:
    made = _Replacer(part, name).visit(copy.deepcopy(tree))
    assert isinstance(made, ast.expr)
    return made


def _passes(tree: ast.AST) -> int:
    calls = [ast.unparse(n.func) for n in _steps(tree) if isinstance(n, ast.Call)]
    return len(_steps(tree)) + (MANY - 1) * sum(name == "chosen" or name.startswith("elements.") for name in calls)


def _steps(tree: ast.AST) -> list[ast.expr]:
    return [n for n in ast.walk(tree) if isinstance(n, (ast.BinOp, ast.UnaryOp, ast.Call, ast.Compare))]
