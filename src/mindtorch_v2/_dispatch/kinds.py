"""Kinds of plans: how calls that go by a plan run. See planned.py.

A plan is a function of a call's values: the arguments as they were given, those by name last.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from .. import _memory, _payload
from .._device import CPU, META
from .._rules.spec import Spec
from .._state import TLS
from .._tensor import Rare, Tensor, belongs_to_inference, bump_version, rare_of, wrap, wrap_view
from .backends import backend_of
from .operator import Operator
from .plans import quiet_errors, specs_of
from .viewing import viewer

_SILENT = frozenset(
    (
        np.add,
        np.subtract,
        np.multiply,
        np.maximum,
        np.minimum,
        np.equal,
        np.not_equal,
        np.less,
        np.less_equal,
        np.greater,
    )
    + (np.greater_equal, np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.logical_and, np.logical_or, np.logical_xor)
)
"""Ufuncs that warn of nothing when their operands are integers or bools."""
DECLINED = object()
"""What a plan returns where the general path has to look first."""
_errors, _quiet = quiet_errors()
_new = object.__new__

# Set by the autograd floor, which stands above this one.
history: Any = None


def _sized(kernel: Callable, shape: Any) -> Callable:
    """The kernel for a result of this shape: one that goes through large arrays in blocks has another for small ones."""
    small = getattr(kernel, "small", None)
    return kernel if small is None or shape is None or math.prod(shape) >= kernel.large_from else small


class Call:
    """A call that is to be planned: makes the functions that run its like."""

    def __init__(self, op: Operator, values: tuple, converted: tuple, places: list[tuple[int, int, bool]]):
        self.op = op
        self.converted = converted
        self.tensors = tuple((index, at) for index, at, listed in places if not listed)
        self.lists = tuple((index, at) for index, at, listed in places if listed)
        rest = [None if isinstance(value, Tensor) else value for value in converted]
        tensors, lists = self.tensors, self.lists
        # What stands behind the call's own values, if these are the operator's first arguments.
        alike = not lists and all(a is b for a, b in zip(values, converted))
        self.tail = converted[len(values) :] if alike else None

        def full(values: tuple) -> list:
            """All arguments of the operator."""
            made = rest.copy()
            for index, at in tensors:
                made[index] = values[at]
            for index, at in lists:
                made[index] = list(values[at])
            return made

        self.full = full

    def recorded(self) -> Callable:
        """A function of the result and the values of a call with a history: records it."""
        op, full, tail = self.op, self.full, self.tail
        if op.record is None:
            return lambda made, values: made
        if tail is not None:
            return lambda made, values: op.record(made, *values, *tail) if TLS.grad_enabled else made  # type: ignore[misc]

        def record(made: Any, values: tuple) -> Any:
            return op.record(made, *full(values)) if TLS.grad_enabled else made  # type: ignore[misc]

        return record

    def composed(self) -> Callable | None:
        """Call the operator's function."""
        full, tail = self.full, self.tail
        function = self.op.composite_function()
        if tail is not None:
            return lambda values: function(*values, *tail)
        return lambda values: function(*full(values))

    def on_meta(self) -> Callable | None:
        """A new tensor on the meta device."""
        op = self.op
        spec = None if op.composite is not None or op.is_view or op.meta is None else specs_of(op, self.converted)
        if spec.__class__ is not Spec or spec.shape is None:
            return None
        backend = backend_of(META)
        shape, stride, kind = tuple(spec.shape), spec.stride, spec.dtype
        return lambda values: wrap(backend.empty(shape, stride, kind, META), kind)

    # Views

    def view(self, result: tuple) -> Callable:
        """One view of the first tensor."""
        at = self.tensors[0][1]
        shape, stride, kind, _, offset = result
        look = viewer(self.converted[0]._payload, shape, stride, offset)
        marked, live = history.VIEW, history.live_node
        mark = marked if kind.category > 1 and self.op.record is not None else None
        record = self.recorded()

        def run(values: tuple) -> Any:
            source = values[at]
            made = _new(Tensor)
            made._payload = look(source._payload)
            made._dtype = kind
            made._rare = None
            base = source._base
            made._base = source if base is None else base
            node = source._node
            if node is None or (node is marked and live(source) is None):
                made._node = mark if TLS.grad_enabled else None
                return made
            made._node = None
            made = record(made, values)
            if made._node is None and TLS.grad_enabled:
                made._node = mark
            return made

        return run

    def views(self, results: tuple) -> Callable:
        """Several views of the first tensor."""
        at = self.tensors[0][1]
        data = self.converted[0]._payload
        looks = [viewer(data, shape, stride, offset) for shape, stride, _, _, offset in results]
        record = self.recorded()
        mark = history.mark_view
        recorded = self.op.record is not None

        def run(values: tuple) -> Any:
            source = values[at]
            data = source._payload
            views = []
            for look in looks:
                view = wrap_view(look(data), source)
                rare = view._rare = Rare()
                rare.multi_view = True
                views.append(view)
            made = tuple(views)
            if recorded and TLS.grad_enabled:
                if source._node is not None:
                    made = record(made, values)
                for view in made:
                    if view._node is None:
                        mark(view)
            return made

        return run

    def reshaped(self, result: tuple) -> Callable:
        """A contiguous copy in another shape, which no view can have."""
        at = self.tensors[0][1]
        shape = result[0]
        record = self.recorded()

        def run(values: tuple) -> Any:
            source = values[at]
            made = wrap(source._payload.copy("C").reshape(shape), source._dtype)
            return made if source._node is None else record(made, values)

        data = self.converted[0]._payload.copy("C").reshape(shape)
        return run if _payload.stride_of(data) == tuple(result[1]) else None  # type: ignore[return-value]

    # Kernels

    def given(self, compute: Any) -> tuple[list, list] | None:
        """The kernel's arguments but for tensors, and of each tensor its number, its place and the dtype to cast it to; None for lists to be cast."""
        op, converted = self.op, self.converted
        rest = [None if isinstance(value, Tensor) else value for value in converted]
        tensors = []
        for index, at in self.tensors:
            cast = compute is not None and index in op.cast and converted[index]._payload.dtype != compute.np
            tensors.append((index, at, compute.np if cast else None))
        if compute is not None:
            number = backend_of(CPU).number
            for index in op.cast:
                value = converted[index]
                if value.__class__ is list:
                    if any(item._payload.dtype != compute.np for item in value):
                        return None
                elif value is not None and not isinstance(value, Tensor):
                    rest[index] = number(value, compute)
        return rest, tensors

    def arrays(self, compute: Any) -> Callable[[tuple], list] | None:
        """A function of a call's values that gives the kernel's arguments."""
        found = self.given(compute)
        if found is None:
            return None
        rest, tensors = found
        lists = self.lists
        number, at, cast = tensors[0] if len(tensors) == 1 else (None, None, None)
        if number == 0 and cast is None and not lists:  # asked by `is`: numpy takes None for float64
            tail = rest[1:]
            return lambda values: [values[at]._payload, *tail]

        def arrays(values: tuple) -> list:
            given = rest.copy()
            for index, at, cast in tensors:
                array = values[at]._payload
                given[index] = array if cast is None else array.astype(cast)
            for index, at in lists:
                given[index] = [item._payload for item in values[at]]
            return given

        return arrays

    def historic(self) -> Callable[[tuple], bool]:
        """Whether an argument of a call may have a history."""
        places = [at for _, at in self.tensors]
        lists = [at for _, at in self.lists]
        if self.op.record is None:
            return lambda values: False
        live = history.live_node
        view = history.VIEW

        def historic(values: tuple) -> bool:
            for at in places:
                node = values[at]._node
                if node is not None and (node is not view or live(values[at]) is not None):
                    return True
            for at in lists:
                for item in values[at]:
                    node = item._node
                    if node is not None and (node is not view or live(item) is not None):
                        return True
            return False

        return historic

    def pointwise(self, ufunc: Any, learnt: tuple) -> Callable | None:
        """By a ufunc of the first arguments, whose results are as the rule wants them."""
        op, converted = self.op, self.converted
        spec = specs_of(op, converted)
        count = ufunc.nin
        found = self.given(spec.compute)
        if (
            found is None
            or any(cast is not None or index >= count for index, _, cast in found[1])
            or any(a is not b and a != b for a, b in zip(converted[count:], [p.default for p in op.params[count:]]))
            or not found[1]
        ):
            return None
        shape, stride, kind, want, _ = learnt[8][0]
        rest, tensors = found
        operands = [*rest[:count]]
        for index, _, _ in tensors:
            operands[index] = converted[index]._payload
        with np.errstate(all="ignore"):
            tried = ufunc(*operands)
        strides = tuple([step * want.itemsize for step in stride])
        if tried.dtype != want or tried.shape != shape:
            return None
        aim = None
        if tried.__class__ is not ndarray or tried.strides != strides:
            aim = _memory.allocator(shape, stride, want)
        enter, leave, quiet = _errors.set, _errors.reset, _quiet
        record, historic = self.recorded(), self.historic()
        at = tensors[0][1]
        if len(tensors) == 2 and aim is None:
            other = tensors[1][1]
            if ufunc in _SILENT and all(operand.dtype.kind in "iub" for operand in operands):

                def whole(values: tuple) -> Any:
                    try:
                        return wrap(ufunc(values[at]._payload, values[other]._payload), kind)
                    except MemoryError:
                        return DECLINED

                if want.kind in "iub":
                    return whole

            def two(values: tuple) -> Any:
                a = values[at]
                b = values[other]
                token = enter(quiet)
                try:
                    result = ufunc(a._payload, b._payload)
                except MemoryError:
                    return DECLINED
                finally:
                    leave(token)
                made = _new(Tensor)
                made._payload = result
                made._dtype = kind
                made._node = made._base = made._rare = None
                if (a._node is None and b._node is None) or not historic(values):
                    return made
                return record(made, values)

            return two
        arrays = self.arrays(spec.compute)
        unary = len(operands) == 1
        leads = tensors[0][0] == 0
        number = None if unary else operands[1 if leads else 0]

        def run(values: tuple) -> Any:
            a = values[at]
            token = enter(quiet)
            try:
                if aim is not None:
                    result = ufunc(*arrays(values)[:count], out=aim())
                elif unary:
                    result = ufunc(a._payload)
                elif leads:
                    result = ufunc(a._payload, number)
                else:
                    result = ufunc(number, a._payload)
            except MemoryError:
                return DECLINED
            finally:
                leave(token)
            made = _new(Tensor)
            made._payload = result
            made._dtype = kind
            made._node = made._base = made._rare = None
            if (a._node is None and aim is None) or not historic(values):
                return made
            return record(made, values)

        return run

    def one(self, learnt: tuple, unknown: bool) -> Callable | None:
        """By the kernel, which gives one result."""
        spec = specs_of(self.op, self.converted)
        found = self.given(spec.compute)
        arrays = self.arrays(spec.compute)
        if found is None or arrays is None:
            return None
        kernel = _sized(self.op.kernels["cpu"], None if unknown else spec.shape)
        _, stride, kind, want, _ = learnt[8][0]
        lay, strides = _layer(spec, want, None if unknown else stride)
        enter, leave, quiet = _errors.set, _errors.reset, _quiet
        record, historic = self.recorded(), self.historic()
        target = None
        if kernel.__class__ is np.ufunc and not unknown and spec.compute in (None, kind):
            target = _memory.allocator(spec.shape, stride, want)

        def run(values: tuple) -> Any:
            token = enter(quiet)
            try:
                if target is None:
                    result = kernel(*arrays(values))
                else:
                    result = kernel(*arrays(values), out=target())
            except (MemoryError, ValueError):
                return DECLINED
            finally:
                leave(token)
            if target is None:
                result = lay(result)
            made = wrap(result, kind)
            return record(made, values) if historic(values) else made

        rest, tensors = found
        if not tensors and not self.lists:

            def fresh(values: tuple) -> Any:
                token = enter(quiet)
                try:
                    result = kernel(*rest)
                except (MemoryError, ValueError):
                    return DECLINED
                finally:
                    leave(token)
                return wrap(lay(result), kind)

            return fresh
        if target is not None or self.lists or len(tensors) != 1 or tensors[0][0] or tensors[0][2] is not None:
            return run
        at = tensors[0][1]
        tail = rest[1:]

        def single(values: tuple) -> Any:
            source = values[at]
            token = enter(quiet)
            try:
                result = kernel(source._payload, *tail)
            except (MemoryError, ValueError):
                return DECLINED
            finally:
                leave(token)
            if (
                result.__class__ is not ndarray
                or result.strides != strides
                or result.base is not None
                or result.dtype is not want
            ):
                result = lay(result)
            made = _new(Tensor)
            made._payload = result
            made._dtype = kind
            made._node = made._base = made._rare = None
            return made if source._node is None or not historic(values) else record(made, values)

        return single

    def guarded(self, run: Callable, constants: tuple[int, ...]) -> Callable:
        """`run` while no argument of these numbers requires grad, which the rule refuses."""
        places = [at for index, at in self.tensors if index in constants]

        def checked(values: tuple) -> Any:
            for at in places:
                if values[at].requires_grad:
                    return DECLINED
            return run(values)

        return checked

    def several(self, learnt: tuple) -> Callable | None:
        """By the kernel, which gives several results."""
        specs = specs_of(self.op, self.converted)
        arrays = self.arrays(next((s.compute for s in specs if s is not None), None))
        if arrays is None:
            return None
        kernel = self.op.kernels["cpu"]
        cls = learnt[6]
        lays = [None if s is None else (_layer(s, s.dtype.np, r[1])[0], s.dtype) for s, r in zip(specs, learnt[8])]
        record, historic = self.recorded(), self.historic()

        def run(values: tuple) -> Any:
            token = _errors.set(_quiet)
            try:
                results = kernel(*arrays(values))
            except (MemoryError, ValueError):
                return DECLINED
            finally:
                _errors.reset(token)
            made = [None if lay is None else wrap(lay[0](result), lay[1]) for result, lay in zip(results, lays)]
            whole = tuple.__new__(cls, made)
            return record(whole, values) if historic(values) else whole

        return run

    def changed(self, learnt: tuple) -> Callable | None:
        """A copy of the argument that the kernel writes to."""
        op = self.op
        at = op.mutates
        spec = specs_of(op, self.converted)
        arrays = self.arrays(spec.compute)
        _, stride, kind, want, _ = learnt[8][0]
        if arrays is None or self.converted[at]._payload.dtype != want or spec.compute not in (None, kind):
            return None
        kernel = op.kernels["cpu"]
        target = _memory.allocator(spec.shape, stride, want)
        record, historic = self.recorded(), self.historic()

        def run(values: tuple) -> Any:
            given = arrays(values)
            array = target()
            array[...] = given[at]
            given[at] = array
            token = _errors.set(_quiet)
            try:
                kernel(*given)
            except (MemoryError, ValueError):
                return DECLINED
            finally:
                _errors.reset(token)
            made = wrap(array, kind)
            return record(made, values) if historic(values) else made

        return run

    # In place

    def in_place(self) -> Callable | None:
        """The kernel's result in the memory of the first argument, where nothing has a history."""
        op, converted = self.op, self.converted
        if "cpu" not in op.kernels or not self.tensors or self.tensors[0] != (0, 0) or self.lists:
            return None
        spec = specs_of(op, converted)
        if spec.__class__ is not Spec or spec.shape is None:
            return None
        data = converted[0]._payload
        kind = spec.dtype.np
        if converted[0]._dtype is not spec.dtype or data.shape != tuple(spec.shape) or _payload.is_expanded(data):
            return None
        arrays = self.arrays(spec.compute)
        if arrays is None or (op.mutates == 0 and spec.compute not in (None, spec.dtype)):
            return None
        kernel = _sized(op.kernels["cpu"], data.shape)
        changes = op.mutates == 0
        writes = op.takes_out["cpu"] and spec.compute in (None, spec.dtype)
        others = [at for index, at in self.tensors if index]
        apart = "apart" in op.tags
        view, live = history.VIEW, history.live_node

        def run(values: tuple) -> Any:
            target = values[0]
            data = target._payload
            base = target._base
            rare = rare_of(target)
            node = target._node
            tape = TLS.grad_enabled
            if node is not None and node is not view and tape:
                return DECLINED
            if rare is not None and (rare.inference or rare.multi_view):
                return DECLINED
            if base is not None:
                if base._node is not None and tape:
                    return DECLINED
                above = rare_of(base)
                if above is not None and (above.multi_view or above.inference):
                    return DECLINED
            for at in others:
                other = values[at]
                if tape and other._node is not None and (other._node is not view or live(other) is not None):
                    return DECLINED
                if (other is not target or apart) and np.may_share_memory(other._payload, data):
                    return DECLINED
            given = arrays(values)
            token = _errors.set(_quiet)
            try:
                if changes:
                    kernel(*given)
                elif writes:
                    kernel(*given, out=data)
                else:
                    result = kernel(*given)
                    data[...] = result if result.dtype == kind else result.astype(kind)
            finally:
                _errors.reset(token)
            if base is None and target._node is None and (rare is None or rare.shares is None):
                if rare is None:
                    rare = target._rare = Rare()
                rare.version += 1
            else:
                bump_version(target)
            return target

        return run


def _layer(spec: Spec, want: np.dtype, stride: tuple | None) -> tuple[Callable[[Any], ndarray], tuple | None]:
    """A function that makes of a kernel's result what the rule wants, and the strides, in bytes, that it then has; stride None: of unknown shape."""
    lay_out = backend_of(CPU).laid_out
    if stride is None:
        return lambda result: lay_out(result, spec), None
    strides = tuple([step * want.itemsize for step in stride])
    size = math.prod(spec.shape) * want.itemsize
    whole = spec.shape
    dense = _payload.contiguous_strides(whole) == stride
    bare = dense and 0 in whole  # whose strides are zeros in numpy
    contiguous = dense and not bare
    target = None if contiguous or 0 in whole else _memory.allocator(whole, stride, want)

    def lay(result: Any) -> ndarray:
        if result.__class__ is not ndarray:
            result = np.asarray(result)
        if result.dtype is not want and result.dtype != want:
            result = result.astype(want)
        if result.strides == strides:
            base = result.base
            if base is None or base.nbytes == size:
                return result
        if result.shape == whole:
            if bare and not any(result.strides):
                return result
            if target is not None:
                made = target()
                made[...] = result
                return made
            result = result.copy()
            if result.strides == strides:
                return result
        return lay_out(result, spec)

    return lay, strides


def detached(values: tuple) -> Tensor:
    source = values[0]
    made = wrap(source._payload.view(), source._dtype)
    rare = made._rare = Rare()
    rare.shares = source
    rare.inference = belongs_to_inference(source)
    return made
