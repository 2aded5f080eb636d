"""The declarations of CANN's runtime (`schema/acl.yaml`): read, checked, and written as the text of a cffi `cdef`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .loader import Mapping, Node, Scalar, Sequence, load
from .model import Location
from .problems import Problem, did_you_mean

ACL = Path("acl.yaml")
LIBRARIES = ("libascendcl.so", "libnnopbase.so", "libhccl.so")
VERSIONS = ("8.2", "8.3", "8.5")
_SECTIONS = ("types", "constants", "functions")
_BUILT_IN = frozenset(
    "void bool char int float double size_t int8_t uint8_t int16_t uint16_t int32_t uint32_t int64_t uint64_t".split()
)
_DECLARATION = re.compile(r"(?P<type>[\w *]+?[ *])(?P<name>\w+)\((?P<parameters>[^()]*)\)")
_PARAMETER = re.compile(r"(?P<type>[\w *]+?[ *])(?P<name>\w+)")


@dataclass(frozen=True)
class Function:
    """A C function: its declaration, the library that exports it, and the CANN version that brought it (empty: 8.1 has it)."""

    name: str
    declaration: str
    library: str
    since: str


@dataclass(frozen=True)
class Acl:
    """All of `schema/acl.yaml`: C names of types with what they stand for, constants, functions."""

    types: dict[str, str]
    constants: dict[str, int]
    functions: tuple[Function, ...]

    @property
    def since(self) -> dict[str, str]:
        """The functions that CANN 8.1 does not have, with the version that brought them."""
        return {function.name: function.since for function in self.functions if function.since}

    def cdef(self) -> str:
        """The text for cffi: types, one enum with all constants, prototypes."""
        lines = []
        for name, meaning in self.types.items():
            lines.append(
                f"typedef struct {name} {name};" if meaning == "struct" else f"typedef {_joined(meaning)}{name};"
            )
        lines.append("enum {")
        lines += [f"    {name} = {value}," for name, value in self.constants.items()]
        lines.append("};")
        lines += [f"{function.declaration};" for function in self.functions]
        return "\n".join(lines) + "\n"


def read_acl(schema_dir: Path) -> tuple[Acl, list[Problem]]:
    """The declarations of a schema folder and what is wrong with them, sorted by place. Only those without problems are to be used."""
    file = (Path("schema") / ACL).as_posix()
    tree, problems = load(schema_dir / ACL, file)
    types: dict[str, str] = {}
    constants: dict[str, int] = {}
    functions: list[Function] = []
    if isinstance(tree, Mapping):
        for key, _ in tree:
            if key.text not in _SECTIONS:
                problems.append(
                    Problem(key.location, "", f"unknown section '{key.text}'{did_you_mean(key.text, _SECTIONS)}")
                )
        types = dict(_types(tree.get("types"), problems))
        constants = dict(_constants(tree.get("constants"), problems))
        functions = list(_functions(tree.get("functions"), types, problems))
    elif tree is not None:
        problems.append(Problem(tree.location, "", "must map types, constants and functions"))
    return Acl(types, constants, tuple(functions)), sorted(set(problems))


def cdef(schema_dir: Path) -> str:
    """The cdef text of the declarations. ValueError, a line for each problem, when there are any."""
    acl, problems = read_acl(Path(schema_dir))
    if problems:
        raise ValueError("\n".join(map(str, problems)))
    return acl.cdef()


def _joined(ctype: str) -> str:
    return ctype if ctype.endswith("*") else f"{ctype} "


def _entries(node: Node | None, what: str, problems: list[Problem]) -> Iterator[tuple[Scalar, Node]]:
    if isinstance(node, Mapping):
        yield from node
    elif node is not None:
        problems.append(Problem(node.location, "", f"must map {what}"))


def _types(node: Node | None, problems: list[Problem]) -> Iterator[tuple[str, str]]:
    for key, value in _entries(node, "names of types to what they are", problems):
        meaning = value.text if isinstance(value, Scalar) else ""
        known = _BUILT_IN | {"struct"}
        if meaning.replace("*", "").strip() not in known:
            hint = did_you_mean(meaning, known)
            problems.append(Problem(value.location, key.text, f"'{meaning}' is no plain C type and not 'struct'{hint}"))
        yield key.text, meaning


def _constants(node: Node | None, problems: list[Problem]) -> Iterator[tuple[str, int]]:
    seen: dict[str, int] = {}
    for group, members in _entries(node, "enums to their values", problems):
        for key, value in _entries(members, f"names of {group.text} to integers", problems):
            number = value.value if isinstance(value, Scalar) else None
            if not isinstance(number, int) or isinstance(number, bool):
                problems.append(Problem(value.location, key.text, "a constant is an integer"))
            elif key.text in seen:
                problems.append(Problem(key.location, key.text, "defined twice"))
            else:
                seen[key.text] = number
                yield key.text, number


def _functions(node: Node | None, types: dict[str, str], problems: list[Problem]) -> Iterator[Function]:
    seen: set[str] = set()
    for library, rows in _entries(node, "libraries to their functions", problems):
        if library.text not in LIBRARIES:
            hint = did_you_mean(library.text, LIBRARIES)
            problems.append(Problem(library.location, "", f"unknown library '{library.text}'{hint}"))
        if not isinstance(rows, Sequence):
            problems.append(Problem(rows.location, library.text, "must be a list of declarations"))
            continue
        for row in rows:
            function = _function(row, library.text, types, problems)
            if function is None:
                continue
            if function.name in seen:
                problems.append(Problem(row.location, function.name, "declared twice"))
            seen.add(function.name)
            yield function


def _function(row: Node, library: str, types: dict[str, str], problems: list[Problem]) -> Function | None:
    text: Node | None = row
    since = ""
    if isinstance(row, Mapping):
        text = row.get("declaration")
        for key, value in row:
            if key.text not in ("declaration", "since"):
                hint = did_you_mean(key.text, ("declaration", "since"))
                problems.append(Problem(key.location, "", f"unknown key '{key.text}'{hint}"))
            elif key.text == "since":
                since = value.text if isinstance(value, Scalar) else ""
                if since not in VERSIONS:
                    problems.append(
                        Problem(value.location, "", f"unknown CANN version '{since}'; known: {', '.join(VERSIONS)}")
                    )
    match = _DECLARATION.fullmatch(text.text) if isinstance(text, Scalar) else None
    if match is None or not isinstance(text, Scalar):
        problems.append(Problem(row.location, "", "must be a C declaration: 'type name(type name, ...)'"))
        return None
    name = match["name"]
    known = _BUILT_IN | set(types)
    if match["parameters"] != "void":
        offset = match.start("parameters")
        for part in match["parameters"].split(","):
            place = text.at(offset + len(part) - len(part.lstrip()))
            parameter = _PARAMETER.fullmatch(part.strip())
            if parameter is None:
                problems.append(Problem(place, name, f"parameter '{part.strip()}' must be 'type name'"))
            else:
                problems += _unknown_types(parameter["type"], known, place, name)
            offset += len(part) + 1
    problems += _unknown_types(match["type"], known, text.location, name)
    return Function(name, text.text, library, since)


def _unknown_types(ctype: str, known: frozenset[str] | set[str], place: Location, name: str) -> Iterator[Problem]:
    for word in re.findall(r"\w+", ctype):
        if word != "const" and word not in known:
            yield Problem(place, name, f"unknown type '{word}'{did_you_mean(word, known)}")
