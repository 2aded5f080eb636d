"""Watches a program run on meta: what its operators cost, and which memory lives when.

Note [Stand-ins]
While a plan runs, every tensor with memory is replaced, at the operator that it reaches, by a meta tensor of its geometry (one per tensor, over one meta
storage per storage), and every device that a program names means meta. So a module on the CPU is planned as it is: nothing is copied, and neither its
parameters nor their gradients are touched.
"""

from __future__ import annotations

import weakref
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from numpy import ndarray

from .. import _state
from .._device import META
from .._dispatch.backends import backend_of
from .._dispatch.operator import Operator
from .._payload import MetaPayload, offset_of, stride_of
from .._pending import settled
from .._state import TLS
from .._storage import MetaStorage, root_bytes, storage_of
from .._tensor import Tensor, wrap
from . import values


@dataclass
class Operation:
    """One operator call. Bytes are of elements that exist: those of an expanded tensor count once; views move none."""

    name: str
    module: str
    phase: str
    outputs: list
    flops: int
    read: int
    written: int
    live: int = 0
    """Bytes of all storages alive when it has run."""


@dataclass
class Held:
    """A storage: its bytes and where it comes from."""

    nbytes: int
    kind: str
    """`parameter`, `buffer`, `argument`, `captured` (from outside of the program), or the operator that made it."""
    name: str
    """Of a parameter or buffer; else the module that it was made in."""
    shape: tuple
    dtype: str


class Recorder:
    """An observer of the dispatcher (`_dispatch/observer.py`) for one run. Use it as a context manager.

    on_meta: replace tensors by stand-ins. Without it the program runs where its tensors are, and its real storages are watched.
    """

    def __init__(self, on_meta: bool = True) -> None:
        self.on_meta = on_meta
        self.phase = "forward"
        self.modules: list[str] = [""]
        self.operations: list[Operation] = []
        self.storages: list[Held] = []
        self.events: list[int] = []  # the number of a storage when it comes, its complement when it goes
        self.live = 0
        self.peak = 0
        self.peak_event = 0  # how many events came before the peak was reached
        self.peak_operation = -1
        self.unknown: set[str] = set()  # operators without a formula
        self._known: dict[Any, tuple[int, Any]] = {}  # by storage: its number, and what keeps the watch on it
        self._twins: dict[int, tuple[Tensor, Tensor]] = {}
        self._roots: dict[Any, tuple[Any, MetaStorage]] = {}
        self._formulas: dict[str, Any] = {}
        self._random = values.RandomNumbers()

    def __enter__(self) -> Recorder:
        from .._generated.flops import FORMULAS

        if TLS.observer is not None:
            raise RuntimeError("plan(): a plan is being made in this thread already")
        self._formulas = FORMULAS
        TLS.observer = self
        _state.enter_special()
        return self

    def __exit__(self, *exc: object) -> None:
        TLS.observer = None
        _state.leave_special()

    # Stand-ins

    def stand_in(self, tensor: Tensor) -> Tensor:
        """The meta tensor that takes the place of one with memory; the same one each time."""
        data = settled(tensor)
        if data.__class__ is MetaPayload or not self.on_meta:
            return tensor
        found = self._twins.get(id(tensor))
        if found is None:
            stride, offset = stride_of(data), offset_of(data)
            twin = wrap(
                MetaPayload(data.shape, stride, tensor._dtype, offset, self._stand_in_storage(data)), tensor._dtype
            )
            if tensor._node is not None and tensor.requires_grad:
                twin.requires_grad_()
            found = self._twins[id(tensor)] = (tensor, twin)  # the tensor is kept, and with it its id
        return found[1]

    def _stand_in_storage(self, data: Any) -> MetaStorage:
        storage = storage_of(data)
        key = storage._cdata
        found = self._roots.get(key)
        if found is None:
            made = MetaStorage(storage.nbytes())
            if data.__class__ is ndarray and values.small((storage.nbytes(),), _dtype_of(data)):
                made.elements = root_bytes(data).copy()
            found = self._roots[key] = (storage, made)
        return found[1]

    # What the dispatcher asks

    def arguments(self, op: Operator, args: tuple) -> tuple:
        if not self.on_meta:
            return args
        found = list(args)
        for index, param in enumerate(op.params):
            value = found[index]
            if param.type == "Tensor":
                if value.__class__ is list:
                    found[index] = [self.stand_in(item) if isinstance(item, Tensor) else item for item in value]
                elif isinstance(value, Tensor):
                    found[index] = self.stand_in(value)
            elif param.type == "Device" and (value is not None or op.factory):
                found[index] = META
        return tuple(found)

    def buffer(self, out: Any) -> Any:
        if out.__class__ in (tuple, list):
            return type(out)(self.buffer(item) for item in out)
        return self.stand_in(out) if isinstance(out, Tensor) else out

    def run(self, op: Operator, spec: Any, args: tuple, where: Any) -> Any:
        if self.on_meta and "data_dependent" in op.tags:
            known = values.on_cpu(op, args)
            if known is not None:
                return _geometry_of(values.compute(op, known))
        return backend_of(where).run(op, spec, args, where)

    def ran(self, op: Operator, args: tuple, result: Any, written: Any = None) -> None:
        results = [r for r in (result if isinstance(result, (tuple, list)) else (result,)) if isinstance(r, Tensor)]
        if self.on_meta:
            self._compute(op, args, results, written)
        inputs = [
            t
            for i in op.tensors
            for t in (args[i] if args[i].__class__ is list else (args[i],))
            if isinstance(t, Tensor)
        ]
        for tensor in inputs:
            self.watch(tensor, "captured")
        moved = not op.is_view or bool(results) and bool(inputs) and _key(results[0]) != _key(inputs[0])
        for tensor in results:
            self.watch(tensor, op.name)
        formula = self._formulas.get(op.full_name)
        if formula is None and not op.is_view:
            self.unknown.add(op.full_name)
        self.operations.append(
            Operation(
                op.name,
                self.modules[-1],
                self.phase,
                [(tuple(r._payload.shape), str(r._dtype)) for r in results],
                0 if formula is None else int(formula(result, *args)),
                _read(op, inputs, results) if moved else 0,
                sum(_nbytes(t) for t in results) if moved else 0,
                self.live,
            )
        )
        if self.live > self.peak:
            self.peak, self.peak_event, self.peak_operation = self.live, len(self.events), len(self.operations) - 1
        if self.phase == "forward":
            self._attribute(results)

    def values(self, tensor: Any) -> Any:
        return values.values(tensor)

    # Known values

    def _compute(self, op: Operator, args: tuple, results: list[Tensor], written: Any) -> None:
        if op.mutates is not None and written is None:
            values.forget(args[op.mutates])
        if op.is_view and written is None and results and args and _key(results[0]) == _key(args[0]):
            return
        if written is not None and any(t._payload.storage.elements is None for t in results):
            return
        if not all(values.small(tuple(r._payload.shape), r._dtype) for r in results):
            return
        known = values.on_cpu(op, args)
        if "data_dependent" in op.tags and written is not None or _own_generator(op, args):
            known = None
        with self._random if values.is_random(op) else nullcontext():
            if written is not None:
                target = values.values(results[0]) if results else None
                if known is None or target is None or len(results) != 1:
                    for tensor in results:
                        values.forget(tensor)
                else:
                    values.compute_into(op, known, target)
            elif known is not None:
                found = values.compute(op, known)
                made = [each for each in (found if isinstance(found, (tuple, list)) else (found,)) if each is not None]
                for tensor, computed in zip(results, made):
                    values.keep(tensor, computed._payload)

    # Memory

    def watch(self, tensor: Tensor, kind: str, name: str | None = None) -> None:
        """Count the storage of a tensor as alive from now on, until it is freed."""
        storage = memory_of(tensor)
        key = id(storage)
        if key in self._known:
            return
        number = len(self.storages)
        shape, where = tuple(tensor._payload.shape), self.modules[-1] if name is None else name
        self.storages.append(Held(capacity(storage), kind, where, shape, str(tensor._dtype)))
        self.events.append(number)
        self.live += self.storages[number].nbytes
        self._known[key] = (number, weakref.ref(storage, lambda _: self._freed(key)))

    def _freed(self, key: Any) -> None:
        number, _ = self._known.pop(key)
        self.events.append(~number)
        self.live -= self.storages[number].nbytes

    def at_peak(self) -> list[Held]:
        """What was alive at the peak, the largest first."""
        alive: set[int] = set()
        for event in self.events[: self.peak_event]:
            if event >= 0:
                alive.add(event)
            else:
                alive.discard(~event)
        return sorted((self.storages[number] for number in alive), key=lambda held: -held.nbytes)

    # Modules

    def _attribute(self, results: list[Tensor]) -> None:
        """Let the backward of these results count for the module that made them."""
        module = self.modules[-1]
        for tensor in results:
            node = tensor._node
            if node is not None and hasattr(node, "register_prehook") and tensor.grad_fn is not None:
                node.register_prehook(_Entering(self, module))


class _Entering:
    """A hook of a node: what its backward runs belongs to the module whose forward made the node."""

    def __init__(self, recorder: Recorder, module: str) -> None:
        self.recorder = weakref.ref(recorder)
        self.module = module

    def __call__(self, grads: Any) -> None:
        recorder = self.recorder()
        if recorder is not None and recorder.phase == "backward":
            recorder.modules[-1] = self.module


def _own_generator(op: Operator, args: tuple) -> bool:
    """Whether a call draws from a generator of the program, which a plan leaves alone."""
    return any(param.type == "Generator" and value is not None for param, value in zip(op.params, args))


def memory_of(tensor: Tensor) -> Any:
    """What stands for the memory: it lives as long as some tensor needs it."""
    data = tensor._payload
    if data.__class__ is not ndarray:
        return data.storage
    while isinstance(data.base, ndarray):
        data = data.base
    return data


def _key(tensor: Tensor) -> int:
    return id(memory_of(tensor))


def capacity(storage: Any) -> int:
    return storage.nbytes if isinstance(storage, ndarray) else storage.nbytes()


def _nbytes(tensor: Tensor) -> int:
    """The bytes of the elements that exist."""
    data = tensor._payload
    count = 1
    for n, step in zip(data.shape, stride_of(data)):
        count *= 1 if step == 0 and n > 1 else n
    return count * tensor._dtype.itemsize


def _read(op: Operator, inputs: list[Tensor], results: list[Tensor]) -> int:
    """The bytes that a kernel reads: each input once; of a table that is looked up, what the result holds; of what is overwritten whole, nothing."""
    sizes = {_key(t): _nbytes(t) for t in reversed(inputs)}
    if inputs and "lookup" in op.tags:
        sizes[_key(inputs[0])] = min(sizes[_key(inputs[0])], sum(_nbytes(t) for t in results))
    elif inputs and "conversion" in op.tags and op.is_inplace:
        sizes.pop(_key(inputs[0]))
    return sum(sizes.values())


def _dtype_of(data: ndarray) -> Any:
    from .._dtype import from_numpy_dtype

    return from_numpy_dtype(data.dtype)


def _geometry_of(result: Any) -> Any:
    """Meta payloads like the results of a real call."""
    if isinstance(result, (tuple, list)):
        return [_geometry_of(item) for item in result]
    shape, stride = result._payload.shape, stride_of(result._payload)
    return backend_of(META).empty(tuple(shape), tuple(stride), result._dtype, META)
