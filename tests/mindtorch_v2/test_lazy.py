"""What is imported on first use: the tables of names agree with what the modules have, and importing stays light."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import mindtorch_v2
from mindtorch_v2._api import methods as _methods
from mindtorch_v2._dispatch.lazy import LazyMethod


@pytest.mark.parametrize("module", sorted(_methods.METHODS))
def test_members_are_named_where_they_are_attached(module: str) -> None:
    members = importlib.import_module(f"mindtorch_v2._api.methods.{module}").MEMBERS
    properties = {name for name, member in members.items() if isinstance(member, property)}
    assert set(_methods.METHODS[module].split()) == set(members) - properties
    assert set(_methods.PROPERTIES.get(module, "").split()) == properties


@pytest.mark.parametrize("module", sorted(mindtorch_v2._BY_MODULE))
def test_public_names_are_there(module: str) -> None:
    loaded = importlib.import_module(f"mindtorch_v2.{module}")
    for name in mindtorch_v2._BY_MODULE[module].split():
        assert hasattr(loaded, name), name


@pytest.mark.parametrize("module", ["queries", "sugar"])
def test_every_public_function_of_these_modules_is_published(module: str) -> None:
    loaded = importlib.import_module(f"mindtorch_v2._api.functions.{module}")
    own = {
        n
        for n, v in vars(loaded).items()
        if getattr(v, "__module__", None) == loaded.__name__ and not n.startswith("_")
    }
    published = mindtorch_v2._BY_MODULE[f"_api.functions.{module}"].split()
    assert own == {name for name in published if not name.startswith("_")}


def test_every_operator_and_submodule_can_be_looked_up() -> None:
    for name in dir(mindtorch_v2):
        assert getattr(mindtorch_v2, name) is not None or name == "newaxis", name


def test_unknown_names_are_attribute_errors() -> None:
    for name in ("no_such_function", "NoSuchTensor", "NoSuchStorage", "_OPERATORZ"):
        with pytest.raises(AttributeError, match=name):
            getattr(mindtorch_v2, name)


def test_a_lazy_property_can_be_set_before_it_is_read() -> None:
    code = (
        "import mindtorch_v2 as t; x = t.Tensor.__new__(t.Tensor); x = t.tensor([1.0]); x.requires_grad = True; "
        "assert x.requires_grad; x.grad = t.tensor([2.0]); del x.grad; assert x.grad is None"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_members_replace_their_stand_ins_together() -> None:
    assert mindtorch_v2.ones(2).add(1).tolist() == [2.0, 2.0]
    assert not isinstance(vars(mindtorch_v2.Tensor)["mul"], LazyMethod)


def test_importing_leaves_operators_and_modules_alone() -> None:
    code = (
        "import sys, mindtorch_v2; "
        "print([n for n in sys.modules if n.startswith(('mindtorch_v2.nn', 'mindtorch_v2._generated.tables.', 'numpy.random', 'scipy'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_members_of_one_module_leave_those_of_another_alone() -> None:
    """`Tensor.nonzero` is written by hand; the first use of another method of its family must not bring the generated one."""
    code = (
        "import mindtorch_v2 as t; x = t.tensor([0, 2]); x.masked_fill(x > 1, 0); "
        "assert x.nonzero(as_tuple=True)[0].tolist() == [1]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
