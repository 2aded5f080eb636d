"""What a package of operators adds to the library's tables by operator: functions, batches, costs, and kernels on NPUs."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from ._dispatch.operator import Operator


def take(generated: Any, operators: dict[str, list[Operator]]) -> None:
    """Add the tables of a package's generated modules, whose operators are given by name."""
    for family in generated.table("tables").FAMILIES:
        importlib.import_module(f"{generated.__name__}.functions._{family}")  # which gives operators their functions
    batches = generated.table("vmap")
    rules = importlib.import_module("mindtorch_v2.func.rules")
    rules.RULES.update(batches.RULES)
    rules.KINDS.update(batches.KINDS)
    rules.operators_by_name().update({name: tuple(overloads) for name, overloads in operators.items()})
    importlib.import_module("mindtorch_v2._generated.flops").FORMULAS.update(generated.table("flops").FORMULAS)
    if importlib.util.find_spec(f"{generated.__name__}.npu") is not None:
        own, known = generated.table("npu"), importlib.import_module("mindtorch_v2._generated.npu")
        known.FAMILIES.update({name: f"{generated.__name__}.npu.{family}" for name, family in own.FAMILIES.items()})
        for name, word in getattr(own, "FALLBACKS", {}).items():  # which are there where an entry says why
            known.FALLBACKS[name], known.REASONS[word] = word, own.REASONS[word]
