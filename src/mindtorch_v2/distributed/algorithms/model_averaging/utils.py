"""Averages of parameters over ranks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import mindtorch_v2 as torch

from ... import distributed_c10d as dist

__all__ = ["average_parameters", "average_parameters_or_parameter_groups", "get_params_to_average"]


def average_parameters(params: Iterator[Any], process_group: Any) -> None:
    """Put the average over the ranks of a group into each parameter."""
    group = process_group if process_group is not None else dist._get_default_group()
    if dist._rank_not_in_group(group):
        return
    with torch.no_grad():
        kept = [param for param in params]
        flat = torch.cat([param.data.reshape(-1) for param in kept])
        flat /= dist.get_world_size(group)
        dist.all_reduce(flat, group=group)
        for param, part in zip(kept, flat.split([param.numel() for param in kept])):
            param.data.copy_(part.view(param.shape))


def get_params_to_average(params: Iterable[Any]) -> list[Any]:
    """The parameters that have a gradient, of parameters or of parameter groups."""
    found = []
    for one in params:
        for param in one["params"] if isinstance(one, dict) else [one]:
            if not isinstance(param, torch.Tensor):
                raise NotImplementedError(f"Parameter input of type {type(param)} is not supported")
            if param.grad is not None:
                found.append(param)
    return found


def average_parameters_or_parameter_groups(params: Iterable[Any], process_group: Any) -> None:
    """`average_parameters` of those that have a gradient."""
    average_parameters(iter(get_params_to_average(params)), process_group)
