"""FullyShardedDataParallel: the wrapper of a module whose parameters are in parts.

It is `fully_shard` of the wrapped module, so that its parameters are always DTensors under their own names (as with `use_orig_params=True`), and never one flat parameter.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import mindtorch_v2 as torch

from .. import _groups
from .._collectives import broadcast
from ..device_mesh import DeviceMesh
from ..tensor import DTensor, distribute_tensor
from ..tensor._redistribute import cut
from ._fully_shard import FSDPState, install, to_parts
from ._policies import MixedPrecisionPolicy
from .api import (
    BackwardPrefetch as BackwardPrefetch,
    CPUOffload as CPUOffload,
    FullOptimStateDictConfig as FullOptimStateDictConfig,
    FullStateDictConfig as FullStateDictConfig,
    LocalOptimStateDictConfig as LocalOptimStateDictConfig,
    LocalStateDictConfig as LocalStateDictConfig,
    MixedPrecision as MixedPrecision,
    OptimStateDictConfig as OptimStateDictConfig,
    OptimStateKeyType as OptimStateKeyType,
    ShardedOptimStateDictConfig as ShardedOptimStateDictConfig,
    ShardedStateDictConfig as ShardedStateDictConfig,
    ShardingStrategy as ShardingStrategy,
    StateDictConfig as StateDictConfig,
    StateDictSettings as StateDictSettings,
    StateDictType as StateDictType,
)
from .wrap import modules_to_wrap

__all__ = ["FullyShardedDataParallel", "OptimStateKeyType"]

nn = torch.nn
FSDP_WRAPPED_MODULE = "_fsdp_wrapped_module"
_PREFIX = f"{FSDP_WRAPPED_MODULE}."
_CONFIGS: dict[StateDictType, tuple[type, type]] = {
    StateDictType.FULL_STATE_DICT: (FullStateDictConfig, FullOptimStateDictConfig),
    StateDictType.LOCAL_STATE_DICT: (LocalStateDictConfig, LocalOptimStateDictConfig),
    StateDictType.SHARDED_STATE_DICT: (ShardedStateDictConfig, ShardedOptimStateDictConfig),
}


class FullyShardedDataParallel(nn.Module):
    """A module whose parameters, gradients and optimizer state are in parts, gathered while it runs.

    Args:
        module: what is wrapped; it is changed.
        process_group: the ranks; of HYBRID_SHARD a pair, those that have parts and those that have the same.
        sharding_strategy, cpu_offload, mixed_precision: see their classes.
        auto_wrap_policy: which modules below are wrapped by themselves: a policy of `torch.distributed.fsdp.wrap`, or a function.
        ignored_modules, ignored_states: whose parameters stay as they are.
        param_init_fn: makes the parameters of a module that are on the meta device; without one it is `reset_parameters`.
        sync_module_states: take the first rank's parameters and buffers.
        device_mesh: in place of a group; of two dimensions for HYBRID_SHARD.

    Raises:
        ValueError: for HYBRID_SHARD without a pair of groups or a mesh of two dimensions, or a group and a mesh.
    """

    def __init__(
        self,
        module: Any,
        process_group: Any = None,
        sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: CPUOffload | None = None,
        auto_wrap_policy: Any = None,
        backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: MixedPrecision | None = None,
        ignored_modules: Iterable[Any] | None = None,
        param_init_fn: Callable[[Any], None] | None = None,
        device_id: Any = None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Iterable[Any] | None = None,
        device_mesh: DeviceMesh | None = None,
    ) -> None:
        super().__init__()
        if isinstance(module, (nn.ModuleList, nn.ModuleDict)):
            warnings.warn(
                f"FSDP will not all-gather parameters for containers that do not implement forward: {module}",
                stacklevel=2,
            )
        self.sharding_strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        self.mixed_precision = mixed_precision or MixedPrecision()
        self._device_mesh = device_mesh
        mesh = _mesh_of(self.sharding_strategy, process_group, device_mesh)
        self.process_group, self.rank, self.world_size = mesh.get_group(mesh.ndim - 1), mesh.get_rank(), mesh.size()
        states = list(ignored_states or ())
        ignored = {one for one in (*(ignored_modules or ()), *states) if isinstance(one, nn.Module)}
        parameters = {one for one in states if not isinstance(one, nn.Module)}
        for one in ignored:
            parameters |= set(one.parameters())
        if auto_wrap_policy is not None:
            options = {"process_group": process_group, "sharding_strategy": sharding_strategy, "cpu_offload": cpu_offload, "backward_prefetch": backward_prefetch,
                       "mixed_precision": mixed_precision, "param_init_fn": param_init_fn, "device_id": device_id, "sync_module_states": sync_module_states,
                       "forward_prefetch": forward_prefetch, "limit_all_gathers": limit_all_gathers, "use_orig_params": use_orig_params,
                       "ignored_states": list(parameters) or None, "device_mesh": device_mesh or mesh}  # fmt: skip
            if options["device_mesh"] is not None:
                options["process_group"] = None
            for inner, more in modules_to_wrap(module, auto_wrap_policy, ignored).items():
                _replace(module, inner, lambda one, more=more: FullyShardedDataParallel(one, **{**options, **more}))
        _make_parameters(module, param_init_fn)
        if device_id is not None:
            numbered = isinstance(device_id, int)
            module.to("cpu" if numbered and not torch.npu.is_available() else device_id)
        if sync_module_states:
            _take_first(module, mesh)
        policy = MixedPrecisionPolicy(self.mixed_precision.param_dtype, self.mixed_precision.reduce_dtype, None, self.mixed_precision.cast_forward_inputs or self.mixed_precision.cast_root_forward_inputs)  # fmt: skip
        reshard = (
            None if self.sharding_strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.HYBRID_SHARD) else False
        )
        if self.mixed_precision.buffer_dtype is not None:
            for owner in module.modules():
                for name, buffer in owner._buffers.items():
                    if buffer is not None and buffer.is_floating_point():
                        owner._buffers[name] = buffer.to(self.mixed_precision.buffer_dtype)
        install((module,), mesh, reshard, None, policy, parameters)
        self._fsdp_wrapped_module = module
        self._settings = StateDictSettings(StateDictType.FULL_STATE_DICT, FullStateDictConfig(), FullOptimStateDictConfig())  # fmt: skip
        self.register_state_dict_pre_hook(to_parts)
        self._register_state_dict_hook(_after_state_dict)
        self._register_load_state_dict_pre_hook(self._before_load)

    @property
    def module(self) -> Any:
        """What is wrapped."""
        return self._fsdp_wrapped_module

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__(FSDP_WRAPPED_MODULE), name)

    def __getitem__(self, key: int) -> Any:
        return self._fsdp_wrapped_module.__getitem__(key)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the wrapped module gives."""
        return self._fsdp_wrapped_module(*args, **kwargs)

    def check_is_root(self) -> bool:
        """Whether it is the outermost one, which is known once it has run."""
        state = self._state
        state.enter()
        return state.is_root

    @property
    def _is_root(self) -> bool | None:
        return None if self._state.context is None else self._state.is_root

    @property
    def _state(self) -> FSDPState:
        return self._fsdp_wrapped_module._fsdp_state

    def _states(self) -> list[FSDPState]:
        return [part._fsdp_state for part in self.modules() if "_fsdp_state" in vars(part)]

    @staticmethod
    def fsdp_modules(module: Any, root_only: bool = False) -> list[FullyShardedDataParallel]:
        """The wrappers in a module, or those that are in no other one."""
        found = [part for part in module.modules() if isinstance(part, FullyShardedDataParallel)]
        if not root_only:
            return found
        inner = {id(part) for one in found for part in one.modules() if part is not one}
        return [one for one in found if id(one) not in inner]

    def apply(self, fn: Callable[[Any], None]) -> Any:
        """Call a function with each module while parameters are whole, and keep what it makes of them."""
        with self.summon_full_params(self):
            return super().apply(fn)

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        to_parts(self)
        made = super()._apply(*args, **kwargs)
        for state in self._states():
            for param in state.group.params if state.group is not None else ():
                param.adopt()
        return made

    # State dicts

    @staticmethod
    def set_state_dict_type(
        module: Any,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> StateDictSettings:
        """Say what state dicts all wrappers in a module give; the settings before. RuntimeError for options of another type."""
        kinds = _CONFIGS[state_dict_type]
        given = state_dict_config or kinds[0](), optim_state_dict_config or kinds[1]()
        for option, kind in zip(given, kinds):
            if type(option) is not kind:
                raise RuntimeError(f"Expected state_dict_config of type {kind} but got {type(option)}")
        before = FullyShardedDataParallel.get_state_dict_type(module)
        for one in FullyShardedDataParallel.fsdp_modules(module):
            one._settings = StateDictSettings(state_dict_type, *given)
        return before

    @staticmethod
    def get_state_dict_type(module: Any) -> StateDictSettings:
        """What state dicts the wrappers in a module give."""
        found = FullyShardedDataParallel.fsdp_modules(module)
        if not found:
            return StateDictSettings(StateDictType.FULL_STATE_DICT, FullStateDictConfig(), FullOptimStateDictConfig())
        return found[0]._settings

    @staticmethod
    @contextmanager
    def state_dict_type(
        module: Any,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> Iterator[None]:
        """`set_state_dict_type` for a while."""
        before = FullyShardedDataParallel.set_state_dict_type(module, state_dict_type, state_dict_config, optim_state_dict_config)  # fmt: skip
        try:
            yield
        finally:
            FullyShardedDataParallel.set_state_dict_type(module, before.state_dict_type, before.state_dict_config, before.optim_state_dict_config)  # fmt: skip

    @contextmanager
    def _in_pieces(self) -> Iterator[None]:
        before = self._settings
        self._settings = StateDictSettings(
            StateDictType.SHARDED_STATE_DICT, ShardedStateDictConfig(), ShardedOptimStateDictConfig()
        )
        try:
            yield
        finally:
            self._settings = before

    def _before_load(self, state_dict: dict, prefix: str, *args: Any) -> None:
        to_parts(self)
        for key in [key for key in state_dict if key.startswith(prefix) and not key.startswith(prefix + _PREFIX)]:
            state_dict[prefix + _PREFIX + key[len(prefix) :]] = state_dict.pop(key)
        held = {prefix + name: value for name, value in self.named_parameters()}
        for key, value in held.items():
            given = state_dict.get(key)
            if given is None:
                plain = key.replace(_PREFIX, "")
                found = next(
                    (one for one in state_dict if one.startswith(prefix) and one.replace(_PREFIX, "") == plain), None
                )
                given = None if found is None else state_dict.pop(found)
            if given is not None:
                if isinstance(value, DTensor) and not isinstance(given, DTensor):
                    given = distribute_tensor(
                        given.detach().to(value.dtype), value.device_mesh, value.placements, src_data_rank=None
                    )
                state_dict[key] = given

    # Whole parameters

    @staticmethod
    @contextmanager
    def summon_full_params(
        module: Any,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ) -> Iterator[None]:
        """Inside, parameters are whole. writeback: what is written to them is kept. with_grads: and so are their gradients. rank0_only: what other ranks write is lost.

        Raises:
            NotImplementedError: for `writeback` with `rank0_only`.
        """
        if writeback and rank0_only:
            raise NotImplementedError("writeback=True and rank0_only=True is not supported, as model parameter shards will be different across ranks.")  # fmt: skip
        wrappers = FullyShardedDataParallel.fsdp_modules(module)
        states = [one._state for one in (wrappers if recurse else wrappers[:1])]
        groups = [state.group for state in states if state.group is not None]
        for group in groups:
            group.gather()
            for param in group.params if with_grads else ():
                if param.sharded.grad is not None:
                    param.whole.grad = param.sharded.grad.full_tensor()
        try:
            yield
        finally:
            for group in groups:
                for param in group.params:
                    if writeback:
                        held = param.places[0][0]._parameters[param.places[0][1]]
                        local = held._local_tensor if isinstance(held, DTensor) else held.detach()
                        with torch.no_grad():
                            part = cut(local, param.dim, param.mesh.shard_count, param.mesh.number)
                            param.sharded._local_tensor.copy_(part)
                    if param.whole is not None:
                        param.whole.grad = None
                group.release()

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside, gradients are kept whole, and not averaged; the next backward pass outside adds them."""
        groups = [state.group for state in self._states() if state.group is not None]
        before = [group.sync for group in groups]
        for group in groups:
            group.sync = False
        try:
            yield
        finally:
            for group, sync in zip(groups, before):
                group.sync = sync

    @torch.no_grad()
    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> torch.Tensor:
        """Scale the gradients so that the norm of all of them is at most `max_norm`; the norm before, which is the same on every rank."""
        total = nn.utils.clip_grad_norm_(list(self.parameters()), max_norm, norm_type)
        return total.full_tensor() if isinstance(total, DTensor) else total

    def register_comm_hook(self, state: Any, hook: Callable) -> None:
        """Hooks in place of the averaging are not supported."""
        raise NotImplementedError(
            "register_comm_hook of FullyShardedDataParallel: gradients are averaged by reduce_scatter"
        )

    # Optimizer state

    @staticmethod
    def optim_state_dict(model: Any, optim: Any, optim_state_dict: Any = None, group: Any = None) -> dict[str, Any]:
        """The optimizer's state by parameters' names, as the settings of the model say: whole tensors, or DTensors."""
        from ..checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict

        settings = FullyShardedDataParallel.get_state_dict_type(model)
        full = settings.state_dict_type is StateDictType.FULL_STATE_DICT
        config = settings.optim_state_dict_config
        options = StateDictOptions(full_state_dict=full, cpu_offload=full and config.offload_to_cpu and getattr(config, "rank0_only", False))  # fmt: skip
        return get_optimizer_state_dict(model, optim, options=options)

    @staticmethod
    def optim_state_dict_to_load(
        model: Any,
        optim: Any,
        optim_state_dict: dict[str, Any],
        is_named_optimizer: bool = False,
        load_directly: bool = False,
        group: Any = None,
    ) -> dict[str, Any]:
        """What the optimizer's `load_state_dict` takes, of what `optim_state_dict` gave on any number of ranks."""
        from ..checkpoint.state_dict import optimizer_state_of_first, optimizer_state_to_load

        settings = FullyShardedDataParallel.get_state_dict_type(model)
        if getattr(settings.optim_state_dict_config, "rank0_only", False):
            optim_state_dict = optimizer_state_of_first(model, [optim], optim_state_dict)
        made = optimizer_state_to_load(model, optim, optim_state_dict)
        if load_directly:
            optim.load_state_dict(made)
        return made

    full_optim_state_dict = optim_state_dict
    sharded_optim_state_dict = optim_state_dict


def _mesh_of(strategy: ShardingStrategy, group: Any, mesh: DeviceMesh | None) -> DeviceMesh:
    hybrid = strategy in (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)
    if mesh is not None:
        if group is not None:
            raise ValueError("Cannot pass both process_group and device_mesh at the same time. Please just pass only one of them.")  # fmt: skip
        if hybrid and mesh.ndim != 2:
            raise ValueError(f"device_mesh should be 2D for {strategy}, but got {mesh}")
        return mesh
    if hybrid:
        if not isinstance(group, tuple) or len(group) != 2:
            raise ValueError(f"Manual wrapping with {strategy} requires explicit specification of process group or device_mesh.")  # fmt: skip
        inner, outer = (_groups.get_process_group_ranks(one) for one in group)
        grid = [[rank + (other - _groups.get_rank()) for rank in inner] for other in outer]
        return DeviceMesh.from_group([group[1], group[0]], "cpu", grid, mesh_dim_names=("replicate", "shard"))
    ranks = _groups.get_process_group_ranks(group)
    if strategy is ShardingStrategy.NO_SHARD:
        return DeviceMesh("cpu", [[rank] for rank in ranks])
    return DeviceMesh.from_group(group or _groups._get_default_group(), "cpu")


def _replace(root: Any, module: Any, make: Callable[[Any], Any]) -> None:
    made = None
    for parent in list(root.modules()):
        for name, child in parent._modules.items():
            if child is module and not isinstance(parent, FullyShardedDataParallel):
                made = made if made is not None else make(module)
                parent._modules[name] = made


def _make_parameters(module: Any, init: Callable[[Any], None] | None) -> None:
    """Parameters that are on the meta device, in memory."""
    for part in module.modules():
        own = [*part.parameters(recurse=False), *part.buffers(recurse=False)]
        if not any(t.device.type == "meta" for t in own):
            continue
        if init is not None:
            init(part)
            continue
        part.to_empty(device="cpu", recurse=False)
        with torch.no_grad():
            part.reset_parameters()


def _take_first(module: Any, mesh: DeviceMesh) -> None:
    for tensor in [*module.parameters(), *module.buffers()]:
        if isinstance(tensor, DTensor):
            continue
        local = tensor.detach()
        for number in range(mesh.ndim):
            if mesh.size(number) > 1:
                broadcast(local, group=mesh.get_group(number), group_src=0)


def _after_state_dict(module: Any, state_dict: dict, prefix: str, local_metadata: Any) -> None:
    settings = module._settings
    full = settings.state_dict_type is StateDictType.FULL_STATE_DICT
    drop = full and getattr(settings.state_dict_config, "rank0_only", False) and module.rank != 0
    for key in [key for key in state_dict if key.startswith(prefix)]:
        value = state_dict.pop(key)
        if full and isinstance(value, DTensor):
            value = value.full_tensor()
        if not drop:
            state_dict[prefix + key[len(prefix) :].removeprefix(_PREFIX)] = value
