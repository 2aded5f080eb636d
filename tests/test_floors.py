"""Imports point downwards: the table of floors in docs/architecture.md holds for every module, and no modules import each other in a circle.

All imports count, at the top of a module or in a function, and those that `importlib.import_module` and `__import__` make of a name that can
be read; of a name that is put together what can be read of its beginning. What only type checkers read (`if TYPE_CHECKING:`) is no import, and
neither are the packages that Python imports on the way to a module.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NAME = "mindtorch_v2"
DOCUMENT = (
    (ROOT / "docs/architecture.md").read_text(encoding="utf-8").partition("\n## Floors\n")[2].partition("\n## ")[0]
)


@dataclass(frozen=True)
class Module:
    """A module's text; `package`: whether it is a package's `__init__`."""

    text: str
    package: bool


@dataclass(frozen=True, order=True)
class Import:
    """Module `source` imports module `target`, both without the package's name ('' is the package itself)."""

    source: str
    target: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.source or '__init__'}:{self.line} imports {self.target or '__init__'}"


Modules = dict[str, Module]
Floors = dict[str, int]


def read_modules() -> Modules:
    """Every module of the package, hand-written and generated, by its name in the package."""
    found = {}
    for folder, prefix in ((ROOT / "src" / NAME, ()), (ROOT / "generated", ("_generated",))):
        for file in folder.rglob("*.py"):
            parts = [*prefix, *file.relative_to(folder).with_suffix("").parts]
            package = parts[-1] == "__init__"
            found[".".join(parts[: len(parts) - package])] = Module(file.read_text(encoding="utf-8"), package)
    return found


def read_floors(document: str = DOCUMENT) -> Floors:
    """The table: floor by module or package, `_backends/cpu/` as `_backends.cpu`."""
    found: Floors = {}
    for floor, names in re.findall(r"^\| (\d+) \|[^|]*\| (.*) \|$", document, re.M):
        for name in re.findall(r"`([\w/]+)`", names):
            name = "" if name == "__init__" else name.rstrip("/").replace("/", ".")
            assert name not in found, f"{name} is in the table twice"
            found[name] = int(floor)
    return found


def read_exceptions(document: str = DOCUMENT) -> set[tuple[str, str]]:
    """Imports that may point upwards or close a circle, as (source, target); each has a reason in the document."""
    return {
        (source.replace("/", "."), target.replace("/", "."))
        for source, target in re.findall(r"^\* `([\w/]+)` imports `([\w/]+)`: \w", document, re.M)
    }


def floor_of(name: str, floors: Floors) -> int | None:
    """The floor of a module: its own row, or that of the innermost package that has one."""
    while name not in floors and "." in name:
        name = name.rpartition(".")[0]
    return floors.get(name)


def imports(name: str, modules: Modules) -> set[Import]:
    """What a module imports of the package."""
    module = modules[name]
    tree = ast.parse(module.text)
    full = f"{NAME}.{name}".rstrip(".")
    package = full if module.package else full.rpartition(".")[0]
    constants = {"__name__": full, "__package__": package}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            constants.update((t.id, str(statement.value.value)) for t in statement.targets if isinstance(t, ast.Name))
    found = set()
    for node in _run(tree):
        for target in _targets(node, package, constants):
            first, _, rest = target.partition(".")
            while rest and rest not in modules:
                rest = rest.rpartition(".")[0]
            if first == NAME and rest != name:
                found.add(Import(name, rest, node.lineno))
    return found


def _run(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes below one, without what only type checkers read."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for statement in child.orelse:
                yield statement
                yield from _run(statement)
        else:
            yield child
            yield from _run(child)


def _targets(node: ast.AST, package: str, constants: dict[str, str]) -> list[str]:
    """The full names that a statement or a call imports; the last part of one may be what is imported from a module."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = [node.module] if node.module else []
        if node.level:
            parts = package.split(".")
            base = [*parts[: len(parts) - node.level + 1], *base]
        return [".".join([*base, alias.name]) for alias in node.names]
    if isinstance(node, ast.Call) and node.args:
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in ("import_module", "__import__"):
            text = _beginning(node.args[0], constants)
            levels = len(text) - len(text.lstrip("."))
            if levels:
                parts = package.split(".")
                text = ".".join([*parts[: len(parts) - levels + 1], text.lstrip(".")])
            return [text]
    return []


def _beginning(node: ast.expr, constants: dict[str, str]) -> str:
    """What can be read of the beginning of a name; '' of one that is known only when it runs."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.Name):
        return constants.get(node.id, "")
    if isinstance(node, ast.JoinedStr):
        text = ""
        for part in node.values:
            piece = _beginning(part.value if isinstance(part, ast.FormattedValue) else part, constants)
            if not piece:
                return text.rpartition(".")[0]
            text += piece
        return text
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left = _beginning(node.left, constants)
        right = _beginning(node.right, constants)
        return left + right if right else left.rpartition(".")[0]
    return ""


def upward(found: set[Import], floors: Floors) -> list[str]:
    """The imports that point upwards."""
    return [str(one) for one in sorted(found) if floor_of(one.target, floors) > floor_of(one.source, floors)]


def circles(found: set[Import]) -> list[list[str]]:
    """The groups of modules that import each other in a circle."""
    below: dict[str, set[str]] = {}
    above: dict[str, set[str]] = {}
    for one in found:
        for graph, a, b in ((below, one.source, one.target), (above, one.target, one.source)):
            graph.setdefault(a, set()).add(b)
            graph.setdefault(b, set())
    # Modules in the order in which a walk leaves them; backwards, each walk up from one finds a group.
    order: list[str] = []
    seen: set[str] = set()
    for start in below:
        walk = [(start, iter(below[start]))] if start not in seen else []
        seen.add(start)
        while walk:
            name, rest = walk[-1]
            following = next((n for n in rest if n not in seen), None)
            if following is None:
                order.append(name)
                walk.pop()
            else:
                seen.add(following)
                walk.append((following, iter(below[following])))
    groups = []
    left = set(below)
    for start in reversed(order):
        group, waiting = [], [start] if start in left else []
        left.discard(start)
        while waiting:
            name = waiting.pop()
            group.append(name or "__init__")
            fresh = above[name] & left
            left -= fresh
            waiting += fresh
        if len(group) > 1:
            groups.append(sorted(group))
    return groups


@pytest.fixture(scope="module")
def modules() -> Modules:
    return read_modules()


@pytest.fixture(scope="module")
def found(modules: Modules) -> set[Import]:
    exceptions = read_exceptions()
    return {one for name in modules for one in imports(name, modules) if (one.source, one.target) not in exceptions}


def planted(modules: Modules, found: set[Import], name: str, text: str) -> set[Import]:
    """What would be found with `text` at the end of a module."""
    changed = {**modules, name: Module(modules[name].text + text, modules[name].package)}
    return {one for one in found if one.source != name} | imports(name, changed)


def test_the_table_lists_every_module(modules: Modules) -> None:
    floors = read_floors()
    assert [name for name in modules if floor_of(name, floors) is None] == []
    assert [name for name in floors if name not in modules and not any(m.startswith(f"{name}.") for m in modules)] == []


def test_imports_point_downwards(found: set[Import]) -> None:
    assert upward(found, read_floors()) == []


def test_there_are_no_circles(found: set[Import]) -> None:
    assert circles(found) == []


def test_exceptions_are_needed(modules: Modules) -> None:
    made = {(one.source, one.target) for name in modules for one in imports(name, modules)}
    assert read_exceptions() <= made


def test_what_lower_floors_ask_for_is_there(modules: Modules) -> None:
    from mindtorch_v2._above import PLACES, above

    asked = {name for module in modules.values() for name in re.findall(r"\b(?:module_)?above\(\"(\w+)\"", module.text)}
    assert asked == set(PLACES)
    for name in PLACES:
        assert above(name) is not None


@pytest.mark.parametrize(
    "text",
    [
        "from ._tensor import Tensor\n",
        "from . import _tensor\n",
        "import mindtorch_v2._tensor\n",
        "def late():\n    def later():\n        from mindtorch_v2._tensor import wrap\n",
        "def late():\n    importlib.import_module('mindtorch_v2._tensor')\n",
        "def late():\n    importlib.import_module('._tensor', __package__)\n",
        "def late():\n    importlib.import_module(f'{__package__}._tensor')\n",
        "WHERE = 'mindtorch_v2._tensor'\ndef late():\n    __import__(WHERE)\n",
    ],
)
def test_a_planted_upward_import_is_found(modules: Modules, found: set[Import], text: str) -> None:
    seen = upward(planted(modules, found, "_layout", text), read_floors())
    assert len(seen) == 1 and re.fullmatch(r"_layout:\d+ imports _tensor", seen[0])


def test_a_planted_import_of_a_name_that_is_put_together_is_found(modules: Modules, found: set[Import]) -> None:
    text = "def late(family):\n    importlib.import_module(f'mindtorch_v2._generated.autograd.{family}')\n"
    (seen,) = upward(planted(modules, found, "_layout", text), read_floors())
    assert re.fullmatch(r"_layout:\d+ imports _generated.autograd", seen)


def test_what_type_checkers_read_is_no_import(modules: Modules, found: set[Import]) -> None:
    text = "if TYPE_CHECKING:\n    from ._tensor import Tensor\n"
    assert upward(planted(modules, found, "_layout", text), read_floors()) == []


def test_a_planted_circle_is_found(modules: Modules, found: set[Import]) -> None:
    # _dtype imports _state already.
    assert circles(planted(modules, found, "_state", "def late():\n    from . import _dtype\n")) == [
        ["_dtype", "_state"]
    ]


def test_a_planted_circle_of_three_is_found(modules: Modules, found: set[Import]) -> None:
    one = planted(modules, found, "_constants", "from . import _layout\n")
    two = one | imports("_layout", {**modules, "_layout": Module("from . import version\n", False)})
    three = two | imports("version", {**modules, "version": Module("from ._constants import pi\n", False)})
    assert circles(two) == []
    assert circles(three) == [["_constants", "_layout", "version"]]
