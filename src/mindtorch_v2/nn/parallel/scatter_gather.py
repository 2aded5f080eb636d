"""Tensors in containers, cut up for several devices and put together again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mindtorch_v2 as torch

__all__ = ["gather", "scatter", "scatter_kwargs"]


def _is_namedtuple(obj: Any) -> bool:
    return isinstance(obj, tuple) and hasattr(obj, "_asdict") and hasattr(obj, "_fields")


def is_namedtuple(obj: Any) -> bool:
    """Whether `obj` is a named tuple."""
    return _is_namedtuple(obj)


def _parts(tensor: torch.Tensor, devices: Sequence[Any], dim: int) -> list[torch.Tensor]:
    """The pieces of a tensor on their devices; fewer than there are devices if it is short."""
    for device in map(torch.device, devices):
        if device.type == "cpu":
            raise ValueError(f"Expected a non cpu device, but got: {device}")
    pieces = tensor.chunk(len(devices), dim)
    return [piece.to(torch.device(device)) for piece, device in zip(pieces, devices)]


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """The container once for each device: tensors in it cut along `dim`, everything else as it is.

    A named tuple, tuple, list or dict gives a tuple or list of such; of what holds no tensor there is the same for each device.

    Raises:
        ValueError: for the CPU, of which there is one.
    """

    def cut(obj: Any) -> Any:
        if isinstance(obj, torch.Tensor):
            return _parts(obj, target_gpus, dim)
        if _is_namedtuple(obj):
            return [type(obj)(*args) for args in zip(*map(cut, obj))]
        if isinstance(obj, tuple) and obj:
            return [*zip(*map(cut, obj))]
        if isinstance(obj, list) and obj:
            return [[*items] for items in zip(*map(cut, obj))]
        if isinstance(obj, dict) and obj:
            return [type(obj)(items) for items in zip(*map(cut, obj.items()))]
        return [obj for _ in target_gpus]

    return cut(inputs)


def scatter_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Sequence[Any], dim: int = 0
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """Positional and named arguments for each device, equally many of both."""
    rows = list(scatter(inputs, target_gpus, dim)) if inputs else []
    named = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    rows.extend(() for _ in range(len(named) - len(rows)))
    named.extend({} for _ in range(len(rows) - len(named)))
    return tuple(rows), tuple(named)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """One container of the tensors of several, joined along `dim` on a device (-1 and "cpu": the CPU).

    Raises:
        AssertionError: if a tensor is on the CPU.
        ValueError: if dicts have different keys.
    """
    device = torch.device("cpu" if target_device in (-1, "cpu") else target_device)

    def join(parts: Sequence[Any]) -> Any:
        first = parts[0]
        if isinstance(first, torch.Tensor):
            if any(part.device.type == "cpu" for part in parts):
                raise AssertionError("Gather function not implemented for CPU tensors")
            if all(part.dim() == 0 for part in parts):
                return torch.stack([part.to(device) for part in parts])
            return torch.cat([part.to(device) for part in parts], dim)
        if first is None:
            return None
        if isinstance(first, dict):
            if not all(len(first) == len(part) for part in parts):
                raise ValueError("All dicts must have the same number of keys")
            return type(first)((key, join([part[key] for part in parts])) for key in first)
        if _is_namedtuple(first):
            return type(first)(*map(join, zip(*parts)))
        return type(first)(map(join, zip(*parts)))

    return join(outputs)
