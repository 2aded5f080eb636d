"""What a rule says of one operator and one geometry of its arguments, as a plan that holds for every such call.

Note [What a plan may depend on]
A rule is shown geometries: tensors that have dtype, shape and strides, but neither elements nor a storage. A rule that asks for more fails
on them, and its calls are not planned. Numbers count with their value; where they are operands of a pointwise operator, with their kind and
the range they lie in, since rules refuse what a dtype cannot hold. The default dtype is all that rules read beside their arguments:
`_state.forget_rules` is called when it changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from .. import _payload
from .._layout import strided
from .._rules.spec import Spec, ViewSpec, contiguous_strides
from .._state import TLS
from .._tensor import Tensor, wrap
from .native import blocked
from .operator import Operator
from .return_types import return_type

ONE, SEVERAL, UNKNOWN_SHAPE, VIEW, VIEWS, RESHAPED = range(6)  # as plan.h has them


class Geometry(_payload.Shaped):
    """A payload of which only the geometry is known."""

    __slots__ = ("shape", "stride", "dtype", "device")

    def __init__(self, payload: Any, dtype: Any):
        self.shape = payload.shape
        self.stride = _payload.stride_of(payload)
        self.dtype = dtype
        self.device = _payload.device_of(payload)


def _shown(value: Any) -> Any:
    if isinstance(value, Tensor):
        return wrap(Geometry(value._payload, value._dtype), value._dtype)
    if value.__class__ is list:
        return [_shown(item) for item in value]
    return value


def specs_of(op: Operator, args: tuple) -> Any:
    """What the rule says of arguments of this geometry; None where it refuses them, or wants to know more of them.

    A refusal is left to the general path, which raises it.
    """
    return _specs(op, [_shown(value) for value in args])


def _specs(op: Operator, shown: list) -> Any:
    if op.layout_at is not None and shown[op.layout_at] not in (None, strided):
        return None
    try:
        return op.meta(*shown)
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
        return None


def _asked(op: Operator, args: tuple) -> tuple[Any, tuple[int, ...]]:
    """`specs_of`, and the numbers of the arguments that must not require grad."""
    shown = [_shown(value) for value in args]
    outer, TLS.undifferentiable = TLS.undifferentiable, []
    try:
        specs = _specs(op, shown)
        asked = TLS.undifferentiable
    finally:
        TLS.undifferentiable = outer
    return specs, tuple(i for i, value in enumerate(shown) if value is not None and any(value is one for one in asked))


def _result(spec: Any) -> tuple | None:
    if spec is None:
        return None
    kind = spec.dtype.np
    if spec.shape is None:
        return (None, spec.stride, spec.dtype, kind, 0)
    shape = tuple(map(int, spec.shape))
    stride = contiguous_strides(shape) if spec.stride is None else tuple(map(int, spec.stride))
    return (shape, stride, spec.dtype, kind, 0)


def _view(spec: ViewSpec, source: ndarray, kind: Any) -> tuple:
    kind, dtype = (kind, source.dtype) if spec.dtype is None else (spec.dtype, spec.dtype.np)
    return (tuple(map(int, spec.shape)), tuple(map(int, spec.stride)), kind, dtype, int(spec.offset))


def learn(op: Operator, args: tuple, meta: bool = False) -> tuple | None:
    """The plan of a call as the extension takes it, or None: how, dtype of the computation, kernel, whether that takes `out`, the operator's loops,
    whether a half type is computed in another, class and kind of several results, (shape, stride, dtype, numpy's dtype, offset) of each, and the numbers of
    the arguments that must not require grad."""
    specs, constants = _asked(op, args)
    if specs is None:
        return None
    if meta:
        return None if constants else _learn_meta(op, specs)
    if op.is_view:
        return _learn_view(op, specs, args)
    listed = specs.__class__ is list
    several = specs.__class__ is not Spec
    each = list(specs) if several else [specs]
    present = [spec for spec in each if spec is not None]
    if any(spec.dtype.np is None for spec in present):
        return None
    if several and (
        any(spec.shape is None and spec.stride not in (None, ()) for spec in present) or op.mutates is not None
    ):
        return None
    compute = next((spec.compute for spec in present), None)
    if compute is not None and compute.np is None:
        return None
    how = SEVERAL if several else UNKNOWN_SHAPE if specs.shape is None else ONE
    if how == UNKNOWN_SHAPE and specs.stride not in (None, ()):
        return None
    first = present[0]
    half = (
        compute is not None and compute is not first.dtype and first.dtype.category > 1 and not first.dtype.is_complex
    )
    cls = tuple if listed or not several else return_type(op, [None] * len(each)).__class__
    return (
        how,
        None if compute is None else compute.np,
        op.kernels["cpu"],
        op.takes_out["cpu"],
        blocked(op) if op.block else None,
        half,
        cls,
        listed,
        tuple(_result(spec) for spec in each),
        constants,
    )


def _learn_meta(op: Operator, specs: Any) -> tuple | None:
    """A plan on the meta device: how, class of several results, and (shape, stride, dtype, bytes of the storage) of each; of a view its offset for the
    last."""
    if op.is_view:
        if specs.__class__ is not ViewSpec or specs.dtype is not None or "detach" in op.tags:
            return None
        return (VIEW, tuple, ((tuple(map(int, specs.shape)), tuple(map(int, specs.stride)), None, int(specs.offset)),))
    if specs.__class__ is Spec:
        return None if specs.shape is None else (ONE, tuple, (_empty(specs),))
    each = list(specs)
    if any(spec is not None and spec.shape is None for spec in each):
        return None
    cls = tuple if specs.__class__ is list else return_type(op, [None] * len(each)).__class__
    return (SEVERAL, cls, tuple(None if spec is None else _empty(spec) for spec in each))


def _empty(spec: Spec) -> tuple:
    shape = tuple(map(int, spec.shape or ()))
    stride = contiguous_strides(shape) if spec.stride is None else tuple(map(int, spec.stride))
    return (shape, stride, spec.dtype, _payload.extent(shape, stride) * spec.dtype.itemsize)


def _learn_view(op: Operator, specs: Any, args: tuple) -> tuple | None:
    source = args[0]
    data = source._payload
    if "detach" in op.tags:
        return None
    if specs.__class__ is ViewSpec:
        if specs.dtype is not None and specs.dtype.np is None:
            return None
        how, results = VIEW, (_view(specs, data, source._dtype),)
    elif specs.__class__ is Spec:
        how, results = RESHAPED, (_result(specs),)
    else:
        how, results = VIEWS, tuple(_view(one, data, source._dtype) for one in specs)
    return (how, None, None, False, None, False, tuple, True, results, ())


def quiet_errors() -> tuple[Any, Any]:
    """numpy's context variable of floating-point warnings, and its value when there are none."""
    from numpy._core.umath import _extobj_contextvar

    with np.errstate(all="ignore"):
        return _extobj_contextvar, _extobj_contextvar.get()
