"""Calling a module with other parameters and buffers than its own."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..._tensor import Tensor
from ..modules.module import Module

__all__ = ["functional_call"]


def _tied_names(module: Module) -> list[set[str]]:
    """The names that stand for one tensor, for each tensor with several names."""
    by_tensor: dict[Tensor, set[str]] = {}
    for members in (module.named_parameters, module.named_buffers):
        for name, tensor in members(remove_duplicate=False):
            by_tensor.setdefault(tensor, set()).add(name)
    return [names for names in by_tensor.values() if len(names) > 1]


def _untie(module: Module, given: dict[str, Tensor]) -> dict[str, Tensor]:
    """``given`` with each tensor under all names that are tied to its own. Raises ValueError for a contradiction."""
    complete = dict(given)
    for names in _tied_names(module):
        present = names & given.keys()
        if len(present) > 1 and len({given[name] for name in present}) != 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(names)}, which are tied. "
                "Consider using tie_weights=False"
            )
        for name in names if present else ():
            complete[name] = given[next(iter(present))]
    return complete


_ABSENT = object()


def _owner(module: Module, name: str) -> tuple[Module, str]:
    """The submodule and the last part of a dotted name. KeyError for an empty last part, AttributeError and TypeError where there is no module."""
    *path, leaf = name.split(".")
    if not leaf:
        raise KeyError('tensor name can\'t be empty string ""')
    owner = module
    for part in path:
        found = getattr(owner, part, _ABSENT)
        if found is _ABSENT:
            raise AttributeError(f"{owner._get_name()} has no attribute `{part}`")
        if not isinstance(found, Module):
            raise TypeError(f"submodule `{part}`: {found} is not an instance of torch.nn.Module")
        owner = found
    return owner, leaf


def _swap(owner: Module, leaf: str, tensor: Any) -> Any:
    """Put ``tensor``, or nothing for _ABSENT, in the place of a member; what was there."""
    if tensor is not _ABSENT and tensor is not None and not isinstance(tensor, Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    for kind in ("_parameters", "_buffers"):
        members = owner.__dict__[kind]
        if leaf in members:
            before = members[leaf]
            if tensor is _ABSENT:
                del members[leaf]
            else:
                members[leaf] = tensor
            return before
    before = getattr(owner, leaf, _ABSENT)
    if before is not _ABSENT and before is not None and not isinstance(before, Tensor):
        raise TypeError(f"attribute `{leaf}`: {before} is not an instance of torch.Tensor")
    if tensor is not _ABSENT:
        setattr(owner, leaf, tensor)
    elif before is not _ABSENT:
        delattr(owner, leaf)
    return before


@contextmanager
def _reparametrize_module(
    module: Module, parameters_and_buffers: dict[str, Tensor], tie_weights: bool = False, strict: bool = False
) -> Iterator[None]:
    if not hasattr(parameters_and_buffers, "keys"):
        raise AttributeError(f"'{type(parameters_and_buffers).__name__}' object has no attribute 'keys'")
    given = _untie(module, parameters_and_buffers) if tie_weights else parameters_and_buffers
    own = {name for name, _ in module.named_parameters(remove_duplicate=False)}
    own |= {name for name, _ in module.named_buffers(remove_duplicate=False)}
    if strict:
        problems = []
        unexpected, missing = given.keys() - own, own - given.keys()
        if unexpected:
            problems.append(f"Unexpected key(s): {', '.join(map(repr, sorted(unexpected)))}.")
        if missing:
            problems.append(f"Missing key(s): {', '.join(map(repr, sorted(missing)))}.")
        if problems:
            lines = "\n\t".join(problems)
            raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t{lines}")
    swapped: list[tuple[str, Module, str, Any]] = []
    try:
        for name, tensor in given.items():
            owner, leaf = _owner(module, name)
            swapped.append((name, owner, leaf, _swap(owner, leaf, tensor)))
        yield
    finally:
        for name, owner, leaf, before in reversed(swapped):
            now = _swap(owner, leaf, before)
            if name in parameters_and_buffers and now is not _ABSENT:
                # What the forward assigned (running statistics, say) is handed back to the caller.
                parameters_and_buffers[name] = now


def _functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights=tie_weights, strict=strict):
        return module(*args, **(kwargs or {}))


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call ``module`` with the given tensors in place of those of these dotted names.

    ``strict`` wants exactly the module's names; ``tie_weights`` replaces a tensor under all of its names.
    """
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future version of PyTorch. "
        "Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)
