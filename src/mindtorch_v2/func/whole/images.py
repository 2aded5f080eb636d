"""Convolutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._dispatch import ops
from ..._tensor import Tensor
from ..batched import Level
from ..kinds import front

__all__ = ["convolved", "convolved_by"]


def convolved(
    level: Level,
    name: str,
    ndim: int,
    input: Tensor,
    weight: Tensor,
    bias: Any,
    groups: int,
    *options: Any,
    before: int = 3,
) -> Any:
    """The convolution of a name, whose `before` first options stand before `groups`."""

    def run(images: Tensor, kernels: Tensor, bias: Any, groups: int) -> Tensor:
        return getattr(ops, name)(images, kernels, bias, *options[:before], groups, *options[before:])

    return _convolved(level, run, ndim, input, weight, bias, groups, "transpose" in name)


def convolved_by(
    level: Level, input: Tensor, weight: Tensor, bias: Any, groups: int, transposed: bool, *options: Any
) -> Any:
    """The convolution that says by an argument whether it is transposed; `options` are those before `groups`."""

    def run(images: Tensor, kernels: Tensor, bias: Any, groups: int) -> Tensor:
        return ops.convolution(images, kernels, bias, *options, groups)

    return _convolved(level, run, weight.dim() - 2, input, weight, bias, groups, transposed)


def _convolved(
    level: Level, run: Callable, ndim: int, input: Tensor, weight: Tensor, bias: Any, groups: int, transposed: bool
) -> Any:
    """All examples' images by one call: those of one kernel are one batch, those of a kernel each are groups of channels."""
    alone = input.dim() == ndim + 1
    if weight.dim() != ndim + 2 or not (alone or input.dim() == ndim + 2):
        return None
    own = 1 if alone else input.shape[0]
    if not own:
        return None
    if not level(weight):
        count = (input if level(input) else bias)._value.shape[0]
        images = front(level, input, count)
        made = run(images if alone else images.flatten(0, 1), weight, None if level(bias) else bias, groups)
        made = made if alone else made.unflatten(0, (count, own))
        if not level(bias):
            return level.wrap(made)
        return level.wrap(made) + bias.reshape((-1, *([1] * ndim)))
    count = weight._value.shape[0]
    images = front(level, input, count)
    if alone:
        images = images.unsqueeze(1)
    if images.shape[2] != (weight.shape[0] if transposed else weight.shape[1] * groups):
        return None
    kernels = weight._value.flatten(0, 1)
    biases = None if bias is None else front(level, bias, count).reshape((-1,))
    made = run(images.movedim(0, 1).flatten(1, 2), kernels, biases, groups * count)
    made = made.unflatten(1, (count, made.shape[1] // count)).movedim(1, 0)
    return level.wrap(made.squeeze(1) if alone else made)
