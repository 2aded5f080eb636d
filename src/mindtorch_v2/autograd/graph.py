"""`torch.autograd.graph`: nodes, edges, and hooks on several tensors at once and on what is saved."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from .. import _forks
from .._autograd.engine import Walk, root_edge
from .._autograd.modes import disable_saved_tensors_hooks, saved_tensors_hooks
from .._autograd.node import GradientEdge, Node
from .._handles import RemovableHandle
from .._tensor import Tensor, bump_version
from ._mutation import allow_mutation_on_saved_tensors

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge through which the gradient of a tensor arrives. RuntimeError when it requires none."""
    edge = root_edge(tensor)
    if edge is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(*edge)


def increment_version(tensor: Any) -> None:
    """Count one change in place of a tensor, or of each of several."""
    for one in (tensor,) if isinstance(tensor, Tensor) else tensor:
        bump_version(one)


class save_on_cpu(saved_tensors_hooks):
    """Keep saved tensors in CPU memory, and bring them back to their device when they are needed."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        def pack(tensor: Tensor) -> tuple:
            return (tensor.device, tensor.cpu())

        def unpack(packed: tuple) -> Tensor:
            device, tensor = packed
            return tensor.to(device)

        super().__init__(pack, unpack)


class _Handles(RemovableHandle):
    """Removes all of several hooks."""

    def __init__(self, handles: Sequence[Any]):
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Remove every hook."""
        for handle in self.handles:
            handle.remove()

    def __getstate__(self) -> tuple:
        return self.handles

    def __setstate__(self, state: tuple) -> None:
        self.handles = state


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable, *, mode: str = "all") -> RemovableHandle:
    """Run a hook once in each backward pass that computes gradients of some of the tensors.

    Args:
        tensors: each must require a gradient.
        fn: with mode "all", called with a list of the gradients, None for those that the pass does not compute, when the last has come; with mode
            "any", called with the first gradient that comes.

    Raises:
        ValueError: for another mode.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = _forks.lock()
    passes: dict = {}  # what is known of each pass that runs

    def of_this_pass(make: Callable[[], list]) -> list:
        """The entry of the pass that runs, made by the first that asks; entries of this thread's passes that have ended are dropped."""
        thread, running = threading.get_ident(), Walk.running()
        for key in [key for key in passes if key[0] == thread and key[1] not in running]:
            del passes[key]
        key = thread, running[0]
        if key not in passes:
            passes[key] = make()
        return passes[key]

    if mode == "any":

        def first(grad: Tensor) -> None:
            with lock:
                seen = of_this_pass(lambda: [False])
                ran, seen[0] = seen[0], True
            if not ran:
                fn(grad)

        return _Handles([tensor.register_hook(first) for tensor in tensors if tensor.requires_grad])
    edges = [root_edge(tensor) for tensor in tensors]
    if any(edge is None for edge in edges):
        raise AssertionError("Expected gradient function to be set")
    nodes = [edge[0] for edge in edges if edge is not None]

    def hook_of(position: int) -> Callable:
        def hook(grad: Tensor) -> None:
            with lock:
                entry = of_this_pass(lambda: [sum(bool(Walk.executes(node)) for node in nodes), [None] * len(nodes)])
                entry[0] -= 1
                entry[1][position] = grad
                complete = not entry[0]
            if complete:
                fn(entry[1])

        return hook

    return _Handles([tensor.register_hook(hook_of(position)) for position, tensor in enumerate(tensors)])
