"""Bindings of operators to aclnn functions, without a device: prototypes against the headers' facts, and every call of every wrapper against its prototype."""

from __future__ import annotations

import importlib
import json
import numbers
import random
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from strategies import Picker, draw_case, read_rows

import mindtorch_v2 as torch
from mindtorch_v2._backends.npu import precision
from mindtorch_v2._dispatch.convert import convert
from mindtorch_v2._generated.npu import FAMILIES, functions
from mindtorch_v2._payload import MetaPayload
from mindtorch_v2._pending import settled
from mindtorch_v2._rules.spec import Spec

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FACTS = json.loads((HERE / "data/aclnn_prototypes.json").read_text(encoding="utf-8"))
SCHEMA = yaml.safe_load((ROOT / "schema/aclnn.yaml").read_text(encoding="utf-8"))
ROWS = {row.name: row for row in read_rows()}
MODULES = {
    family: importlib.import_module(f"mindtorch_v2._generated.npu.{family}") for family in set(FAMILIES.values())
}
WRAPPED = sorted(name for name, family in FAMILIES.items() if name in MODULES[family].KERNELS)

KIND_OF = {
    "aclTensor*": "tensor", "aclTensorList*": "tensors", "aclScalar*": "scalar", "aclScalarList*": "scalars", "aclIntArray*": "ints",
    "aclBoolArray*": "bools", "aclFloatArray*": "floats", "bool": "bool", "float": "single", "double": "float", "char*": "text", "aclDataType": "dtype",
    "int64_t": "int", "int32_t": "int", "uint64_t": "uint", "int8_t": "int", "int": "int",
}  # fmt: skip


def plain(ctype: str) -> str:
    return re.sub(r"\bconst\b", "", ctype).replace(" ", "")


# Prototypes


def test_the_schema_has_the_headers_prototypes() -> None:
    assert SCHEMA.keys() <= FACTS.keys()
    for name in SCHEMA:
        facts = FACTS[name]
        found = [[ctype, argument] for ctype, argument, _ in SCHEMA[name]]
        assert found == facts, name


def test_functions_pass_their_parameters_by_c_type() -> None:
    for name in SCHEMA:
        facts = FACTS[name]
        assert getattr(functions, name).kinds == tuple(KIND_OF[plain(ctype)] for ctype, _ in facts), name


def test_declarations_have_the_c_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cffi converts to: `float` is no `double`, `int` no `int64_t`, a text is a `char *`."""
    monkeypatch.syspath_prepend(str(ROOT))
    from codegen.aclnn import cdef
    from codegen.schema import read_schema

    schema, problems = read_schema(ROOT)
    assert problems == []
    declared = dict(re.findall(r"^aclnnStatus (\w+)\((.*)\);$", cdef(schema), re.MULTILINE))
    for name in SCHEMA:
        facts = FACTS[name]
        first = [plain(ctype) for ctype, _ in facts] + ["uint64_t*", "aclOpExecutor**"]
        assert [plain(t) for t in declared[f"{name}GetWorkspaceSize"].split(",")] == first, name
        assert declared[name] == "void*, uint64_t, aclOpExecutor*, aclrtStream", name


# Calls

DRAWS = 40


def check(name: str, kind: str, value: Any) -> bool:
    """Whether a value can be passed for a kind of C parameter."""
    number = isinstance(value, numbers.Number)
    if kind == "tensor":
        return value is None or isinstance(value, MetaPayload) or number
    if kind == "tensors":
        return isinstance(value, (list, tuple)) and all(isinstance(v, MetaPayload) for v in value)
    if kind == "scalar":
        return number or value is None
    if kind == "ints":
        return value is None or isinstance(value, int) or all(isinstance(v, int) for v in value)
    if kind == "bools":
        return value is None or all(isinstance(v, bool) for v in value)
    if kind in ("int", "uint"):
        return isinstance(value, int)
    if kind == "bool":
        return isinstance(value, bool)
    if kind in ("float", "single"):  # None is passed as 0
        return value is None or isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "text":
        return isinstance(value, str)
    if kind == "dtype":
        return isinstance(value, torch.dtype)
    raise AssertionError(f"{name}: no check for {kind}")


class _Results(list):
    """Stands for what kernels fill in."""

    specs: list[Any]


def calls_of(name: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple]:
    """(function, arguments) of the wrapper of an operator, for valid arguments that its strategy draws."""
    from test_properties import OPERATORS

    op, row = OPERATORS[name], ROWS[name]
    module = MODULES[FAMILIES[name]]
    made: list[tuple] = []
    monkeypatch.setattr(module, "launch", lambda function, *args: made.append((function, args)))
    monkeypatch.setattr(precision, "soc_name", lambda: "Ascend910B1")
    monkeypatch.setattr(module, "start", lambda result, source: result, raising=False)
    source = random.Random(f"bindings of {name}")
    for _ in range(DRAWS):
        case = draw_case(Picker(source.randint, valid=True), row)
        positional, keywords = case.build(torch, "meta")
        given = dict(zip([p.name for p in op.params], positional)) | keywords
        try:
            args = convert(op, tuple(given.get(p.name, p.default) for p in op.params))
            spec = op.meta(*args)
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
            continue  # the strategy's valid arguments may still not fit each other
        specs = [spec] if spec.__class__ is Spec else list(spec)
        out = _Results(
            None if s is None else settled(torch.empty_strided(s.shape, s.strides(), dtype=s.dtype, device="meta"))
            for s in specs
        )
        out.specs = specs
        payloads = [
            [settled(t) if isinstance(t, torch.Tensor) else t for t in a]
            if isinstance(a, list)
            else settled(a)
            if isinstance(a, torch.Tensor)
            else a
            for a in args
        ]
        module.KERNELS[name](out, *payloads)
    return made


@pytest.mark.parametrize("name", WRAPPED)
def test_every_call_fits_its_prototype(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = calls_of(name, monkeypatch)
    assert made, f"{name}: no valid arguments were drawn"
    for function, args in made:
        facts = FACTS[function.name]
        assert len(args) == len(facts), f"{name}: {function.name} takes {len(facts)} arguments, {len(args)} given"
        for (ctype, argument), value in zip(facts, args, strict=True):
            assert check(name, KIND_OF[plain(ctype)], value), (
                f"{name}: {function.name}: {ctype} {argument} given {value!r}"
            )


def test_numbers_take_the_scalar_function(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {function.name for function, _ in calls_of("add.Tensor", monkeypatch)}
    assert "aclnnAdd" in found
    module = MODULES["pointwise"]
    made: list = []
    monkeypatch.setattr(module, "launch", lambda function, *args: made.append((function.name, args[1])))
    tensor = settled(torch.empty(3, device="meta"))
    module.KERNELS["add.Tensor"]([tensor], tensor, 2.5, 1)
    module.KERNELS["add.Tensor"]([tensor], tensor, tensor, 1)
    assert made == [("aclnnAdds", 2.5), ("aclnnAdd", tensor)]


def test_every_prototype_is_used() -> None:
    texts = [*(ROOT / "schema/ops").glob("*.yaml"), *(ROOT / "src/mindtorch_v2/_backends/npu").rglob("*.py")]
    used = set(re.findall(r"aclnn[A-Z]\w*", "\n".join(path.read_text(encoding="utf-8") for path in texts)))
    assert set(SCHEMA) <= used, sorted(set(SCHEMA) - used)
