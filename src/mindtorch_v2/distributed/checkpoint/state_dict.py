"""State dicts of models and optimizers by parameters' names, however the model is wrapped, as pieces or whole.

Note [Names]
A parameter's name is the one that it has in the model without wrappers: what DistributedDataParallel, FullyShardedDataParallel and compiled modules put in between is left out. An optimizer's state has
these names in place of numbers, so that it fits any number of ranks and another order of parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import mindtorch_v2 as torch

from .. import _groups
from .._collectives import broadcast
from .._objects import broadcast_object_list
from ..tensor import DTensor, distribute_tensor

__all__ = ["StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict", "set_optimizer_state_dict", "set_state_dict"]  # fmt: skip

_WRAPPERS = ("_fsdp_wrapped_module", "_orig_mod", "_checkpoint_wrapped_module")
_STATE, _GROUPS, _PARAMS = "state", "param_groups", "params"


@dataclass
class StateDictOptions:
    """How state dicts are made and taken.

    full_state_dict: whole tensors in place of DTensors. cpu_offload: on the CPU; whole ones at the first rank only. ignore_frozen_params: without parameters that need no gradient.
    keep_submodule_prefixes: with `submodules`, names begin with those of the modules. strict: as for `load_state_dict`. broadcast_from_rank0: the first rank alone has the whole state dict.
    flatten_optimizer_state_dict: names with dots in place of nested dicts.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"

    def __post_init__(self) -> None:
        if self.broadcast_from_rank0 and not self.full_state_dict:
            raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")


def _is_ddp(module: Any) -> bool:
    return isinstance(module, torch.nn.parallel.DistributedDataParallel)


def _clean(model: Any, name: str) -> str:
    """A parameter's name without wrappers: see Note [Names]."""
    kept = []
    here = model
    for atom in name.split("."):
        wrapper = atom in _WRAPPERS or (atom == "module" and _is_ddp(here))
        if not wrapper:
            kept.append(atom)
        here = getattr(here, atom, None)
    return ".".join(kept)


def _names(model: Any) -> dict[Any, str]:
    """The name of each parameter."""
    return {parameter: _clean(model, name) for name, parameter in model.named_parameters()}


def _to_parts(model: Any) -> None:
    """Have parameters that are gathered in pieces again."""
    for part in model.modules():
        state = vars(part).get("_fsdp_state")
        if state is not None and state.group is not None:
            state.group.release()


@contextmanager
def _own_pieces(model: Any) -> Iterator[None]:
    """Have wrappers give DTensors."""
    with ExitStack() as stack:
        for part in model.modules():
            if hasattr(type(part), "_in_pieces"):
                stack.enter_context(part._in_pieces())
        yield


def _as_asked(value: Any, options: StateDictOptions) -> Any:
    """A value of a state dict as the options say; None where this rank does not get it."""
    if isinstance(value, dict):
        return {key: _as_asked(item, options) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_asked(item, options) for item in value]
    if not isinstance(value, torch.Tensor):
        return value
    if options.full_state_dict and isinstance(value, DTensor):
        value = value.full_tensor()
    return value.detach().cpu() if options.cpu_offload else value.detach()


def _for_this_rank(made: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    if options.full_state_dict and options.cpu_offload and _groups.is_initialized() and _groups.get_rank():
        return {}
    return made


def get_model_state_dict(
    model: Any, *, submodules: set | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The model's state by names: see Note [Names]. All ranks call it."""
    options = options or StateDictOptions()
    _to_parts(model)
    with _own_pieces(model):
        state = model.state_dict()
    frozen = (
        {_clean(model, name) for name, p in model.named_parameters() if not p.requires_grad}
        if options.ignore_frozen_params
        else set()
    )
    made = {}
    for key, value in state.items():
        name = _clean(model, key)
        if name not in frozen:
            made[name] = value
    if submodules is not None:
        chosen = {}
        for path, module in model.named_modules():
            if module in submodules:
                prefix = f"{_clean(model, path)}." if path else ""
                for name, value in made.items():
                    if name.startswith(prefix):
                        chosen[name if options.keep_submodule_prefixes else name[len(prefix) :]] = value
        made = chosen
    return _for_this_rank(_as_asked(made, options), options)


def _optimizers(optimizers: Any) -> list[Any]:
    return [optimizers] if isinstance(optimizers, torch.optim.Optimizer) else list(optimizers)


def _start(optimizer: Any) -> None:
    """Have an optimizer make its state, by a step of gradients that are zero and change nothing."""
    if optimizer.state:
        return
    parameters = [p for group in optimizer.param_groups for p in group[_PARAMS]]
    if any(p.grad is not None for p in parameters):
        return
    rates = [group["lr"] for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        group["lr"] = torch.tensor(0.0) if isinstance(group["lr"], torch.Tensor) else 0.0
    for parameter in parameters:
        if parameter.requires_grad:
            parameter.grad = torch.zeros_like(parameter.detach())
    optimizer.step(closure=None)
    for group, rate in zip(optimizer.param_groups, rates):
        group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


def get_optimizer_state_dict(
    model: Any, optimizers: Any, *, submodules: set | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The optimizers' state by parameters' names: {"state": {name: ...}, "param_groups": [{"params": names, ...}]}. All ranks call it."""
    options = options or StateDictOptions()
    _to_parts(model)
    names = _names(model)
    made: dict[str, Any] = {_STATE: {}, _GROUPS: []}
    for optimizer in _optimizers(optimizers):
        _start(optimizer)
        state = optimizer.state_dict()
        numbered = [p for group in optimizer.param_groups for p in group[_PARAMS]]
        by_number = {number: names[p] for number, p in enumerate(numbered)}
        for number, values in state[_STATE].items():
            made[_STATE][by_number[number]] = values
        for group in state[_GROUPS]:
            made[_GROUPS].append({**group, _PARAMS: [by_number[number] for number in group[_PARAMS]]})
    if submodules is not None:
        prefixes = [f"{_clean(model, path)}." for path, module in model.named_modules() if module in submodules]
        made[_STATE] = {
            name: value for name, value in made[_STATE].items() if any(name.startswith(p) for p in prefixes)
        }
        for group in made[_GROUPS]:
            group[_PARAMS] = [name for name in group[_PARAMS] if any(name.startswith(p) for p in prefixes)]
    made = _as_asked(made, options)
    if options.flatten_optimizer_state_dict:
        made = _flattened(made)
    return _for_this_rank(made, options)


def _flattened(state: dict[str, Any]) -> dict[str, Any]:
    made = {f"{_STATE}.{name}.{key}": value for name, values in state[_STATE].items() for key, value in values.items()}
    for group in state[_GROUPS]:
        for name in group[_PARAMS]:
            made |= {f"{_GROUPS}.{name}.{key}": value for key, value in group.items() if key != _PARAMS}
    return made


def _unflattened(flat: dict[str, Any], optimizers: list[Any], names: dict[Any, str]) -> dict[str, Any]:
    made: dict[str, Any] = {_STATE: {}, _GROUPS: []}
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            own = [names[p] for p in group[_PARAMS]]
            entry: dict[str, Any] = {_PARAMS: own}
            for name in own:
                prefix = f"{_STATE}.{name}."
                values = {key[len(prefix) :]: value for key, value in flat.items() if key.startswith(prefix)}
                if values:
                    made[_STATE][name] = values
                for key in group:
                    if f"{_GROUPS}.{name}.{key}" in flat:
                        entry[key] = flat[f"{_GROUPS}.{name}.{key}"]
            made[_GROUPS].append(entry)
    return made


def get_state_dict(
    model: Any, optimizers: Any, *, submodules: set | None = None, options: StateDictOptions | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(`get_model_state_dict`, `get_optimizer_state_dict`)."""
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


# Taking state


def _from_first(given: dict[str, Any], wanted: Callable[[str], Any]) -> dict[str, Any]:
    """The first rank's whole tensors, each rank its pieces of those for which `wanted` gives DTensors; other values as they are."""
    first = _groups.get_rank() == 0
    said = [
        {name: (tuple(v.shape), v.dtype) if isinstance(v, torch.Tensor) else ("value", v) for name, v in given.items()}
        if first
        else None
    ]
    broadcast_object_list(said, 0)
    made: dict[str, Any] = {}
    for name, (shape, kind) in said[0].items():  # type: ignore[union-attr]
        if shape == "value":
            made[name] = kind
            continue
        whole = torch.empty(shape, dtype=kind)
        if first:
            whole.copy_(given[name].detach())
        shared = whole.to(_groups._get_pg_default_device())
        broadcast(shared, 0)
        made[name] = _like(whole if shared is whole else whole.copy_(shared), wanted(name))
    return made


def _like(value: Any, wanted: Any) -> Any:
    """A whole tensor in the pieces of another one."""
    if not isinstance(value, torch.Tensor) or not isinstance(wanted, DTensor) or isinstance(value, DTensor):
        return value
    if tuple(value.shape) != tuple(wanted.shape):
        return value
    where = wanted.device_mesh.device_type if wanted.device.type == "meta" else wanted.device
    return distribute_tensor(value.detach().to(where), wanted.device_mesh, wanted.placements, src_data_rank=None)


def set_model_state_dict(
    model: Any, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Take what `get_model_state_dict` gave: DTensors, or whole tensors. The keys that were missing and unexpected, as of `load_state_dict`. All ranks call it."""
    options = options or StateDictOptions()
    _to_parts(model)
    with _own_pieces(model):
        held = model.state_dict()
        own = {_clean(model, key): key for key in held}
        wanted = {name: held[key] for name, key in own.items()}
        given: dict[str, Any] = dict(model_state_dict)
        if given and isinstance(next(iter(given.values())), dict) and not options.broadcast_from_rank0:
            paths = {module: _clean(model, path) for path, module in model.named_modules()}
            given = {
                f"{paths[module]}.{name}" if paths[module] else name: value
                for module, part in given.items()
                for name, value in part.items()
            }  # type: ignore[index]
        if options.broadcast_from_rank0:
            given = _from_first(given, wanted.get)
        made = {own.get(name, name): _like(value, wanted.get(name)) for name, value in given.items()}
        return model.load_state_dict(
            made,
            strict=options.strict,
            assign=any(v.device.type == "meta" for v in held.values() if isinstance(v, torch.Tensor)),
        )


def optimizer_state_to_load(model: Any, optimizer: Any, given: dict[str, Any]) -> dict[str, Any]:
    """What an optimizer's `load_state_dict` takes, of a state by names."""
    names = _names(model)
    numbered = [p for group in optimizer.param_groups for p in group[_PARAMS]]
    number = {names[p]: place for place, p in enumerate(numbered)}
    by_name = {names[p]: p for p in numbered}
    state = {}
    for name, values in given[_STATE].items():
        if name in number:
            state[number[name]] = {key: _like(value, by_name[name]) for key, value in values.items()}
    groups = []
    for group in optimizer.param_groups:
        own = [names[p] for p in group[_PARAMS]]
        entry = {key: value for key, value in group.items() if key != _PARAMS}
        found = next((one for one in given[_GROUPS] if set(one[_PARAMS]) & set(own)), None)
        if found is not None:
            entry |= {key: value for key, value in found.items() if key != _PARAMS}
        groups.append({**entry, _PARAMS: [number[name] for name in own]})
    return {_STATE: state, _GROUPS: groups}


def optimizer_state_of_first(model: Any, optimizers: list[Any], given: Any) -> dict[str, Any]:
    """The state by names that the first rank alone has, each rank its pieces of it. All ranks call it."""
    names = _names(model)
    by_name = {name: p for p, name in names.items()}

    def wanted(key: str) -> Any:
        kind, _, rest = key.partition(".")
        return by_name.get(rest.rpartition(".")[0]) if kind == _STATE else None

    flat = _flattened(given) if given and _STATE in given else given
    return _unflattened(_from_first(flat or {}, wanted), optimizers, names)


def set_optimizer_state_dict(
    model: Any, optimizers: Any, optim_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> None:
    """Take what `get_optimizer_state_dict` gave. All ranks call it."""
    options = options or StateDictOptions()
    _to_parts(model)
    every = _optimizers(optimizers)
    names = _names(model)
    given = optim_state_dict
    if options.broadcast_from_rank0:
        given = optimizer_state_of_first(model, every, given)
    elif not (_STATE in given and _GROUPS in given):
        given = _unflattened(given, every, names)
    for optimizer in every:
        optimizer.load_state_dict(optimizer_state_to_load(model, optimizer, given))


def set_state_dict(
    model: Any,
    optimizers: Any,
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """`set_model_state_dict` and `set_optimizer_state_dict`."""
    found = (
        set_model_state_dict(model, model_state_dict, options=options)
        if model_state_dict
        else torch.nn.modules.module._IncompatibleKeys({}, {})
    )  # type: ignore[arg-type]
    if optim_state_dict or (options is not None and options.broadcast_from_rank0):
        set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return found
