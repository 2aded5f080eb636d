"""Derivatives estimated from values on a grid (`torch.gradient`)."""

from __future__ import annotations

from typing import Any

from mindtorch_v2 import _dtype
from mindtorch_v2._generated import functions as F
from mindtorch_v2._rules._common import wrap_existing_dim
from mindtorch_v2._tensor import Tensor


def gradient(self: Tensor, spacing: Any, dim: Any, edge_order: int) -> tuple[Tensor, ...]:
    """The derivative along each dimension: differences of the neighbours inside, one-sided ones of `edge_order` at the ends.

    `spacing` is a number, one per dimension, or the coordinates of the points as a tensor per dimension. Of uneven distances the interior is the
    second-order estimate from both neighbours.
    """
    dims = _dims(self, spacing, dim)
    spacings = list(spacing) if isinstance(spacing, (list, tuple)) else [spacing] * len(dims)
    _check(self, spacings, dims, dim, edge_order)
    return tuple(_along(self, one, step, edge_order) for one, step in zip(dims, spacings))


def gradient_of_dims(self: Tensor, dim: Any, edge_order: int) -> tuple[Tensor, ...]:
    """`gradient` with a distance of 1."""
    return gradient(self, None, dim, edge_order)


def _dims(self: Tensor, spacing: Any, dim: Any) -> list[int]:
    if dim is None:
        return list(range(self.dim()))
    return [dim] if isinstance(dim, int) else list(dim)


def _check(self: Tensor, spacings: list, dims: list[int], dim: Any, edge_order: int) -> None:
    if self.dtype == _dtype.uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if len(spacings) != len(dims):
        if dim is not None:
            raise RuntimeError(
                "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the same length, "
                f"but got a spacing argument of length {len(spacings)} and a dim argument of length {len(dims)}."
            )
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to "
            f"'self.dim() = {self.dim()}', since dim argument was not given, but got a list of length {len(spacings)}"
        )
    seen: set[int] = set()
    for one in dims:
        place = wrap_existing_dim(one, self.dim())
        if place in seen:
            raise RuntimeError(f"dim {place} appears multiple times in the list of dims")
        seen.add(place)
        if self.shape[place] < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    for step in spacings:
        if isinstance(step, Tensor) and step.dim() != 1:
            raise RuntimeError(
                f"torch.gradient expected each element of spacing to have one dimension, but got an element with {step.dim()} dimensions!"
            )


def _along(self: Tensor, dim: int, step: Any, edge_order: int) -> Tensor:
    """The derivative along one dimension."""
    size = self.shape[dim]
    steps = _steps(self, dim, step)

    def part(start: int, length: int) -> Tensor:
        return F.narrow(self, dim, start, length)

    def between(start: int, length: int) -> Any:
        return F.narrow(steps, dim, start, length) if isinstance(steps, Tensor) else steps

    def end(places: tuple[int, int, int], near: int, far: int, sign: int) -> Tensor:
        """The one-sided estimate at the first of three places, `near` and `far` being the numbers of the gaps between them."""
        if edge_order == 1:
            difference = F.sub(part(places[1], 1), part(places[0], 1))
            return F.div(difference if sign > 0 else F.neg(difference), between(near, 1))
        h, k = between(near, 1), between(far, 1)
        first = -(2.0 * h + k) / (h * (h + k))
        second, third = (h + k) / (h * k), -h / (k * (h + k))
        total = part(places[0], 1) * first + part(places[1], 1) * second + part(places[2], 1) * third
        return total if sign > 0 else F.neg(total)

    pieces = [end((0, 1, min(2, size - 1)), 0, 1, 1)]
    if size > 2:
        if isinstance(steps, Tensor):
            before, after = between(0, size - 2), between(1, size - 2)
            pieces.append(
                part(2, size - 2) * (before / (after * (before + after)))
                + part(1, size - 2) * ((after - before) / (before * after))
                - part(0, size - 2) * (after / (before * (before + after)))
            )
        else:
            pieces.append(F.div(F.sub(part(2, size - 2), part(0, size - 2)), 2 * steps))
    pieces.append(end((size - 1, size - 2, max(size - 3, 0)), size - 2, size - 3, -1))
    return F.cat(pieces, dim)


def _steps(self: Tensor, dim: int, step: Any) -> Any:
    """The distances of neighbours: a number, or a tensor that broadcasts along `dim`."""
    if not isinstance(step, Tensor):
        return 1 if step is None else step
    shape = [1] * self.dim()
    shape[dim] = -1
    return F.reshape(F.diff(step), shape)
