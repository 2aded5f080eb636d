"""The engine: walks the tape from results to leaves.

Nodes run in topological order. The gradient that arrives at an edge is brought to the shape and dtype of the tensor there, so
derivative formulas need not know about broadcasting or promotion.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import _payload
from .._dispatch import ops
from .._pending import settled
from .._state import TLS
from .._tensor import Tensor, wrap
from .node import VIEW, AccumulateGrad, Node, is_interior, live_node


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
    before = TLS.grad_enabled
    TLS.grad_enabled, TLS.pipeline = create_graph, None
    try:
        run = _Run(tensors, grad_tensors, inputs, accumulate)
        run.walk(retain_graph, create_graph)
        if accumulate:
            run.accumulate_interior()
    finally:
        TLS.grad_enabled, TLS.pipeline = before, recorder
    if accumulate:
        return ()
    return run.captured(allow_unused)


def root_edge(tensor: Tensor) -> tuple | None:
    """(node, output number) of a tensor, or None."""
    node = tensor._node
    if node is None:
        return None
    if tensor._base is not None or node is VIEW:
        node = live_node(tensor)
        if node is None:
            return None
    return (node, tensor._nr)


class _Run:
    """One backward pass."""

    def __init__(self, tensors: tuple, grad_tensors: tuple, inputs: tuple | None, accumulate: bool):
        self.buffers: dict[Node, list] = {}
        self.taken: dict[int, Any] = {}  # owners of memory that a gradient, or the caller, already holds
        self.captures: dict[tuple, int] = {}
        self.results: list = []
        self.targets: tuple = inputs or ()
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
        key = _memory_key(payload)
        self.taken[key] = payload

    def add(self, node: Node, number: int, grad: Tensor) -> None:
        """Add a gradient to what has arrived at an output of a node."""
        buffer = self.buffers.get(node)
        if buffer is None:
            buffer = self.buffers[node] = [None] * max(len(node.outputs), number + 1)
        before = buffer[number]
        buffer[number] = grad if before is None else ops.add(before, grad)

    def walk(self, retain_graph: bool, create_graph: bool) -> None:
        for node in self.order:
            buffer = self.buffers.pop(node, None)
            if buffer is None or (self.wanted is not None and node not in self.wanted):
                continue
            grads = tuple(buffer)
            rare = node.__dict__
            if rare:
                grads = _before(node, grads)
            if self.captures:
                self._capture(node, grads)
            if node.__class__ is AccumulateGrad:
                if self.accumulate and (self.wanted is None or node in self.wanted):
                    self._accumulate(node, grads[0], create_graph)
                continue
            given = node.apply(grads)
            if TLS.anomaly:
                _check_nan(node, given)
            if rare and node.hooks is not None:
                given = _after(node, given, grads)
            if not retain_graph:
                node.release()
            edges = node.edges
            if len(given) != len(edges):
                raise RuntimeError(
                    f"Function {node.name()} returned an incorrect number of gradients (expected {len(edges)}, got {len(given)})"
                )
            for position, edge in enumerate(edges):
                if edge is None:
                    continue
                grad = given[position]
                if grad is None:
                    continue
                target, number = edge
                self.add(target, number, _fit(grad, target, number, node, position))

    def _capture(self, node: Node, grads: tuple) -> None:
        for number, grad in enumerate(grads):
            for position in self.captures.get((id(node), number), ()):
                self.results[position] = grad

    def accumulate_interior(self) -> None:
        """Add what arrived at inputs that are no leaves to their `.grad`; leaves have got theirs on the way."""
        for tensor, result in zip(self.targets, self.results):
            if result is not None and is_interior(tensor._node):
                tensor._grad = result if tensor._grad is None else ops.add(tensor._grad, result)

    def captured(self, allow_unused: bool) -> tuple:
        for position, result in enumerate(self.results):
            if result is None and not allow_unused:
                raise RuntimeError(
                    f"The differentiated Tensor at index {position} appears to not have been used in the graph. Set "
                    "allow_unused=True if this is the desired behavior."
                )
        return tuple(self.results)

    def _accumulate(self, node: AccumulateGrad, grad: Tensor, create_graph: bool) -> None:
        variable = node.variable
        if variable is None or grad is None:
            return
        before = variable._grad
        if before is None:
            variable._grad = grad if create_graph else self._own(grad)
        elif create_graph:
            variable._grad = ops.add(before, grad)
        else:
            ops.add_(before, grad)
        hooks = node.post_accumulate_hooks
        if hooks:
            for hook in list(hooks.values()):
                hook(variable)

    def _own(self, grad: Tensor) -> Tensor:
        """The gradient with memory of its own; without a copy when nobody else holds it."""
        payload = settled(grad)
        key = _memory_key(payload)
        dense = _payload.stride_of(payload) == _payload.contiguous_strides(payload.shape)
        if key in self.taken or not dense or not _fills_memory(payload):
            grad = ops.clone(grad)
            return wrap(grad._data, grad._dtype)
        self.taken[key] = payload
        return wrap(payload, grad._dtype)


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
        data = variable._data
        shape, kind = data.shape, variable._dtype
        where = variable.device
    else:
        shape, kind, where = target.outputs[number]
    if grad.device.type != where.type:
        raise RuntimeError(
            f"Function {source.name()} returned an invalid gradient at index {position} - expected device {where} but got "
            f"{grad.device}"
        )
    got = grad._data.shape
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


def _before(node: Node, grads: tuple) -> tuple:
    """Run tensor hooks, pre-hooks, and keep retained gradients."""
    if node.tensor_hooks is not None:
        changed = list(grads)
        for number, table in node.tensor_hooks.items():
            for hook in list(table.values()):
                if changed[number] is None:
                    continue
                new = hook(changed[number])
                if new is not None:
                    changed[number] = new
        grads = tuple(changed)
    if node.prehooks is not None:
        for hook in list(node.prehooks.values()):
            new = hook(grads)
            if new is not None:
                grads = new if isinstance(new, tuple) else (new,)
    if node.retained is not None:
        for number, reference in node.retained.items():
            tensor = reference()
            if tensor is not None and grads[number] is not None:
                tensor._grad = grads[number] if tensor._grad is None else ops.add(tensor._grad, grads[number])
    return grads


def _after(node: Node, given: tuple, grads: tuple) -> tuple:
    for hook in list(node.hooks.values()):
        new = hook(given, grads)
        if new is not None:
            given = new if isinstance(new, tuple) else (new,)
    return given
