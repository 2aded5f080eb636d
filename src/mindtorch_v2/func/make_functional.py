"""Modules as functions of their parameters and buffers, as functorch had them before `torch.func.functional_call`."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable
from typing import Any

import mindtorch_v2 as torch

from ..nn.modules.module import Module
from ..nn.utils._named_member_accessor import NamedMemberAccessor

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "functional_init_with_buffers",
    "make_functional",
    "make_functional_with_buffers",
]


def _names(found: Iterable[tuple[str, Any]]) -> tuple[tuple[Any, ...], tuple[str, ...], dict[str, list[str]]]:
    """Tensors without repetition, the first name of each, and all names by the first."""
    tensors: dict[int, tuple[str, Any]] = {}
    names: dict[str, list[str]] = {}
    for name, tensor in found:
        first = tensors.setdefault(id(tensor), (name, tensor))[0]
        names.setdefault(first, []).append(name)
    return tuple(tensor for _, tensor in tensors.values()), tuple(names), names


def _taken(model: Any, kind: str, disable_autograd_tracking: bool = False) -> Any:
    """The parameters or buffers of a model, which keeps meta tensors in their places."""
    members = [*getattr(model, kind)(remove_duplicate=False)]
    tensors, first, names = _names(members)
    access = NamedMemberAccessor(model)
    for name, tensor in members:
        empty = torch.empty_like(tensor, device="meta")
        access.set_tensor(name, torch.nn.Parameter(empty) if kind == "named_parameters" else empty)
    if disable_autograd_tracking:
        for tensor in tensors:
            tensor.requires_grad_(False)
    return tensors, first, names


class _Stateless(Module):
    """A module without a state, which its caller gives."""

    stateless_model: Any

    def _called(self, names: dict[str, list[str]], state: tuple[Any, ...], args: Any, kwargs: Any) -> Any:
        access = NamedMemberAccessor(self.stateless_model)
        swapped = [(name, tensor) for group, tensor in zip(names.values(), state) for name in group]
        former = [(name, access.swap_tensor(name, tensor)) for name, tensor in swapped]
        try:
            return self.stateless_model(*args, **kwargs)
        finally:
            for name, tensor in former:
                access.swap_tensor(name, tensor)


class FunctionalModule(_Stateless):
    """A module whose call takes its parameters first; see `make_functional`."""

    def __init__(self, stateless_model: Any, param_names: tuple[str, ...], names_map: dict[str, list[str]]) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = param_names
        self.names_map = names_map

    @staticmethod
    def _create_from(model: Any, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, tuple[Any, ...]]:
        model = copy.deepcopy(model)
        params, names, names_map = _taken(model, "named_parameters", disable_autograd_tracking)
        return FunctionalModule(model, names, names_map), params

    def forward(self, params: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
        """Call the module with these parameters."""
        return self._called(self.names_map, tuple(params), args, kwargs)


class FunctionalModuleWithBuffers(_Stateless):
    """A module whose call takes its parameters and its buffers first; see `make_functional_with_buffers`."""

    def __init__(
        self,
        stateless_model: Any,
        param_names: tuple[str, ...],
        buffer_names: tuple[str, ...],
        param_names_map: dict[str, list[str]],
        buffer_names_map: dict[str, list[str]],
    ) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = param_names
        self.buffer_names = buffer_names
        self.all_names_map = param_names_map | buffer_names_map

    @staticmethod
    def _create_from(
        model: Any, disable_autograd_tracking: bool = False
    ) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
        model = copy.deepcopy(model)
        params, names, names_map = _taken(model, "named_parameters", disable_autograd_tracking)
        buffers, buffer_names, buffer_names_map = _taken(model, "named_buffers")
        made = FunctionalModuleWithBuffers(model, names, buffer_names, names_map, buffer_names_map)
        return made, params, buffers

    def forward(self, params: Iterable[Any], buffers: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
        """Call the module with these parameters and buffers."""
        return self._called(self.all_names_map, (*params, *buffers), args, kwargs)


def _deprecated(name: str, instead: str) -> None:
    warnings.warn(
        f"`functorch.{name}` is deprecated as of PyTorch 2.0. Please use `torch.func.{instead}` instead.",
        FutureWarning,
        stacklevel=3,
    )


def make_functional(model: Any, disable_autograd_tracking: bool = False) -> Any:
    """(function, parameters): a copy of a model as a function `function(parameters, *args)`.

    Raises:
        RuntimeError: if the model has buffers.
    """
    _deprecated("make_functional", "functional_call")
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    return FunctionalModule._create_from(model, disable_autograd_tracking=disable_autograd_tracking)


def make_functional_with_buffers(model: Any, disable_autograd_tracking: bool = False) -> Any:
    """(function, parameters, buffers): a copy of a model as a function `function(parameters, buffers, *args)`."""
    _deprecated("make_functional_with_buffers", "functional_call")
    return FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking=disable_autograd_tracking)


def functional_init_with_buffers(
    model_class: type, ensemble_shape: tuple[int, ...] | list[int] = (), device: Any = "cpu"
) -> Any:
    """What makes, of a module's arguments, (parameters, buffers, function, their names): those of as many modules as `ensemble_shape` says.

    `function(parameters, buffers, arguments)` calls one of them. ValueError for shapes of several dimensions and sizes below 1.
    """

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if len(ensemble_shape) > 1:
            raise ValueError("NYI: ensemble_shape with more than 1 element")
        if ensemble_shape and ensemble_shape[0] <= 0:
            raise ValueError(f"num_models {ensemble_shape[0]} should be > 0")
        made = [
            FunctionalModuleWithBuffers._create_from(model_class(*args, **kwargs).to(device))
            for _ in range(ensemble_shape[0] if ensemble_shape else 1)
        ]
        first = made[0][0]
        weights, buffers = made[0][1:]
        if ensemble_shape:
            weights, buffers = (
                tuple(torch.stack(parts).detach() for parts in zip(*(one[kind] for one in made))) for kind in (1, 2)
            )

        def function(weights: Any, buffers: Any, data: Any) -> Any:
            return first(weights, buffers, *data)

        return weights, buffers, function, first.param_names, first.buffer_names

    return wrapped


def combine_state_for_ensemble(models: Any) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
    """(function, parameters, buffers) of modules of one class, stacked: for `vmap` over the function.

    Raises:
        RuntimeError: for no models, and for models of several classes or of several modes.
    """
    _deprecated("combine_state_for_ensemble", "stack_module_state")
    models = list(models)
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or not any(m.training for m in models)):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    made = [FunctionalModuleWithBuffers._create_from(model) for model in models]
    params, buffers = (tuple(torch.stack(same).detach() for same in zip(*(one[k] for one in made))) for k in (1, 2))
    return made[0][0], params, buffers
