"""What type checkers read says what the classes have."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _generated
from mindtorch_v2._api import methods as _methods
from mindtorch_v2._generated import functions, methods

MEMBERS_STUB = Path(_methods.__path__[0]) / "members.pyi"
OPERATORS_STUB = Path(_generated.__path__[0]) / "tensor.pyi"


def _stub_of(path: Path, name: str) -> dict[str, ast.stmt]:
    """What the body of a class in a stub defines, by name."""
    (body,) = (s.body for s in ast.parse(path.read_text()).body if isinstance(s, ast.ClassDef) and s.name == name)
    found: dict[str, ast.stmt] = {}
    for statement in body:
        if isinstance(statement, ast.FunctionDef):
            found[statement.name] = statement
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            found[statement.target.id] = statement
    return found


def _attached() -> dict[str, Any]:
    """What the modules of `_api/methods` attach to Tensor."""
    found: dict[str, Any] = {}
    for module in _methods.METHODS:
        table = importlib.import_module(f"{_methods.__name__}.{module}").MEMBERS
        assert not found.keys() & table.keys(), f"{module} attaches what another module does"
        found.update(table)
    return found


METHODS = {name: value for name, value in _attached().items() if inspect.isfunction(value)}


def test_members_of_the_stub_are_the_attached_ones() -> None:
    assert sorted(_stub_of(MEMBERS_STUB, "TensorMembers")) == sorted(_attached())


@pytest.mark.parametrize("name", METHODS)
def test_methods_take_the_parameters_of_the_stub(name: str) -> None:
    definition = _stub_of(MEMBERS_STUB, "TensorMembers")[name]
    assert isinstance(definition, ast.FunctionDef)
    written = definition.args
    parameters = inspect.signature(METHODS[name]).parameters.values()
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    own = [p.name for p in parameters if p.kind not in several]
    assert [a.arg for a in (*written.args, *written.kwonlyargs)][1:] == own[1:]


def test_operators_of_the_stub_are_the_generated_ones() -> None:
    names = [name for family in methods.NAMES.values() for name in family.split()]
    assert sorted(_stub_of(OPERATORS_STUB, "TensorOperators")) == sorted(names)


FUNCTIONS_STUB = Path(_generated.__path__[0]) / "functions/__init__.pyi"


def test_functions_take_the_parameters_of_the_stub() -> None:
    definitions: dict[str, list[ast.FunctionDef]] = {}
    for statement in ast.parse(FUNCTIONS_STUB.read_text()).body:
        if isinstance(statement, ast.FunctionDef):
            definitions.setdefault(statement.name, []).append(statement)
    assert len(definitions) > 500
    for name, overloads in definitions.items():
        function = getattr(functions, name)
        real = inspect.signature(getattr(function, "__wrapped__", function)).parameters.values()
        if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in real):
            continue  # bound by the operators' records
        (written,) = (d.args for d in overloads)
        own = [p.name for p in real if p.kind is not inspect.Parameter.VAR_KEYWORD]
        assert [a.arg for a in (*written.args, *written.kwonlyargs)] == own, name
        required = [p.name for p in real if p.default is inspect.Parameter.empty]
        assert required == [*_required(written), *(["spellings"] if written.kwarg else [])], name


def _required(arguments: ast.arguments) -> list[str]:
    """Parameters without a default."""
    positional = arguments.args[: len(arguments.args) - len(arguments.defaults)]
    keyword = [a for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is None]
    return [a.arg for a in (*positional, *keyword)]


def test_results_have_the_names_of_the_stub() -> None:
    x = torch.tensor([[3.0, 1.0], [2.0, 4.0]])
    for result, name in ((x.max(0), "_max_values_indices"), (x.sort(1), "_sort_values_indices")):
        for attribute in _stub_of(OPERATORS_STUB, name):
            assert getattr(result, attribute) is result[name.split("_")[2:].index(attribute)]
