"""`torch.autograd.forward_ad`: forward-mode derivatives are not implemented; the names say so when they are called."""

from __future__ import annotations

from typing import Any


class dual_level:
    """A level of forward-mode differentiation."""

    def __enter__(self) -> None:
        raise NotImplementedError("forward-mode automatic differentiation is not implemented")

    def __exit__(self, *exc: object) -> None:
        pass


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """A dual tensor."""
    raise NotImplementedError("forward-mode automatic differentiation is not implemented")


def unpack_dual(tensor: Any, *, level: int | None = None) -> Any:
    """The parts of a dual tensor."""
    raise NotImplementedError("forward-mode automatic differentiation is not implemented")
