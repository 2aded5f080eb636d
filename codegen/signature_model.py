"""Signatures as frozen data: types, arguments and results of the grammar, and the places where things stand. `codegen.model` gives them on."""

from __future__ import annotations

import keyword
from dataclasses import dataclass

# Scalars of the grammar that a gradient can flow to.
DIFFERENTIABLE_TYPES = ("Tensor",)


@dataclass(frozen=True, order=True)
class Location:
    """A place in a schema file; lines and columns count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def shifted(self, columns: int) -> Location:
        """The place `columns` characters further on the same line."""
        return Location(self.file, self.line, self.column + columns)


@dataclass(frozen=True)
class Alias:
    """An alias mark: `(a)` reads the set `a`, `(a!)` writes it, `(a -> *)` may end in any set."""

    before: str
    write: bool = False
    after: str | None = None

    def __str__(self) -> str:
        return f"({self.before}{'!' if self.write else ''}{f' -> {self.after}' if self.after else ''})"


@dataclass(frozen=True)
class Type:
    """A type of the grammar: `Tensor`, `Scalar?`, `int[2]?`, `Tensor?[]`, `SymInt[1]`.

    `optional` belongs to the outermost type; `element_optional` to the elements of a list.
    """

    base: str
    optional: bool = False
    list: bool = False
    size: int | None = None
    element_optional: bool = False

    def __str__(self) -> str:
        text = self.base
        if self.list:
            text += f"{'?' if self.element_optional else ''}[{'' if self.size is None else self.size}]"
        return text + ("?" if self.optional else "")

    @property
    def is_tensor(self) -> bool:
        """Exactly one tensor, or an optional one."""
        return self.base == "Tensor" and not self.list

    @property
    def is_differentiable(self) -> bool:
        return self.base in DIFFERENTIABLE_TYPES


@dataclass(frozen=True)
class Argument:
    """One parameter. `default` is the text of the schema (`None`, `1`, `[0,1]`, `Mean`), or None when there is none."""

    name: str
    type: Type
    default: str | None = None
    kwarg_only: bool = False
    alias: Alias | None = None

    def __str__(self) -> str:
        return f"{_marked(self.type, self.alias)} {self.name}" + ("" if self.default is None else f"={self.default}")

    @property
    def python_name(self) -> str:
        """The name in Python code: `from_` for an argument that is called `from`. Expressions of an entry use it too."""
        return f"{self.name}_" if keyword.iskeyword(self.name) else self.name

    @property
    def has_default(self) -> bool:
        return self.default is not None

    @property
    def is_tensor(self) -> bool:
        return self.type.is_tensor

    @property
    def is_tensor_like(self) -> bool:
        """A tensor, an optional tensor, or a list of them."""
        return self.type.base == "Tensor"

    @property
    def is_written(self) -> bool:
        return self.alias is not None and self.alias.write

    @property
    def python_default(self) -> str | None:
        """The default as a Python expression; symbolic ones (`contiguous_format`, `int64`) stay names."""
        if self.default is None:
            return None
        if self.default in _SYMBOLIC_DEFAULTS:
            return _SYMBOLIC_DEFAULTS[self.default]
        whole = self.type.base == "float" and self.default.lstrip("-").isdecimal()
        return f"{self.default}.0" if whole else self.default


@dataclass(frozen=True)
class Return:
    """One result; `name` is None when the signature gives none."""

    name: str | None
    type: Type
    alias: Alias | None = None

    def __str__(self) -> str:
        return _marked(self.type, self.alias) + ("" if self.name is None else f" {self.name}")


@dataclass(frozen=True)
class Signature:
    """`name.overload(arguments) -> returns`; `overload` is empty for the default one."""

    name: str
    overload: str
    arguments: tuple[Argument, ...]
    returns: tuple[Return, ...]

    def __str__(self) -> str:
        parts = [str(a) for a in self.positional]
        if self.keyword_only:
            parts += ["*", *(str(a) for a in self.keyword_only)]
        result = ", ".join(map(str, self.returns))
        if len(self.returns) != 1:
            result = f"({result})"
        return f"{self.full_name}({', '.join(parts)}) -> {result}"

    @property
    def full_name(self) -> str:
        return f"{self.name}.{self.overload}" if self.overload else self.name

    @property
    def positional(self) -> tuple[Argument, ...]:
        return tuple(a for a in self.arguments if not a.kwarg_only)

    @property
    def keyword_only(self) -> tuple[Argument, ...]:
        return tuple(a for a in self.arguments if a.kwarg_only)

    @property
    def return_names(self) -> tuple[str, ...]:
        """The names of the returns; empty unless every one is named."""
        names = tuple(r.name for r in self.returns if r.name is not None)
        return names if len(names) == len(self.returns) else ()

    def argument(self, name: str) -> Argument | None:
        """The argument of that name, in the schema or in Python."""
        return next((a for a in self.arguments if name in (a.name, a.python_name)), None)


_SYMBOLIC_DEFAULTS = {"Mean": "1", "Sum": "2", "long": "int64"}


def _marked(type_: Type, alias: Alias | None) -> str:
    """The type with its alias mark, which stands directly behind the base name: `Tensor(a!)[]`."""
    text = str(type_)
    return text if alias is None else text.replace(type_.base, f"{type_.base}{alias}", 1)
