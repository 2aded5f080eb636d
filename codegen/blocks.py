"""The loops of the block interpreter: expressions of one element, read from entries and translated to C.

A `block` of an entry is an expression over its parameters and the functions of the extension's headers. Operators whose expressions are the same but for the
names of their operands share a loop.
"""

from __future__ import annotations

import ast
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from .expressions import ExpressionError, parse_expression
from .forms import default
from .model import Block, Location, NativeFunction, Op, Schema
from .problems import did_you_mean

LETTERS = "abcde"  # what the operands are called in C
CONSTANTS = {"infinity": "(T)INFINITY", "nan": "(T)NAN", "largest": "(IS_DOUBLE ? (T)DBL_MAX : (T)FLT_MAX)"}
NUMBER_TYPES = ("Scalar", "float")
_ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


@dataclass(frozen=True)
class Loop:
    """An expression in C over the letters, with a kind for each: T an array or a number, S a number."""

    expression: str
    kinds: str
    to_bool: bool
    is_cheap: bool
    function: str = ""
    """The one function that it is, of its one operand."""

    @property
    def patterns(self) -> tuple[frozenset[int], ...]:
        """Which operands are numbers, in each function that the loop has: no array, and in cheap loops the last array, all but the first, or of two the first.

        All else reads a block that is filled with the number, which costs little beside an expensive loop.
        """
        numbers = frozenset(i for i, kind in enumerate(self.kinds) if kind == "S")
        arrays = [i for i, kind in enumerate(self.kinds) if kind == "T"]
        if not 2 <= len(arrays) <= 3 or not self.is_cheap:
            return (numbers,)
        further = [arrays[-1:], arrays[1:] if len(arrays) == 3 else arrays[:1]]
        return numbers, *(numbers | set(some) for some in further)


@dataclass(frozen=True)
class Translation:
    """A block as a loop. `operands` are the numbers of the parameters, in the order of the letters."""

    loop: Loop
    operands: tuple[int, ...]
    is_single: bool
    """It is one operation of IEEE 754 on the parameters."""


@dataclass(frozen=True)
class Record:
    """What an operator's table says of a block."""

    opcode: int
    operands: tuple[int, ...]
    conditions: tuple[tuple[int, str], ...]
    """(number of a parameter that is no operand, the value that it must have as an expression)."""
    exact: bool
    """A numpy ufunc computes the same single operation, and there is no loop that is written by hand."""


def translate(block: Block, op: Op, functions: Mapping[str, NativeFunction]) -> Translation:
    """Raises ExpressionError for what is no expression of an element."""
    translator = _Translator(block.text, op, functions)
    text, is_condition = translator.visit(translator.tree)
    if is_condition:
        text = f"{text} ? (T)1 : (T)0"
    loop = Loop(text, translator.kinds, is_condition, translator.is_cheap, translator.function)
    return Translation(loop, tuple(translator.operands), translator.is_single)


class _Translator:
    """One expression while it is translated."""

    def __init__(self, text: str, op: Op, functions: Mapping[str, NativeFunction]) -> None:
        self.source = parse_expression(text)
        self.tree = self.source.tree
        self.arguments = {a.python_name: i for i, a in enumerate(op.arguments)}
        self.op = op
        self.functions = functions
        named = {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)}
        # In the order of the parameters, whatever the expression begins with: numbers mostly come last, and loops have patterns for that.
        self.operands = sorted(i for name, i in self.arguments.items() if name in named)

    @property
    def kinds(self) -> str:
        return "".join("T" if self.op.arguments[i].is_tensor else "S" for i in self.operands)

    @property
    def is_cheap(self) -> bool:
        calls = [
            node.func.id
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        ]
        return all(self.functions[name].is_cheap for name in calls)

    @property
    def function(self) -> str:
        tree = self.tree
        whole = isinstance(tree, ast.Call) and len(tree.args) == 1 and isinstance(tree.args[0], ast.Name)
        return tree.func.id if whole and isinstance(tree.func, ast.Name) and tree.args[0].id in self.arguments else ""  # type: ignore[union-attr]

    @property
    def is_single(self) -> bool:
        """Whether the expression is one operation, of parameters alone."""
        tree = self.tree
        if isinstance(tree, ast.Call):
            parts = tree.args
            single = isinstance(tree.func, ast.Name) and self.functions[tree.func.id].is_single
        elif isinstance(tree, ast.BinOp):
            parts, single = [tree.left, tree.right], True
        elif isinstance(tree, ast.Compare):
            parts, single = [tree.left, *tree.comparators], True
        else:
            parts, single = [tree.operand] if isinstance(tree, ast.UnaryOp) else [], isinstance(tree, ast.UnaryOp)
        return single and all(isinstance(part, ast.Name) and part.id in self.arguments for part in parts)

    def error(self, node: ast.expr, message: str) -> ExpressionError:
        return ExpressionError(message, self.source.start(node))

    def number(self, node: ast.expr) -> str:
        text, is_condition = self.visit(node)
        if is_condition:
            raise self.error(node, "a comparison is no number; write '1 if ... else 0'")
        return text

    def condition(self, node: ast.expr) -> str:
        text, is_condition = self.visit(node)
        return text if is_condition else f"({text} != 0)"

    def visit(self, node: ast.expr) -> tuple[str, bool]:
        """The node in C, and whether it is a condition."""
        if isinstance(node, ast.Name):
            return self.name(node), False
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
            return f"(T){node.value!r}", False
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            return f"({self.number(node.left)} {_ARITHMETIC[type(node.op)]} {self.number(node.right)})", False
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return f"(-{self.number(node.operand)})", False
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return f"(!{self.condition(node.operand)})", True
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
            left, right = self.number(node.left), self.number(node.comparators[0])
            return f"({left} {_COMPARISONS[type(node.ops[0])]} {right})", True
        if isinstance(node, ast.BoolOp):
            # Both sides are computed: a loop without branches is what compilers vectorise.
            sign = " & " if isinstance(node.op, ast.And) else " | "
            return f"({sign.join(self.condition(value) for value in node.values)})", True
        if isinstance(node, ast.IfExp):
            test = self.condition(node.test)
            # Note [Choices] in pointwise_math.h.
            return f"NAME(chosen)({test}, {self.number(node.body)}, {self.number(node.orelse)})", False
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            return self.call(node, node.func.id), False
        raise self.error(node, f"'{self.source.segment(node)}' is no expression of an element")

    def name(self, node: ast.Name) -> str:
        if node.id in CONSTANTS:
            return CONSTANTS[node.id]
        if node.id not in self.arguments:
            known = [*self.arguments, *CONSTANTS]
            raise self.error(node, f"unknown name '{node.id}'{did_you_mean(node.id, known)}")
        index = self.arguments[node.id]
        type_ = self.op.arguments[index].type
        if type_.list or (type_.base != "Tensor" and type_.base not in NUMBER_TYPES):
            raise self.error(node, f"'{node.id}' is of the type {type_}, no operand")
        if len(self.operands) > len(LETTERS):
            raise self.error(node, f"more than {len(LETTERS)} operands")
        return LETTERS[self.operands.index(index)]

    def call(self, node: ast.Call, name: str) -> str:
        function = self.functions.get(name)
        if function is None:
            raise self.error(node, f"unknown function '{name}'{did_you_mean(name, self.functions)}")
        if len(node.args) != function.arity:
            plural = "s" * (function.arity != 1)
            raise self.error(node, f"'{name}' takes {function.arity} number{plural}, {len(node.args)} given")
        return f"NAME({name})({', '.join(self.number(a) for a in node.args)})"


def check_block(op: Op, functions: Mapping[str, NativeFunction]) -> Iterator[tuple[str | Location | None, str]]:
    """What is wrong with an operator's blocks: (place, message)."""
    if op.block and (op.composite or len(op.returns) != 1 or not op.returns[0].type.is_tensor or op.mutates):
        yield "block", "a block is of an operator with a rule and one fresh tensor as its result"
        return
    for block in op.block:
        try:
            translated = translate(block, op, functions)
        except ExpressionError as error:
            yield block.at(error.offset), f"block: {error.message}"
            continue
        if "T" not in translated.loop.kinds:
            yield block.location, "block: reads no tensor"
            continue
        yield from _check_conditions(block, op, translated)


def _check_conditions(block: Block, op: Op, translated: Translation) -> Iterator[tuple[str | Location | None, str]]:
    names = [a.python_name for a in op.arguments]
    for name, _ in block.conditions:
        if op.signature.argument(name) is None:
            yield block.location, f"block: unknown parameter '{name}'{did_you_mean(name, names)}"
        elif names.index(name) in translated.operands:
            yield block.location, f"block: '{name}' is an operand and cannot have a value"
    given = {name for name, _ in block.conditions}
    for i, argument in enumerate(op.arguments):
        if i not in translated.operands and argument.python_name not in given and not argument.has_default:
            message = (
                f"block: '{argument.name}' is no operand and has no default; say its value as {{{argument.name}: ...}}"
            )
            yield block.location, message


class Loops:
    """All loops of a schema, by number."""

    def __init__(self, schema: Schema) -> None:
        self.functions = schema.native_functions
        self.names: dict[Loop, str] = {}
        self.records: dict[str, tuple[Record, ...]] = {}
        for op in schema.ops:
            if op.block:
                self.records[op.full_name] = tuple(self._record(op, block) for block in op.block)

    def _record(self, op: Op, block: Block) -> Record:
        translated = translate(block, op, self.functions)
        loop = translated.loop
        if loop not in self.names:
            # Underscores at the ends mean something in C.
            base = f"loop_{op.identifier.strip('_')}"
            number = sum(name == base or name.startswith(f"{base}_v") for name in self.names.values())
            self.names[loop] = f"{base}_v{number + 1}" if number else base
        values = dict(block.conditions)
        others = [(i, a) for i, a in enumerate(op.arguments) if i not in translated.operands]
        conditions = tuple(
            (i, repr(values[a.python_name]) if a.python_name in values else default(a)) for i, a in others
        )
        exact = translated.is_single and _is_ufunc(op) and not self.by_hand(loop)
        return Record(list(self.names).index(loop), translated.operands, conditions, exact)

    def by_hand(self, loop: Loop) -> frozenset[str]:
        """The types of which the loop is written by hand for the widest vectors."""
        return self.functions[loop.function].by_hand if loop.function else frozenset()

    @cached_property
    def version(self) -> int:
        """A number that tells two tables of loops apart."""
        return zlib.crc32(repr(list(self.names.items())).encode()) & 0x7FFFFFFF

    @property
    def functions_in_c(self) -> list[tuple[str, str, str, str]]:
        """(name, operands, elements, expression) of each function, as the macro LOOP takes them."""
        found = []
        for loop, name in self.names.items():
            for k, numbers in enumerate(loop.patterns):
                operands, elements = [], []
                for i, letter in zip(range(len(loop.kinds)), LETTERS):
                    operands.append(f"{'NUMBER' if i in numbers else 'ARRAY'}({letter}, {i})")
                    if i not in numbers:
                        elements.append(f"ELEMENT({letter})")
                found.append((_function(name, k), " ".join(operands), " ".join(elements), loop.expression))
        return found

    @property
    def rows(self) -> list[tuple[str, str, bool, list[str]]]:
        """(name, kinds, to_bool, functions as the table's macros take them) of each loop."""
        found = []
        for loop, name in self.names.items():
            functions = [
                f"PATTERN({_function(name, k)}, {sum(1 << i for i in numbers)})"
                for k, numbers in enumerate(loop.patterns)
            ]
            if types := self.by_hand(loop):
                widest = [
                    f"{loop.function}_{kind}_by_hand" if kind in types else f"{name}_{kind}_widest"
                    for kind in ("float", "double")
                ]
                functions = [f"BY_HAND_OR({name}, 0, {', '.join(widest)})"]
            found.append((name, loop.kinds, loop.to_bool, functions))
        return found


def _function(name: str, k: int) -> str:
    return f"{name}_n{k}" if k else name


def _is_ufunc(op: Op) -> bool:
    """Whether eager calls run a ufunc of numpy, as the kernel or on the fast path."""
    kernel = op.kernel("cpu")
    fast = op.fast or ""
    return (kernel is not None and kernel.is_numpy) or fast == "ufunc" or fast.startswith("numpy.")
