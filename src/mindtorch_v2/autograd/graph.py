"""`torch.autograd.graph`: nodes, and hooks on saved tensors."""

from __future__ import annotations

from typing import NoReturn

from .._autograd.modes import saved_tensors_hooks
from .._autograd.node import Node
from .._tensor import Tensor


class GradientEdge(tuple):
    """A node and the number of one of its outputs."""

    __slots__ = ()

    def __new__(cls, node: Node, output_nr: int) -> GradientEdge:
        return tuple.__new__(cls, (node, output_nr))

    @property
    def node(self) -> Node:
        return self[0]

    @property
    def output_nr(self) -> int:
        return self[1]


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge through which the gradient of a tensor arrives. RuntimeError when it requires none."""
    from .._autograd.engine import root_edge

    edge = root_edge(tensor)
    if edge is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(*edge)


class save_on_cpu(saved_tensors_hooks):
    """Keep saved tensors in CPU memory, and bring them back to their device when they are needed."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        def pack(tensor: Tensor) -> tuple:
            return (tensor.device, tensor.cpu())

        def unpack(packed: tuple) -> Tensor:
            device, tensor = packed
            return tensor.to(device)

        super().__init__(pack, unpack)


class disable_saved_tensors_hooks:
    """Inside, entering saved-tensor hooks raises a RuntimeError with the given message."""

    def __init__(self, error_message: str):
        self.message = error_message

    def __enter__(self) -> None:
        self.before = saved_tensors_hooks.__enter__
        message = self.message

        def refuse(self: saved_tensors_hooks) -> NoReturn:
            raise RuntimeError(message)

        saved_tensors_hooks.__enter__ = refuse

    def __exit__(self, *exc: object) -> None:
        saved_tensors_hooks.__enter__ = self.before


__all__ = [
    "GradientEdge",
    "Node",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "save_on_cpu",
    "saved_tensors_hooks",
]
