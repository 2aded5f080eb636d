"""What the hand-written runtime offers to the schema, read by `ast` without importing it.

Rules, kernels, composites and formula functions are looked up by name, with the parameters that they take.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .model import NAMESPACES, Location, NativeFunction
from .problems import Problem, did_you_mean
from .rules import Rule, read_rules

PACKAGE = Path("src/mindtorch_v2")
RULES = PACKAGE / "_rules"
CPU_OPS = PACKAGE / "_backends/cpu/ops"
RANDOM = PACKAGE / "_random"
SPARSE_OPS = PACKAGE / "_backends/cpu/sparse"
NPU_OPS = PACKAGE / "_backends/npu/ops"
COMPOSITE = PACKAGE / "_composite"
FORMULAS = PACKAGE / "_autograd/formulas"
NPU_ARGUMENTS = PACKAGE / "_backends/npu/arguments"
NATIVE = Path("native/kernels")
BY_HAND = "elementary.h"
NATIVE_HEADERS = ("ieee.h", "vecmath.h", "further_math.h", "pointwise_math.h")  # the first one has single operations
COSTS = PACKAGE / "_planning/costs"
BATCHES = PACKAGE / "func/whole"
KINDS = PACKAGE / "func/kinds"
AXES = PACKAGE / "distributed/tensor/rules"
AXES_OF_KINDS = PACKAGE / "distributed/tensor/kinds"


@dataclass(frozen=True)
class Parameters:
    """What a Python function takes. `required` of the `positional` names have no default."""

    positional: tuple[str, ...]
    required: int
    variadic: bool
    keyword_only: tuple[str, ...]
    keyword_required: tuple[str, ...]
    keyword_variadic: bool
    positional_only: int = 0
    defaults: tuple[tuple[str, str], ...] = ()
    """By name, the source of each default."""

    @classmethod
    def of(cls, arguments: ast.arguments) -> Parameters:
        positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        optional = positional[len(positional) - len(arguments.defaults) :]
        defaults = [*zip(optional, arguments.defaults, strict=True)]
        defaults += [
            (a.arg, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None
        ]
        return cls(
            tuple(positional),
            len(positional) - len(arguments.defaults),
            arguments.vararg is not None,
            tuple(a.arg for a in arguments.kwonlyargs),
            tuple(a.arg for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is None),
            arguments.kwarg is not None,
            len(arguments.posonlyargs),
            tuple((name, ast.unparse(value)) for name, value in defaults),
        )

    def accepts(self, count: int) -> bool:
        """Whether a call with `count` positional arguments, and nothing else, binds."""
        enough = count >= self.required and not self.keyword_required
        return enough and (self.variadic or count <= len(self.positional))

    @property
    def counts(self) -> str:
        """How many positional arguments are taken, in words: `2 arguments`, `1 to 3 arguments`, `2 or more arguments`."""
        most = len(self.positional)
        if self.variadic:
            return f"{self.required} or more arguments"
        if most != self.required:
            return f"{self.required} to {most} arguments"
        return f"{most} argument{'s' * (most != 1)}"


Functions = dict[str, Parameters | None]
"""Functions by name. None: the name exists, but its parameters are not written out (an assignment, an outside import)."""


class Sources:
    """The runtime of one source tree. Unreadable files are collected in `problems`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.problems: list[Problem] = []
        self._modules: dict[Path, Functions | None] = {}
        self._exported: dict[Path, tuple[str, ...]] = {}  # what a module's `__all__` names, where it has one

    def at(self, path: Path) -> Path:
        """Where a path of the source tree is."""
        return self.root / path

    def namespaces(self) -> tuple[str, ...]:
        """The namespaces that operators may be in."""
        return NAMESPACES

    def known_operators(self) -> frozenset[str]:
        """Operators that formulas may call and that are not in the schema itself."""
        return frozenset()

    @cached_property
    def rules(self) -> Functions:
        return {name: Parameters.of(rule.arguments) for name, rule in self.rule_table.items()}

    @cached_property
    def rule_table(self) -> dict[str, Rule]:
        return read_rules(self.root, RULES, self.problems)

    def unmarked_rule(self, name: str) -> str | None:
        """The module of rules that has a function of that name, which is no rule."""
        files = sorted(self.at(RULES).glob("*.py"))
        return next((file.stem for file in files if name in (self._module(RULES / file.stem) or {})), None)

    @cached_property
    def formulas(self) -> Functions:
        return self._public(FORMULAS)

    def unexported_formula(self, name: str) -> str | None:
        """The file of formulas that has a function of that name, and does not name it in its `__all__`."""
        for file in sorted(self.at(FORMULAS).glob("[!_]*.py")):
            path = FORMULAS / file.stem
            if name in (self._module(path) or {}) and name not in self._exported.get(path, (name,)):
                return file.relative_to(self.root).as_posix()
        return None

    @cached_property
    def costs(self) -> Functions:
        """Functions that formulas of floating-point operations call."""
        return {name: p for name, p in self._public(COSTS).items() if name != "annotations"}

    @cached_property
    def batches(self) -> Functions:
        """What operators may do to whole batches of examples."""
        return {n: p for n, p in self._public(BATCHES).items() if p is not None and p.positional[:1] == ("level",)}

    @cached_property
    def kinds(self) -> Functions:
        """What operators of a rule may do to whole batches of examples."""
        return {
            n: p
            for n, p in self._public(KINDS).items()
            if p is not None and p.positional[:3] == ("level", "op", "given")
        }

    @cached_property
    def axes(self) -> tuple[str, ...]:
        """The rules of which it is said how their operators' tensors may be divided among ranks."""
        found = self._public(AXES)
        return tuple(
            n for n, p in found.items() if p is not None and p.positional[:1] == ("call",) and n in self.rule_table
        )

    @cached_property
    def axes_of_kinds(self) -> tuple[str, ...]:
        """The kinds of operators of which it is said how their tensors may be divided among ranks."""
        return tuple(
            n for n, p in self._public(AXES_OF_KINDS).items() if p is not None and p.positional[:1] == ("call",)
        )

    @cached_property
    def native_functions(self) -> dict[str, NativeFunction]:
        """Functions of one element in the C extension's headers: those that take and give numbers of the type T."""
        found = {}
        slow: set[str] = set()
        by_hand = re.findall(r"^    LOOP\((\w+), (float|double)\)", self._header(BY_HAND), re.M)
        for header in NATIVE_HEADERS:
            text = self._header(header)
            functions = r"^INLINED \w+ NAME\((\w+)\)\(([^()]*(?:\(\w+\)[^()]*)*)\)$\n(.*?)^}$"
            for name, parameters, body in re.findall(functions, text, re.M | re.S):
                # A polynomial, or a call of a function with one; functions stand before their use.
                if "FMA(" in body or slow & set(re.findall(r"NAME\((\w+)\)", body)):
                    slow.add(name)
                if re.fullmatch(r"T \w+(, T \w+)*", parameters):
                    is_single = header == NATIVE_HEADERS[0]
                    types = frozenset(kind for of, kind in by_hand if of == name)
                    found[name] = NativeFunction(parameters.count(",") + 1, is_single, name not in slow, types)
        return found

    def _header(self, name: str) -> str:
        file = self.at(NATIVE / name)
        return file.read_text(encoding="utf-8") if file.exists() else ""

    def cpu(self, module: str) -> Functions | None:
        """Functions of a module of the CPU kernels, or None when there is no such module."""
        return self._module(CPU_OPS / module.replace(".", "/"))

    def sparse(self, module: str) -> Functions | None:
        """Functions of a module of the kernels of sparse tensors, or None when there is no such module."""
        return self._module(SPARSE_OPS / module.replace(".", "/"))

    @cached_property
    def sparse_modules(self) -> tuple[str, ...]:
        return self._module_names(SPARSE_OPS)

    @cached_property
    def elements(self) -> dict[str, str]:
        """Functions of one element that numpy computes, by the names that they have in C: `numpy.exp`, or `elements.gelu` of the CPU's kernels."""
        file = self.at(CPU_OPS / "elements.py")
        found = {}
        for node in ast.parse(file.read_text(encoding="utf-8")).body if file.exists() else ():
            if isinstance(node, ast.FunctionDef):
                found[node.name] = f"elements.{node.name}"
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name, value = node.targets[0].id, ast.unparse(node.value)
                found[name] = value.replace("np.", "numpy.") if re.fullmatch(r"np\.\w+", value) else f"elements.{name}"
        return {name: target for name, target in found.items() if name in self.native_functions}

    @cached_property
    def npu_arguments(self) -> frozenset[str]:
        """What the arguments of aclnn functions may be made with."""
        return frozenset(
            name for name in self._public(NPU_ARGUMENTS) if name not in ("annotations", "Any", "Sequence", "np")
        )

    def npu(self, module: str) -> Functions | None:
        """Functions of a module of the NPU's Python kernels, or None when there is no such module."""
        return self._module(NPU_OPS / module.replace(".", "/"))

    @cached_property
    def npu_modules(self) -> tuple[str, ...]:
        return self._module_names(NPU_OPS)

    def composite(self, module: str) -> Functions | None:
        return self._module(COMPOSITE / module.replace(".", "/"))

    @cached_property
    def cpu_modules(self) -> tuple[str, ...]:
        return self._module_names(CPU_OPS)

    @cached_property
    def composite_modules(self) -> tuple[str, ...]:
        return self._module_names(COMPOSITE)

    def _module_names(self, folder: Path) -> tuple[str, ...]:
        files = self.at(folder).rglob("*.py")
        names = (file.relative_to(self.at(folder)).with_suffix("").as_posix().replace("/", ".") for file in files)
        return tuple(sorted(name for name in names if not name.endswith("__init__")))

    def _public(self, path: Path) -> Functions:
        """Public names of a module or package; a package without an `__init__` offers what all its modules do."""
        if self.at(path).is_dir() and not self.at(path / "__init__.py").exists():
            found: Functions = {}
            for file in sorted(self.at(path).glob("[!_]*.py")):
                found.update(self._module(path / file.stem) or {})
        else:
            found = self._module(path) or {}
        return {name: parameters for name, parameters in found.items() if not name.startswith("_")}

    def _module(self, path: Path) -> Functions | None:
        """Top-level names of the module or package at `path`, which has no suffix."""
        if path not in self._modules:
            self._modules[path] = {}  # ends a cycle of imports
            self._modules[path] = self._read(path)
        return self._modules[path]

    def _read(self, path: Path) -> Functions | None:
        file = path.with_suffix(".py") if path.suffix == "" else path
        package = path
        if not self.at(file).is_file():
            file = path / "__init__.py"
        else:
            package = path.parent
        if not self.at(file).is_file():
            return None
        try:
            tree = ast.parse(self.at(file).read_text(encoding="utf-8"))
        except SyntaxError as error:
            place = Location(file.as_posix(), error.lineno or 1, error.offset or 1)
            self.problems.append(Problem(place, "", f"not valid Python: {error.msg}"))
            return {}
        found = self._names(tree.body, package)
        for statement in tree.body:
            if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
                self._export(path, file, statement.value, found)
        return found

    def _export(self, path: Path, file: Path, listed: ast.expr, found: Functions) -> None:
        """Take note of `__all__`; a name in it that the module does not have ends every import of it."""
        if not isinstance(listed, (ast.List, ast.Tuple)):
            return
        names = [item for item in listed.elts if isinstance(item, ast.Constant) and isinstance(item.value, str)]
        self._exported[path] = tuple(str(item.value) for item in names)
        for item in names:
            if item.value not in found:
                place = Location(file.as_posix(), item.lineno, item.col_offset + 1)
                hint = did_you_mean(str(item.value), found)
                self.problems.append(Problem(place, "", f"'__all__' names '{item.value}', which is not here{hint}"))

    def _names(self, body: list[ast.stmt], package: Path) -> Functions:
        found: Functions = {}
        for statement in body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found[statement.name] = Parameters.of(statement.args)
            elif isinstance(statement, ast.ClassDef):
                found[statement.name] = None
            elif isinstance(statement, ast.ImportFrom):
                found.update(self._imported(statement, package))
            elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                names = [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
                value = statement.value
                # `greater = gt` has the parameters of `gt`.
                source = found.get(value.id) if isinstance(value, ast.Name) else None
                found.update({name: source for name in names})
            elif isinstance(statement, ast.If):
                found.update(self._names([*statement.body, *statement.orelse], package))
            elif isinstance(statement, ast.Try):
                handlers = [s for handler in statement.handlers for s in handler.body]
                found.update(self._names([*statement.body, *handlers, *statement.orelse], package))
        return found

    def _imported(self, statement: ast.ImportFrom, package: Path) -> Functions:
        """Names that a `from` import brings in; only modules of the same tree are followed."""
        origin: Functions = {}
        if statement.level:
            base = package
            for _ in range(statement.level - 1):
                base = base.parent
            if statement.module:
                where = base / statement.module.replace(".", "/")
                origin = self._module(where) or {}
                if any(name.name == "*" for name in statement.names) and where in self._exported:
                    origin = {name: origin.get(name) for name in self._exported[where]}
        found: Functions = {}
        for name in statement.names:
            if name.name == "*":
                found.update({n: p for n, p in origin.items() if not n.startswith("_")})
            else:
                found[name.asname or name.name] = origin.get(name.name)
        return found


def numpy_function(name: str) -> object | None:
    """The object `numpy.a.b` of a dotted name without its first part, or None."""
    value: object = importlib.import_module("numpy")
    for part in name.split("."):
        value = getattr(value, part, None)
        if value is None:
            return None
    return value


def numpy_names() -> list[str]:
    """`numpy.x` for every public name of numpy."""
    return [f"numpy.{name}" for name in dir(importlib.import_module("numpy")) if not name.startswith("_")]


def numpy_parameters(function: object) -> Parameters | None:
    """Parameters of a numpy function; None when numpy does not tell."""
    number_of_inputs = getattr(function, "nin", None)
    if isinstance(number_of_inputs, int):
        names = tuple(f"x{i + 1}" for i in range(number_of_inputs))
        return Parameters(names, number_of_inputs, False, (), (), True)
    if not callable(function):
        return None
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return None
    kinds = inspect.Parameter
    positional = [
        p for p in signature.parameters.values() if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
    ]
    keyword = [p for p in signature.parameters.values() if p.kind is kinds.KEYWORD_ONLY]
    return Parameters(
        tuple(p.name for p in positional),
        sum(p.default is kinds.empty for p in positional),
        any(p.kind is kinds.VAR_POSITIONAL for p in signature.parameters.values()),
        tuple(p.name for p in keyword),
        tuple(p.name for p in keyword if p.default is kinds.empty),
        any(p.kind is kinds.VAR_KEYWORD for p in signature.parameters.values()),
    )
