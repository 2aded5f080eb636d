"""The dispatch key of sparse tensors: which layout decides about a call, and how its kernel runs.

It is asked in the dispatcher before composites that have sparse kernels are taken apart, and before rules are read, and only once there is a sparse tensor at all (`_state.SPARSE`), an
operator that makes one of dense tensors, or a factory that is asked for a sparse layout. Plans and short cuts never see sparse tensors: they take plain payloads alone.

Kernels (`_backends/cpu/sparse/`) get tensors and give tensors. They run with nothing recorded, neither for derivatives nor by a pipeline, and may call operators
of the members; the operator's own derivative is recorded for what they give.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from .._above import module_above
from .._layout import strided
from .._pending import exposed, settled
from .._rules.promotion import can_cast
from .._sparse_payload import CooPayload, CscPayload, CsrPayload, SparsePayload
from .._state import SPARSE, TLS
from .._tensor import Tensor, bump_version, wrap
from . import operator
from .below import needs_grad
from .operator import Operator, takes_out
from .return_types import return_type

# Set by the autograd floor, which stands above this one.
autograd: Any = None

_KEYS = {CooPayload: "coo", CsrPayload: "csr", CscPayload: "csc"}
_BACKENDS = {"coo": "SparseCPU", "csr": "SparseCsrCPU", "csc": "SparseCsrCPU", "strided": "CPU"}
_REQUESTED = {kind.layout: key for kind, key in _KEYS.items()}


def tensors_of(op: Operator, args: tuple) -> list[Tensor]:
    """The tensors among the arguments, those of lists too."""
    found: list[Tensor] = []
    for index in op.tensors:
        value = args[index]
        for item in value if value.__class__ in (list, tuple) else (value,):
            if isinstance(item, Tensor):
                found.append(item)
    return found


def layout_of(op: Operator, args: tuple, out: Any = None) -> str | None:
    """The layout that decides about a call; None for dense tensors, which are the dispatcher's."""
    found = None
    if op.factory and op.layout_at is not None:
        asked = args[op.layout_at]
        if asked is not None and asked is not strided:
            return _requested(op, asked)
    for tensor in tensors_of(op, args):
        key = _KEYS.get(tensor._payload.__class__)
        if key == "csr" or key == "csc":
            return key
        found = found or key
    if found is None and isinstance(out, Tensor):
        found = _KEYS.get(out._payload.__class__)
    if found is None and op.meta is None and op.composite is None and op.sparse is not None:
        return "strided"
    return found


def find(op: Operator, args: tuple, out: Any = None, inplace: bool = False) -> Callable | None:
    """The kernel that computes a call; None where the dispatcher does, for dense tensors and composites. NotImplementedError where nothing does."""
    layout = layout_of(op, args, out)
    return None if layout is None else kernel_of(op, layout, inplace)


def refuse_tangents(op: Operator, args: tuple, out: Any = None) -> None:
    """NotImplementedError for a call of sparse tensors, or one that makes them, with a tangent of forward-mode derivatives."""
    tangents = TLS.tangents
    if tangents.paused or not tangents.enabled or "detach" in op.tags:
        return
    if any(tangents.of(t) is not None for t in tensors_of(op, args)) and layout_of(op, args, out) is not None:
        raise NotImplementedError(
            f"Trying to use forward AD with {op.label} that does not support it because it has not been implemented yet: it has no "
            "forward-mode derivative for sparse tensors"
        )


def _requested(op: Operator, asked: Any) -> str:
    key = _REQUESTED.get(asked)
    if key is None:
        raise NotImplementedError(
            f"{op.name}(): tensors of the layout {asked} are not there; sparse_coo, sparse_csr and sparse_csc are"
        )
    return key


def kernel_of(op: Operator, layout: str, inplace: bool = False) -> Callable | None:
    """The kernel of a layout; None for a composite without one, which is made of other operators. NotImplementedError without any."""
    name = None if op.sparse is None else op.sparse.get(layout)
    if name is None:
        if op.composite is not None:
            return None
        refuse(op, layout, inplace)
    if callable(name):
        return name
    if name == "values":
        function = module_above("backends", "cpu.sparse.pointwise").of_values(op)
    else:
        module, _, function = name.rpartition(".")
        function = getattr(module_above("backends", f"cpu.sparse.{module}"), function)
    op.sparse[layout] = function  # type: ignore[index]
    return function


def _with_sparse(op: Operator, function: Callable) -> Callable:
    """A composite's function, and in its place the kernel of sparse arguments."""

    def composite(*args: Any) -> Any:
        if SPARSE:
            kernel = find(op, args)
            if kernel is not None:
                return run(op, kernel, args, None)
        return function(*args)

    return composite


operator.with_sparse = _with_sparse


def refuse(op: Operator, layout: str, inplace: bool = False) -> NoReturn:
    """The error of an operator that has no kernel of a layout."""
    if op.missing is not None:
        raise NotImplementedError(f"{op.full_name} is not implemented: {op.missing}")
    name = f"{op.name}_.{op.overload}".rstrip(".") if inplace and not op.is_inplace else op.full_name
    raise unavailable(name, layout)


def unavailable(name: str, layout: str) -> NotImplementedError:
    """The error of what is not there for a layout: `coo`, `csr`, `csc` or `strided`."""
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the '{_BACKENDS[layout]}' backend. This could be because the operator "
        "doesn't exist for this backend, or was omitted: the schema has no kernel for it"
    )


def _run(kernel: Callable, op: Operator, args: tuple, target: Tensor | None = None) -> Any:
    """What a kernel gives, with nothing recorded; `target`: its first argument, which it may write to."""
    recorder, enabled = TLS.pipeline, TLS.grad_enabled
    if recorder is not None:
        for tensor in tensors_of(op, args):
            settled(tensor)
    TLS.pipeline, TLS.grad_enabled = None, False
    try:
        return kernel(*args) if target is None else kernel(*args, out=target)
    finally:
        TLS.pipeline, TLS.grad_enabled = recorder, enabled


def run(op: Operator, kernel: Callable, args: tuple, out: Any) -> Any:
    """The functional or `out=` form of an operator."""
    if out is not None:
        return _run_out(op, kernel, args, out)
    result = _run(kernel, op, args)
    if result.__class__ is tuple:
        result = return_type(op, list(result)) if len(op.returns) > 1 else result
    elif not isinstance(result, Tensor):
        return result
    elif any(result is tensor for tensor in tensors_of(op, args)):
        result = wrap(result._payload, result._dtype)
    if TLS.inference:
        for tensor in result if isinstance(result, tuple) else (result,):
            tensor._inference = True
    if "detach" in op.tags:
        result._shares = args[0]
        return result
    return result if op.record is None or not TLS.grad_enabled else op.record(result, *args)


def _run_out(op: Operator, kernel: Callable, args: tuple, out: Any) -> Any:
    if not isinstance(out, Tensor):
        raise TypeError(f"{op.name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if TLS.grad_enabled and any(needs_grad(a) for a in (out, *args)):
        raise RuntimeError(
            f"{op.name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
            "requires grad."
        )
    assign(op, out, _run(kernel, op, args))
    bump_version(out)
    return out


def assign(op: Operator, target: Tensor, result: Tensor) -> None:
    """Give a tensor the elements of a result: other members where both are sparse, else copied. RuntimeError where the layouts differ."""
    data, given = target._payload, result._payload
    if isinstance(data, SparsePayload) and data.__class__ is given.__class__:
        made = given if given.dtype is data.dtype else given.like(given.values.to(data.dtype))
        target._payload = made
    elif isinstance(data, SparsePayload) or isinstance(given, SparsePayload):
        raise RuntimeError(
            f"{op.name}: expected the result to have the layout {result.layout}, but got an out tensor of the layout {target.layout}"
        )
    else:
        if data.shape != given.shape:
            target.resize_(given.shape)
        target.copy_(result)


def run_inplace(op: Operator, kernel: Callable, args: tuple) -> Tensor:
    """The in-place form of an operator, recorded."""
    target = args[0]
    recorded = TLS.grad_enabled and autograd.may_write(op, args)
    before = args
    if recorded and op.saves_self:
        kept = target.detach().clone()
        kept._node = target._node
        if target._nr:
            kept._nr = target._nr
        before = (kept, *args[1:])
    if TLS.pipeline is not None and (op.is_inplace or takes_out(kernel)):
        exposed(target)  # the kernel writes now: what is recorded and reads the elements of before comes first
    if op.is_inplace:
        _run(kernel, op, args)
    else:
        result = _run(kernel, op, args, target) if takes_out(kernel) else _run(kernel, op, args)
        if result is not target:
            _change(op, target, result)
    bump_version(target)
    if recorded:
        autograd.record_write(op, args, before)
    return target


def _change(op: Operator, target: Tensor, result: Tensor) -> None:
    """The result of a functional kernel, in place: written into the values where the same elements are specified."""
    data, given = target._payload, result._payload
    if op.is_view:
        target._payload = given
        return
    if data.shape != given.shape:
        raise RuntimeError(
            f"output with shape {list(data.shape)} doesn't match the broadcast shape {list(given.shape)}"
        )
    kind, wanted = data.__class__, given.__class__
    if not isinstance(data, SparsePayload) and not can_cast(result._dtype, target._dtype):
        raise RuntimeError(
            f"Can't convert result type {result._dtype.cpp} to output {target._dtype.cpp} in {op.name} operation"
        )
    if kind is wanted and isinstance(data, SparsePayload):
        if not can_cast(given.dtype, data.dtype):
            raise RuntimeError(
                f"result type {given.dtype.cpp} can't be cast to the desired output type {data.dtype.cpp}"
            )
        same = all(a is b for a, b in zip(data.members()[:-1], given.members()[:-1]))
        if same and data.values._payload.shape == given.values._payload.shape:
            data.values.copy_(given.values)
            return
    if isinstance(given, SparsePayload) and not isinstance(data, SparsePayload):
        result = result.to_dense()
    assign(op, target, result)
