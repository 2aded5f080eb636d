"""`replicate`: what DistributedDataParallel does, of a module that stays what it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

import mindtorch_v2 as torch

from ..modules.container import ParameterList
from ..modules.module import Module
from .distributed import DistributedDataParallel

__all__ = ["replicate"]


class DDP:
    """What a replicated module can do besides."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A member made by indexing is of the class that the module had."""
        return cls.__mro__[2](*args, **kwargs)

    def set_requires_gradient_sync(self, requires_gradient_sync: bool) -> None:
        """Whether the next backward passes exchange gradients, or add them up."""
        self.__dict__["_replicated"].require_backward_grad_sync = requires_gradient_sync

    def register_comm_hook(self, *args: Any, **kwargs: Any) -> None:
        """As that of DistributedDataParallel."""
        self.__dict__["_replicated"].register_comm_hook(*args, **kwargs)


def _no_copy(*args: Any, **kwargs: Any) -> NoReturn:
    raise AssertionError("DDP does not support deepcopy. Please use state dict for serialization.")


def replicate(module: Module, ignored_modules: Iterable[Module] | None = None, **kwargs: Any) -> Module:
    """Average the gradients of a module's parameters over all ranks, from now on; the module itself, whose names do not change. Buffers stay each rank's own.

    Args:
        ignored_modules: members whose parameters are left alone.
        kwargs: of DistributedDataParallel, and `device_id` in place of its devices.

    Raises:
        RuntimeError: for another `device_id` than a number or a device, and for a module that `fully_shard` has divided.
    """
    device = kwargs.pop("device_id", 0)
    if not isinstance(device, (int, torch.device)):
        raise RuntimeError(f"Expected device_id to be int or torch.device, but got {type(device)}")
    if isinstance(module, torch.distributed.fsdp.FSDPModule):
        raise RuntimeError("Cannot apply `replicate()` on a Module already managed by `fully_shard`")
    ignored = {id(value) for one in ignored_modules or () for value in one.parameters()}
    made = DistributedDataParallel(ParameterList(p for p in module.parameters() if id(p) not in ignored), **kwargs)
    module.__dict__["_replicated"] = made
    module.register_forward_pre_hook(lambda *_: made._before_forward())
    module.register_forward_hook(lambda _, __, output: made._after_forward(output))
    kind = type(module)
    module.__class__ = type(f"DDP{kind.__name__}", (DDP, kind), {"__deepcopy__": _no_copy})
    return module
