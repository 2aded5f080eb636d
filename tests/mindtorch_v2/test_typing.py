"""What type checkers read says what the classes have."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path
from typing import Any

import pytest

from mindtorch_v2 import _generated, _methods
from mindtorch_v2._generated import methods

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
    """What the modules of `_methods` attach to Tensor."""
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
