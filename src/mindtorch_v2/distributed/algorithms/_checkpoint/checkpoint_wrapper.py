"""Modules that wrap others, so that fewer activations are kept: names of parameters and state dicts are those of the modules inside."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import partial
from typing import Any

import mindtorch_v2 as torch

from ....autograd.graph import save_on_cpu
from ....utils.checkpoint import checkpoint
from ...fsdp.wrap import lambda_auto_wrap_policy, modules_to_wrap

__all__ = [
    "ActivationWrapper",
    "CheckpointImpl",
    "CheckpointWrapper",
    "OffloadWrapper",
    "apply_activation_checkpointing",
    "checkpoint_wrapper",
    "offload_wrapper",
]

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = _CHECKPOINT_WRAPPED_MODULE + "."

nn = torch.nn


class CheckpointImpl(Enum):
    """Which way of checkpointing: see `torch.utils.checkpoint.checkpoint`."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


def _renamed(state_dict: dict[str, Any], old: str, new: str) -> None:
    for key in [key for key in state_dict if key.startswith(old)] if old != new else []:
        state_dict[new + key[len(old) :]] = state_dict.pop(key)


class ActivationWrapper(nn.Module, ABC):
    """A module around another one, whose attributes, names of parameters and state dict are those of the inner one."""

    def __init__(self, mod: Any) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(self._post_state_dict_hook)
        self.register_load_state_dict_pre_hook(self._pre_load_state_dict_hook)

    @abstractmethod
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the inner module."""
        raise ValueError("Subclasses should implement forward().")

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key: int) -> Any:
        return self._checkpoint_wrapped_module.__getitem__(key)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """The parameters, by names without the wrappers' own."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), parameter

    @staticmethod
    def _post_state_dict_hook(module: Any, state_dict: dict[str, Any], prefix: str, *args: Any) -> dict[str, Any]:
        _renamed(state_dict, prefix + _CHECKPOINT_PREFIX, prefix)
        return state_dict

    @staticmethod
    def _pre_load_state_dict_hook(module: Any, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        _renamed(state_dict, prefix, prefix + _CHECKPOINT_PREFIX)


class OffloadWrapper(ActivationWrapper):
    """Keeps what the inner module saves for the backward pass on the CPU."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """Computes the inner module again in the backward pass: by `checkpoint_fn`, or `torch.utils.checkpoint.checkpoint`."""

    def __init__(
        self,
        mod: Any,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable | None = None,
        **checkpoint_fn_kwargs: Any,
    ) -> None:
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            checkpoint_fn = partial(checkpoint, use_reentrant=checkpoint_impl == CheckpointImpl.REENTRANT)
        self.checkpoint_fn = partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if self.checkpoint_impl != CheckpointImpl.REENTRANT or not kwargs:
            return self.checkpoint_fn(self._checkpoint_wrapped_module, *args, **kwargs)
        names = tuple(kwargs)

        def by_position(*values: Any) -> Any:
            named = values[len(values) - len(names) :]
            return self._checkpoint_wrapped_module(
                *values[: len(values) - len(names)], **dict(zip(names, named, strict=True))
            )

        return self.checkpoint_fn(by_position, *args, *kwargs.values())


def offload_wrapper(module: Any) -> Any:
    """The module, with what it saves for the backward pass on the CPU."""
    return OffloadWrapper(module)


def checkpoint_wrapper(
    module: Any,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable | None = None,
    **checkpoint_fn_kwargs: Any,
) -> Any:
    """The module, computed again in the backward pass.

    Args:
        checkpoint_fn: instead of `torch.utils.checkpoint.checkpoint`; `checkpoint_fn_kwargs` are its further arguments.
    """
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
    model: Any,
    checkpoint_wrapper_fn: Callable = checkpoint_wrapper,
    check_fn: Callable[[Any], bool] = lambda _: True,
    auto_wrap_policy: Any = None,
) -> None:
    """Wrap the modules below a model for which `check_fn` is true, or those that a policy of FullyShardedDataParallel chooses, in place."""
    policy = auto_wrap_policy or partial(lambda_auto_wrap_policy, lambda_fn=check_fn)
    chosen = modules_to_wrap(model, policy, set())
    places: dict[Any, list[tuple[Any, str]]] = {}
    for parent in list(model.modules()):
        for name, child in parent.named_children():  # a module that stands there twice is wrapped in its first place
            places.setdefault(child, []).append((parent, name))
    for module, options in chosen.items():
        for parent, name in places[module][: None if callable(policy) else 1]:
            setattr(parent, name, checkpoint_wrapper_fn(module, **options))
