"""The engine: walks the tape from results to leaves.

Nodes run in topological order. The gradient that arrives at an edge is brought to the shape and dtype of the tensor there, so
derivative formulas need not know about broadcasting or promotion.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np

from .. import _payload
from .._dispatch import native, ops
from .._pending import settled
from .._rules import geometry
from .._sparse_payload import CompressedPayload, CooPayload, SparsePayload, is_sparse
from .._state import DISPATCHING, PLAIN, SPARSE, TLS
from .._tensor import Tensor, wrap
from . import wiring
from .node import VIEW, AccumulateGrad, Extras, GradientEdge, Node, extras_of, is_interior, live_node


def run_backward(
    tensors: tuple,
    grad_tensors: tuple,
    retain_graph: bool,
    create_graph: bool,
    inputs: tuple | None = None,
    allow_unused: bool = True,
    accumulate: bool = True,
) -> tuple:
    """Send `grad_tensors` back from `tensors`.

    With `inputs` None or `accumulate`, gradients are added to the leaves' `.grad` (only to `inputs` if given). Else the gradients of `inputs`
    are returned, None for those not reached when `allow_unused`.
    """
    recorder = TLS.pipeline
    if recorder is not None:  # the pass reads what was saved; it is not recorded itself
        recorder.flush()
    before, whole = TLS.grad_enabled, TLS.whole_backward
    TLS.grad_enabled, TLS.pipeline = create_graph, None
    if inputs is not None:
        TLS.whole_backward = False
    try:
        edges = any(t.__class__ is GradientEdge for t in (*tensors, *(inputs or ())))
        # Observers want to see operators, and hold what they saw; edges are for the walk in Python.
        if native.extension is not None and PLAIN and not edges:
            outer, TLS.backward_pass = TLS.backward_pass, None
            try:
                results = native.extension.run_backward(
                    tensors, grad_tensors, inputs, accumulate, retain_graph, create_graph, TLS.anomaly
                )
            finally:
                TLS.backward_pass = outer
        else:
            run = _Run(tensors, grad_tensors, inputs, accumulate)
            run.outer = TLS.backward_pass
            TLS.backward_pass = run
            try:
                results = run.walk(retain_graph, create_graph)
            finally:
                TLS.backward_pass = run.outer
                if run.about is not None:
                    run.profiler.close(run.about)
        if accumulate and inputs is not None:
            _accumulate_interior(inputs, results)
    finally:
        TLS.grad_enabled, TLS.pipeline, TLS.whole_backward = before, recorder, whole
    if TLS.final_callbacks:
        run_callbacks()
    if accumulate:
        return ()
    if not allow_unused:
        _check_used(results)
    return tuple(results)


class Walk:
    """The walk over the tape that runs in this thread: here, or in the extension."""

    @staticmethod
    def running() -> list:
        """What tells walks apart that run in this thread, the innermost first."""
        run, numbers = TLS.backward_pass, []
        while run is not None:
            numbers.append(("python", run.number))
            run = run.outer
        if native.extension is not None:
            numbers += native.extension.running_walks()
        return numbers

    @staticmethod
    def executes(node: Node) -> bool | None:
        """Whether the innermost walk runs a node; None for a leaf whose gradient it only captures."""
        run = TLS.backward_pass
        if run is not None:
            return run.executes(node)
        return native.extension is not None and native.extension.walk_executes(node)

    @staticmethod
    def remaining() -> list[Node]:
        """The nodes that the innermost walk still runs, in order."""
        run = TLS.backward_pass
        if run is not None:
            return run.remaining()
        return [] if native.extension is None else native.extension.walk_remaining()


def queue_callback(callback: Callable[[], Any]) -> None:
    """Call a function at the end of the backward pass that is running."""
    TLS.final_callbacks = (*TLS.final_callbacks, callback)


def run_callbacks() -> None:
    """Call what was queued for the end of a backward pass, and what that queues."""
    while TLS.final_callbacks:
        callback, *rest = TLS.final_callbacks
        TLS.final_callbacks = tuple(rest)
        callback()


def root_edge(tensor: Tensor | GradientEdge) -> tuple | None:
    """(node, output number) of a tensor or edge, or None."""
    if tensor.__class__ is GradientEdge:
        return tensor[:2]
    assert isinstance(tensor, Tensor)
    node = tensor._node
    if node is None:
        return None
    if tensor._base is not None or node is VIEW:
        node = live_node(tensor)
        if node is None:
            return None
    return (node, tensor._nr)


_NUMBERS = itertools.count(1)


class _Run:
    """One backward pass."""

    def __init__(self, tensors: tuple, grad_tensors: tuple, inputs: tuple | None, accumulate: bool):
        self.number = next(_NUMBERS)
        self.outer: _Run | None = None
        self.position = 0
        self.profiler = TLS.profiler
        self.about: Any = None  # the profiler's range of the node that runs
        self.buffers: dict[Node, list] = {}
        self.seen = False  # whether hooks, which may keep what they are given, have run
        self.taken: dict[int, Any] = {}  # owners of memory that a gradient, or the caller, already holds
        self.captures: dict[tuple, int] = {}
        self.results: list = []
        self.accumulate = accumulate
        if inputs is not None:
            self.results = [None] * len(inputs)
            for position, tensor in enumerate(inputs):
                edge = root_edge(tensor)
                if edge is not None:
                    self.captures.setdefault((id(edge[0]), edge[1]), []).append(position)
        self.roots: list[Node] = []
        for tensor, grad in zip(tensors, grad_tensors):
            edge = root_edge(tensor)
            if edge is None:
                raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
            self.hold(grad)
            self.add(edge[0], edge[1], grad)
            self.roots.append(edge[0])
        self.order = _topological(self.roots)
        self.wanted = self._wanted() if inputs is not None else None

    def executes(self, node: Node) -> bool | None:
        """Whether the pass runs a node; None for a leaf whose gradient it only captures."""
        ends = self._ends_at(node)
        if ends and node.__class__ is AccumulateGrad:
            return None
        return node in (self.order if self.wanted is None else self.wanted) and not ends

    def remaining(self) -> list[Node]:
        """The nodes that the pass still runs, in order."""
        return [node for node in self.order[self.position :] if self.executes(node)]

    def _wanted(self) -> set:
        """Nodes from which an input can be reached."""
        wanted: set[Node] = set()
        targets = {key[0] for key in self.captures}
        for node in reversed(self.order):
            if id(node) in targets or any(e is not None and e[0] in wanted for e in node.edges):
                wanted.add(node)
        return wanted

    def hold(self, grad: Tensor) -> None:
        """Note that the memory of `grad` belongs to somebody."""
        payload = settled(grad)
        if isinstance(payload, SparsePayload):  # whose values are copied in any case
            return
        key = _memory_key(payload)
        self.taken[key] = payload

    def reach(self, node: Node, number: int) -> list:
        """What has arrived at a node, of which the walk has come to an output."""
        buffer = self.buffers.get(node)
        if buffer is None:
            buffer = self.buffers[node] = [None] * max(len(node.outputs), number + 1)
        return buffer

    def add(self, node: Node, number: int, grad: Tensor) -> None:
        """Add a gradient to what has arrived at an output of a node."""
        buffer = self.reach(node, number)
        before = buffer[number]
        buffer[number] = grad if before is None else _sum(before, grad)

    def walk(self, retain_graph: bool, create_graph: bool) -> list:
        """Run the nodes; what arrived at the inputs."""
        profiler = self.profiler
        for position, node in enumerate(self.order):
            self.position = position
            if profiler is not None:
                if self.about is not None:
                    profiler.close(self.about)
                self.about = profiler.node(node)
            buffer = self.buffers.pop(node, None)
            if buffer is None or (self.wanted is not None and node not in self.wanted):
                continue
            grads = tuple(buffer)
            extras = extras_of(node)
            ends = self._ends_at(node)
            if extras is not None:
                self.seen = True
                grads = _before(node, grads, ends)
            if self.captures:
                self._capture(node, grads)
            if ends:
                continue
            if node.__class__ is AccumulateGrad:
                if self.accumulate and (self.wanted is None or node in self.wanted):
                    if profiler is None:
                        self._accumulate(node, grads[0], create_graph)
                    else:
                        profiler.apply(node, self._accumulate, node, grads[0], create_graph)
                continue
            nothing = not node.runs_on_nothing and not any(grad is not None for grad in grads)
            if nothing:
                given = (None,) * len(node.edges)
            else:
                given = node.apply(grads) if profiler is None else profiler.apply(node, node.apply, grads)
            if TLS.anomaly:
                _check_nan(node, given)
            if extras is not None:
                given = _after(node, given, grads)
            if not retain_graph:
                node.release()
            edges = node.edges
            if len(given) != len(edges):
                _raise_count(node, len(edges), len(given))
            for position, edge in enumerate(edges):
                if edge is None:
                    continue
                grad = given[position]
                target, number = edge
                if grad is None:
                    self.reach(target, number)
                    continue
                self.add(target, number, _fit(grad, target, number, node, position))
        return self.results

    def _ends_at(self, node: Node) -> bool:
        """Whether the walk ends at a node that an input is a result of: the node itself, with the hooks that are its own, does not run."""
        if self.wanted is None or (self.accumulate and node.__class__ is AccumulateGrad):
            return False
        if not any(id(node) == key[0] for key in self.captures):
            return False
        return not any(edge is not None and edge[0] in self.wanted for edge in node.edges)

    def _capture(self, node: Node, grads: tuple) -> None:
        for number, grad in enumerate(grads):
            for position in self.captures.get((id(node), number), ()):
                self.results[position] = grad

    def _accumulate(self, node: AccumulateGrad, grad: Tensor, create_graph: bool) -> None:
        variable = node.variable
        if variable is None or grad is None:
            return
        before = variable._grad
        if before is None and not create_graph:
            variable._grad = self._own(variable, grad)
        else:
            variable._grad = _added(variable, before, grad, create_graph)
        if extras_of(node) is not None:
            _accumulated(node, grad)

    def _own(self, variable: Tensor, grad: Tensor) -> Tensor:
        """The first gradient of a leaf: the memory that arrived, when nobody else holds it and it is laid out like the leaf, or a copy."""
        payload = settled(grad)
        key = id(payload) if isinstance(payload, SparsePayload) else _memory_key(payload)
        sole = key not in self.taken and not self.seen
        if sole:
            self.taken[key] = payload
        return _first(variable, grad, sole)


def _layout(variable: Tensor) -> tuple:
    """The strides that a gradient of a leaf should have."""
    data = variable._payload
    if isinstance(data, SparsePayload):
        return _payload.contiguous_strides(tuple(data.shape))
    shape, stride = tuple(data.shape), _payload.stride_of(data)
    return stride if geometry.is_non_overlapping_and_dense(shape, stride) else _payload.contiguous_strides(shape)


def _obeys(payload: Any, layout: tuple) -> bool:
    return all(n == 1 or s == wanted for n, s, wanted in zip(payload.shape, _payload.stride_of(payload), layout))


def _first(variable: Tensor, grad: Tensor, sole: bool) -> Tensor:
    """A gradient with memory of its own, laid out like the leaf that it is for; without a copy when nobody else holds it."""
    if grad.__class__ in DISPATCHING:  # what its memory is, only its class knows
        return ops.detach(grad)
    payload = settled(grad)
    if isinstance(payload, SparsePayload):
        return _first_sparse(payload, sole)
    if sole and _fills_memory(payload) and _obeys(payload, _layout(variable)):
        return wrap(payload, grad._dtype)
    made = ops.empty_strided(tuple(grad._payload.shape), _layout(variable), dtype=grad._dtype, device=grad.device)
    return ops.copy_(made, grad)


def _first_sparse(payload: Any, sole: bool) -> Tensor:
    """A sparse gradient made of what arrived, when nobody else holds it and its members are contiguous, or of copies. That coordinates stand once is not
    remembered, since what is added in place need not keep it so."""
    if sole and all(member.is_contiguous() for member in payload.members()):
        made = payload.like(payload.values)
    else:
        made = ops.clone(wrap(payload, payload.dtype))._payload
    if isinstance(made, CooPayload):
        made.coalesced = made.nnz < 2
    return wrap(made, made.dtype)


def _sum(before: Tensor, grad: Tensor) -> Tensor:
    """The sum of two gradients; of a sparse and a dense one dense."""
    if SPARSE and is_sparse(before) and not is_sparse(grad):
        before, grad = grad, before
    return ops.add(before, grad)


def _added(variable: Tensor, before: Tensor | None, grad: Tensor, create_graph: bool) -> Tensor:
    """What a leaf has after a gradient arrived; with `create_graph` a new tensor."""
    if before is None:
        return _first(variable, grad, False)
    if SPARSE and is_sparse(before) and not is_sparse(grad):
        return ops.add(grad, before)
    return ops.add(before, grad) if create_graph else ops.add_(before, grad)


def _accumulated(node: AccumulateGrad, grad: Tensor) -> None:
    """Run what was registered to run after a gradient, which arrived at a leaf, was added."""
    extras = node.extras
    if extras is not None and extras.hooks is not None:
        for hook in list(extras.hooks.values()):
            hook((), (grad,))
    if extras is not None and extras.post_accumulate_hooks:
        variable = node.variable
        for hook in list(extras.post_accumulate_hooks.values()):
            said = hook(variable)
            if said is not None:
                _check_result(hook, variable, said)
                raise RuntimeError("Tensor post accumulate grad hooks should return None.")


def _accumulate_interior(inputs: tuple, results: list) -> None:
    """Add what arrived at inputs that are no leaves to their `.grad`; leaves have got theirs on the way."""
    for tensor, result in zip(inputs, results):
        if result is not None and tensor.__class__ is not GradientEdge and is_interior(tensor._node):
            tensor._grad = result if tensor._grad is None else _sum(tensor._grad, result)


def _check_used(results: list) -> None:
    for position, result in enumerate(results):
        if result is None:
            raise RuntimeError(
                f"The differentiated Tensor at index {position} appears to not have been used in the graph. Set "
                "allow_unused=True if this is the desired behavior."
            )


def _raise_count(node: Node, expected: int, got: int) -> NoReturn:
    raise RuntimeError(
        f"Function {node.name()} returned an incorrect number of gradients (expected {expected}, got {got})"
    )


def _check_nan(node: Node, given: tuple) -> None:
    """RuntimeError when a gradient has a NaN, as anomaly detection asks for."""
    for number, grad in enumerate(given):
        if isinstance(grad, Tensor) and grad.device.type == "cpu" and bool(ops.any(ops.isnan(grad)).item()):
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {number}th output.")


def _memory_key(payload: Any) -> int:
    if payload.__class__ is _payload.ndarray:
        return id(_payload._memory.owner(payload))
    return id(payload.storage)


def _fills_memory(payload: Any) -> bool:
    if payload.__class__ is _payload.ndarray:
        return _payload._memory.owner(payload).size == payload.size and payload.flags.writeable
    return payload.storage.nbytes() == payload.size * payload.dtype.itemsize


def _topological(roots: Iterable[Node]) -> list[Node]:
    """Every node that can be reached, producers of gradients before their consumers."""
    order: list[Node] = []
    seen: set[Node] = set()
    for root in roots:
        if root in seen:
            continue
        seen.add(root)
        stack: list[tuple[Node, int]] = [(root, 0)]
        while stack:
            node, position = stack.pop()
            edges = node.edges
            count = len(edges)
            while position < count:
                edge = edges[position]
                position += 1
                if edge is not None and edge[0] not in seen:
                    seen.add(edge[0])
                    stack.append((node, position))
                    stack.append((edge[0], 0))
                    break
            else:
                order.append(node)
    order.reverse()
    return order


def _fit(grad: Any, target: Node, number: int, source: Node, position: int) -> Tensor:
    """The gradient in the shape and dtype of the tensor that it belongs to."""
    if target.__class__ is AccumulateGrad:
        variable = target.reference()
        if variable is None:
            return grad
        data = variable._payload
        if isinstance(grad._payload, CompressedPayload) and not isinstance(data, SparsePayload):
            raise RuntimeError(
                f"Function {source.name()} returned an invalid gradient at index {position} - expected layout Strided but got {grad._payload.name}"
            )
        shape, kind = data.shape, variable._dtype
        where = variable.device
    else:
        shape, kind, where = target.outputs[number]
    if grad.device.type != where.type:
        raise RuntimeError(
            f"Function {source.name()} returned an invalid gradient at index {position} - expected device {where} but got "
            f"{grad.device}"
        )
    got = grad._payload.shape
    if got != shape:
        if not _expandable(shape, got):
            raise RuntimeError(
                f"Function {source.name()} returned an invalid gradient at index {position} - got {list(got)} but expected "
                f"shape compatible with {list(shape)}"
            )
        grad = ops.sum_to_size(grad, shape)
    if grad._dtype is not kind:
        if grad._dtype.is_complex and not kind.is_complex:
            grad = ops.real(grad)
        grad = ops._to_copy(grad, dtype=kind)
    return grad


def _expandable(shape: tuple, wider: tuple) -> bool:
    if len(shape) > len(wider):
        return False
    return all(n == m or n == 1 for n, m in zip(reversed(shape), reversed(wider)))


def _before(node: Node, grads: tuple, ends: bool = False) -> tuple:
    """Run tensor hooks, pre-hooks (but where the walk `ends`), and keep retained gradients."""
    extras = node.extras
    assert isinstance(extras, Extras)
    if extras.tensor_hooks is not None:
        changed = list(grads)
        for number, table in extras.tensor_hooks.items():
            for hook in list(table.values()):
                new = hook(changed[number])
                if new is not None:
                    _check_result(hook, changed[number], new)
                    changed[number] = new
        grads = tuple(changed)
    if extras.prehooks is not None and not ends:
        for hook in list(extras.prehooks.values()):
            new = hook(grads)
            if new is not None:
                grads = _check_results(hook, grads, new)
    if extras.retained is not None:
        for number, reference in extras.retained.items():
            tensor = reference()
            if tensor is not None and grads[number] is not None:
                tensor._grad = grads[number] if tensor._grad is None else ops.add(tensor._grad, grads[number])
    return grads


def _after(node: Node, given: tuple, grads: tuple) -> tuple:
    extras = node.extras
    if extras is not None and extras.hooks is not None:
        for hook in list(extras.hooks.values()):
            new = hook(given, grads)
            if new is None:
                continue
            given = _check_results(hook, given, new)
    return given


def _check_results(hook: Any, given: tuple, new: Any) -> tuple:
    """What a hook returned in the place of gradients. TypeError or RuntimeError where it cannot stand there."""
    if not isinstance(new, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(new).__name__}'")
    if len(new) != len(given):
        raise RuntimeError(
            f"hook '{_called(hook)}' has returned an incorrect number of values (got {len(new)}, but expected {len(given)})"
        )
    for old, grad in zip(given, new):
        if grad is not None:
            _check_result(hook, old, grad)
    return new


def _check_result(hook: Any, old: Tensor | None, new: Any) -> None:
    if old is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if not isinstance(new, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(new).__name__}'")
    if old._dtype is not new._dtype or old.layout is not new.layout or old.device.type != new.device.type:
        raise RuntimeError(f"hook '{_called(hook)}' has changed the type of value (was {_kind(old)} got {_kind(new)})")
    if old.shape != new.shape:
        raise RuntimeError(f"hook '{_called(hook)}' has changed the size of value")


def _called(hook: Any) -> str:
    return getattr(hook, "__name__", "<unknown>")


def _kind(tensor: Tensor) -> str:
    return f"Meta{tensor._dtype.cpp}Type" if tensor.device.type == "meta" else tensor.type()


if native.extension is not None:
    assert wiring.VIEW is VIEW  # it has told the extension the classes
    native.extension.connect_engine(
        SimpleNamespace(add=_sum),
        _fit,
        _first,
        _added,
        _before,
        _after,
        _accumulated,
        _check_nan,
        _raise_count,
        Node.release,
        Node.unpack,
        Node._unpack_one,
        np.add,
    )
