"""The code of one TorchScript file: classes and functions by their dotted names, read from its records when they are first asked for."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

from .errors import at
from .functions import Function
from .kinds import Kind, kind_of
from .module import ScriptModule
from .objects import Instance, Member, Named, ScriptClass
from .source import declared, literal, name_of, parsed

_FLAVOURS = {
    "Module": "module",
    "NamedTuple": "tuple",
    "Enum": "enum",
    "Interface": "interface",
    "ModuleInterface": "interface",
}


class Library:
    """Classes, functions and constants of a file.

    texts: the content of the records of code by their names (`code/__torch__/a.py`). constants: the values of `constants.pkl`.
    version: that of the operators' signatures, as the file says it.
    """

    module_class = ScriptModule
    function_class = Function

    def __init__(self, texts: Mapping[str, bytes], constants: tuple = (), version: int = 10):
        self.texts = texts
        self.constants = constants
        self.version = version
        self._files: dict[str, dict[str, ScriptClass | Function]] = {}
        self._lines: dict[str, list[str]] = {}

    def constant(self, number: int) -> Any:
        """A constant of the file. IndexError where there is none."""
        return self.constants[number]

    def _named(self, name: str) -> ScriptClass | Function | None:
        module, _, own = name.rpartition(".")
        path = f"code/{module.replace('.', '/')}.py"
        if not module or path not in self.texts:
            return None
        if path not in self._files:
            self._files[path] = self._read(path, module)
        return self._files[path].get(own)

    def found(self, name: str) -> Function | None:
        """The function of a dotted name, or None."""
        found = self._named(name)
        return found if isinstance(found, Function) else None

    def class_of(self, name: str) -> ScriptClass | None:
        """The class of a dotted name, or None."""
        found = self._named(name)
        return found if isinstance(found, ScriptClass) else None

    def method(self, owner: Any, name: str) -> Function:
        """The method of an object of the file. TypeError for any other object, AttributeError where it has none of this name."""
        if not isinstance(owner, (ScriptModule, Instance, Named)):
            raise TypeError(f"a {type(owner).__name__} has no method {name}")
        cls = owner._script_class
        try:
            return cls.methods[name]
        except KeyError:
            raise AttributeError(f"{cls.name} has no method {name}") from None

    def line(self, path: str, number: int) -> str:
        """A line of the code."""
        if path not in self._lines:
            self._lines[path] = self.texts[path].decode("utf-8", "replace").splitlines()
        lines = self._lines[path]
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""

    def text(self, function: Function) -> str:
        """The source of a function."""
        self.line(function.path, 1)
        node = function.node
        return textwrap.dedent("\n".join(self._lines[function.path][node.lineno - 1 : node.end_lineno])) + "\n"

    # reading

    def _read(self, path: str, module: str) -> dict[str, ScriptClass | Function]:
        found: dict[str, ScriptClass | Function] = {}
        for node in declared(path, parsed(path, self.texts[path])):
            if isinstance(node, ast.FunctionDef):
                found[name_of(node.name)] = Function(self, path, module, node)
            else:
                found[node.name] = self._class(path, f"{module}.{node.name}", node)
        return found

    def _class(self, path: str, name: str, node: ast.ClassDef) -> ScriptClass:
        bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
        if len(bases) != len(node.bases) or len(bases) > 1 or node.keywords or node.decorator_list:
            raise at(path, node.lineno, f"the class {node.name} is of a form that TorchScript has not")
        flavour = _FLAVOURS.get(bases[0]) if bases else "class"
        if flavour is None:
            raise at(path, node.lineno, f"the class {node.name} has an unknown base {bases[0]}")
        cls = ScriptClass(name, flavour)
        cls.kind_of_field = self._field_reader(path, cls)
        for part in node.body:
            try:
                self._member(path, cls, part)
            except ValueError as error:
                raise at(path, part.lineno, f"{node.name}: {error}") from None
        return cls

    def _field_reader(self, path: str, cls: ScriptClass) -> Callable[[str], Kind | None]:
        known: dict[str, Kind | None] = {}

        def kind_of_field(name: str) -> Kind | None:
            if name not in known:
                node = cls.fields.get(name)
                try:
                    known[name] = None if node is None else kind_of(node, self.class_of)
                except ValueError as error:
                    raise at(path, getattr(node, "lineno", 0), str(error)) from None
            return known[name]

        return kind_of_field

    def _member(self, path: str, cls: ScriptClass, node: ast.stmt) -> None:
        if isinstance(node, ast.FunctionDef):
            function = Function(self, path, cls.name, node, method=True)
            cls.methods[function.name] = function
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = name_of(node.target.id)
            cls.fields[name] = node.annotation
            if node.value is not None:
                (cls.defaults if cls.flavour == "tuple" else cls.constants)[name] = literal(node.value)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            self._assigned(path, cls, node.targets[0], node.value)
        elif not isinstance(node, ast.Pass) and not (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            raise ValueError(f"{type(node).__name__} cannot stand in a class")

    def _assigned(self, path: str, cls: ScriptClass, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            name = literal(target.slice)
            if target.value.id != "__annotations__" or not isinstance(name, str):
                raise ValueError("only annotations are set by name")
            cls.fields[name] = value
            return
        if not isinstance(target, ast.Name):
            raise ValueError("no name is assigned to")
        content = literal(value)
        if cls.flavour == "enum":
            cls.members[target.id] = Member(cls, target.id, content)
        elif target.id in ("__parameters__", "__buffers__", "__forward_hooks__", "__forward_pre_hooks__"):
            if not isinstance(content, list) or not all(isinstance(one, str) for one in content):
                raise ValueError(f"{target.id} is no list of names")
            if target.id == "__parameters__":
                cls.parameters = content
            elif target.id == "__buffers__":
                cls.buffers = content
            else:
                cls.hooks[target.id == "__forward_hooks__"].extend(content)

    def check(self) -> None:
        """Read all files of code. ScriptError where one is no TorchScript."""
        for path in self.texts:
            self._named(path.removeprefix("code/").removesuffix(".py").replace("/", ".") + ".")
