"""Operators on the meta device: what their rule says is the result."""

from __future__ import annotations

from typing import Any

from ..._dispatch.operator import Operator
from ..._rules.spec import Spec
from .creation import empty


def run(op: Operator, spec: Any, args: tuple, where: Any) -> Any:
    """Payloads of the spec's geometry. NotImplementedError when the data would decide the shape."""
    if spec.__class__ is Spec:
        return _one(op, spec)
    return [None if s is None else _one(op, s) for s in spec]


def _one(op: Operator, spec: Spec) -> Any:
    if spec.shape is None:
        raise NotImplementedError(
            f"aten::{op.full_name}: the shape of the result depends on the data, which tensors on the meta device do "
            "not have"
        )
    return empty(tuple(spec.shape), spec.stride, spec.dtype)


def run_into(op: Operator, spec: Spec, args: tuple, target: Any, where: Any) -> None:
    """Nothing is written: the rule has validated the call."""
