"""Parameters as one vector and back."""

from __future__ import annotations

from collections.abc import Iterable

import mindtorch_v2 as torch

from ..._tensor import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _check_device(param: Tensor, first: Tensor | None) -> Tensor:
    if first is not None and param.device != first.device:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
    return param if first is None else first


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters flattened into one vector. Raises TypeError when they are on different devices."""
    first: Tensor | None = None
    pieces = []
    for param in parameters:
        first = _check_device(param, first)
        pieces.append(param.view(-1))
    return torch.cat(pieces)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Let the parameters view the pieces of ``vec``. Raises TypeError."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {torch.typename(vec)}")
    first: Tensor | None = None
    start = 0
    for param in parameters:
        first = _check_device(param, first)
        count = param.numel()
        param.data = vec[start : start + count].view_as(param).data
        start += count
