"""Parser of the signature grammar, which is the one of PyTorch's `func:` lines.

    name.overload(Type(alias) name=default, *, Type name) -> Type | (Type name, ...) | ()

A type is a base name, then list brackets and question marks: `Tensor?[]`, `int[2]?`, `SymInt[1]`.
"""

from __future__ import annotations

import difflib
import re

from .model import Alias, Argument, Return, Signature, Type

BASE_TYPES = (
    "Tensor",
    "Scalar",
    "int",
    "SymInt",
    "float",
    "bool",
    "SymBool",
    "str",
    "ScalarType",
    "Layout",
    "Device",
    "DeviceIndex",
    "MemoryFormat",
    "Generator",
    "Dimname",
    "DimVector",
    "Storage",
    "Stream",
    "QScheme",
    "ConstQuantizerPtr",
    "Any",
)

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<number>-?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?)
    | (?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
    | (?P<symbol>->|[()\[\],.*=?!|])
    )""",
    re.VERBOSE,
)
_SYMBOLIC_DEFAULTS = ("None", "True", "False", "Mean", "Sum", "long", "contiguous_format")


class SignatureError(ValueError):
    """A signature that does not parse; `column` is an offset into its text."""

    def __init__(self, message: str, column: int) -> None:
        super().__init__(message)
        self.message = message
        self.column = column


def parse_signature(text: str) -> Signature:
    """Parse one `func:` line. Raises SignatureError with the offset of the first character that does not fit."""
    return _Parser(text).signature()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokenize(text)
        self.position = 0

    # Tokens

    @property
    def kind(self) -> str:
        return self.tokens[self.position][0]

    @property
    def value(self) -> str:
        return self.tokens[self.position][1]

    @property
    def start(self) -> int:
        return self.tokens[self.position][2]

    def advance(self) -> str:
        value = self.value
        self.position += 1
        return value

    def accept(self, symbol: str) -> bool:
        if self.kind == "symbol" and self.value == symbol:
            self.position += 1
            return True
        return False

    def expect(self, symbol: str, where: str) -> None:
        if not self.accept(symbol):
            raise self.unexpected(f"'{symbol}' {where}")

    def expect_name(self, what: str) -> str:
        if self.kind != "name":
            raise self.unexpected(what)
        return self.advance()

    def unexpected(self, wanted: str) -> SignatureError:
        found = "the end" if self.kind == "end" else f"'{self.value}'"
        return SignatureError(f"expected {wanted}, found {found}", self.start)

    # Grammar

    def signature(self) -> Signature:
        name = self.expect_name("an operator name")
        overload = self.expect_name("an overload name after '.'") if self.accept(".") else ""
        self.expect("(", "before the arguments")
        arguments = self.arguments()
        self.expect("->", "before the returns")
        returns = self.returns()
        if self.kind != "end":
            raise self.unexpected("the end of the signature")
        return Signature(name, overload, arguments, returns)

    def arguments(self) -> tuple[Argument, ...]:
        found: list[Argument] = []
        keyword_only = False
        if self.accept(")"):
            return ()
        while True:
            start = self.start
            if self.accept("*"):
                if keyword_only:
                    raise SignatureError("a second '*' among the arguments", start)
                keyword_only = True
                if self.kind == "symbol" and self.value == ")":
                    raise SignatureError("'*' must be followed by an argument", start)
            else:
                argument = self.argument(keyword_only)
                if any(a.name == argument.name for a in found):
                    raise SignatureError(f"duplicate argument '{argument.name}'", start)
                found.append(argument)
            if self.accept(")"):
                return tuple(found)
            self.expect(",", "or ')' after an argument")

    def argument(self, keyword_only: bool) -> Argument:
        type_, alias = self.type()
        name = self.expect_name("an argument name")
        default = self.default() if self.accept("=") else None
        return Argument(name, type_, default, keyword_only, alias)

    def returns(self) -> tuple[Return, ...]:
        if not self.accept("("):
            return (self.result(),)
        if self.accept(")"):
            return ()
        found: list[Return] = []
        while True:
            start = self.start
            result = self.result()
            if result.name is not None and any(r.name == result.name for r in found):
                raise SignatureError(f"duplicate return '{result.name}'", start)
            found.append(result)
            if self.accept(")"):
                return tuple(found)
            self.expect(",", "or ')' after a return")

    def result(self) -> Return:
        type_, alias = self.type()
        name = self.advance() if self.kind == "name" else None
        return Return(name, type_, alias)

    def type(self) -> tuple[Type, Alias | None]:
        start = self.start
        base = self.expect_name("a type")
        if base not in BASE_TYPES:
            close = difflib.get_close_matches(base, BASE_TYPES, 1)
            raise SignatureError(f"unknown type '{base}'" + (f"; did you mean '{close[0]}'?" if close else ""), start)
        alias = self.alias() if self.kind == "symbol" and self.value == "(" else None
        inner_optional = self.accept("?")
        if not self.accept("["):
            return Type(base, optional=inner_optional), alias
        size = None
        if self.kind == "number":
            if not self.value.isdigit():
                raise self.unexpected("a list size")
            size = int(self.advance())
        self.expect("]", "after a list type")
        return Type(base, self.accept("?"), True, size, inner_optional), alias

    def alias(self) -> Alias:
        self.expect("(", "before an alias mark")
        before = self.alias_set()
        write = self.accept("!")
        after = self.alias_set() if self.accept("->") else None
        self.expect(")", "after an alias mark")
        return Alias(before, write, after)

    def alias_set(self) -> str:
        if self.accept("*"):
            return "*"
        names = [self.expect_name("an alias set")]
        while self.accept("|"):
            names.append(self.expect_name("an alias set after '|'"))
        return "|".join(names)

    def default(self) -> str:
        start = self.start
        if self.accept("["):
            if not self.accept("]"):
                self.default_atom()
                while self.accept(","):
                    self.default_atom()
                self.expect("]", "after a list default")
        else:
            self.default_atom()
        # The text as it was written, so that a signature prints as it was read.
        return self.text[start : self.tokens[self.position - 1][3]]

    def default_atom(self) -> None:
        if self.kind == "name" and self.value not in _SYMBOLIC_DEFAULTS:
            close = difflib.get_close_matches(self.value, _SYMBOLIC_DEFAULTS, 1)
            hint = f"; did you mean '{close[0]}'?" if close else ""
            raise SignatureError(f"unknown default '{self.value}'{hint}", self.start)
        if self.kind not in ("name", "number", "string"):
            raise self.unexpected("a default value")
        self.advance()


def _tokenize(text: str) -> list[tuple[str, str, int, int]]:
    """(kind, value, start, end) of every token, and a last one of the kind `end`."""
    tokens = []
    position = 0
    text = text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            start = position + len(text[position:]) - len(text[position:].lstrip())
            raise SignatureError(f"unexpected character {text[start]!r}", start)
        kind = match.lastgroup or ""
        tokens.append((kind, match[kind], match.start(kind), match.end()))
        position = match.end()
    tokens.append(("end", "", len(text), len(text)))
    return tokens
