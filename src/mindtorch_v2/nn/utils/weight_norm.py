"""Weight normalization by a hook: the former way of :func:`~mindtorch_v2.nn.utils.parametrizations.weight_norm`."""

from __future__ import annotations

import warnings
from typing import Any

from ..._tensor import Tensor
from ..modules.module import Module
from ..parameter import Parameter, is_lazy
from ._pre_hooks import remove

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


def norm_except_dim(weight: Tensor, power: int, dim: int) -> Tensor:
    """The norms over all dimensions but ``dim``, which keeps its place (-1: over all, a scalar)."""
    if dim == -1:
        return weight.norm(power)
    shape = [1] * weight.dim()
    shape[dim] = weight.size(dim)
    return weight.transpose(0, dim).reshape(weight.size(dim), -1).norm(power, 1).view(shape)


def scaled(direction: Tensor, magnitude: Tensor, dim: int) -> Tensor:
    """``direction`` scaled to the norms ``magnitude``."""
    return direction * (magnitude / norm_except_dim(direction, 2, dim))


class WeightNorm:
    """The hook that makes ``name`` out of ``name_g`` and ``name_v`` before each call."""

    name: str
    dim: int

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """The weight of the present magnitude and direction."""
        return scaled(getattr(module, f"{self.name}_v"), getattr(module, f"{self.name}_g"), self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Split ``name`` and register the hook. Raises RuntimeError for a second one, ValueError for a lazy module."""
        warnings.warn(
            "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
            FutureWarning,
            stacklevel=3,
        )
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the dummy "
                "forward before applying weight normalization"
            )
        del module._parameters[name]
        module.register_parameter(f"{name}_g", Parameter(norm_except_dim(weight, 2, hook.dim).data))
        module.register_parameter(f"{name}_v", Parameter(weight.data))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module: Module) -> None:
        """Make ``name`` an ordinary parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[f"{self.name}_g"]
        del module._parameters[f"{self.name}_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Split the parameter ``name`` into ``name_g`` (norms along ``dim``, None: one norm) and ``name_v`` (direction)."""
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Undo :func:`weight_norm`. Raises ValueError when there is nothing to undo."""
    return remove(module, WeightNorm, name, "weight_norm")
