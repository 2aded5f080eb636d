"""`fully_shard`: parameters in parts, gathered for the forward and the backward pass of their module.

Note [When parameters are whole]
Before a module's forward pass its parameters are gathered, after it they go to parts again (unless it was told to keep them, or it is the outermost module, whose backward pass comes at
once). When a gradient arrives at what the module gave, they are gathered once more, and the gathering of the module that ran before it begins. When all gradients of its parameters have
arrived, or at the backward pass's end, they are averaged and the parameters go to parts. All ranks do this in the same order, since they run the same program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import mindtorch_v2 as torch
from mindtorch_v2.utils._pytree import tree_flatten, tree_map, tree_unflatten

from ..._autograd.engine import queue_callback
from .._groups import get_world_size, is_initialized
from .._making import init_process_group
from ..device_mesh import DeviceMesh, init_device_mesh
from ..placements import Shard
from ._group import Mesh, Param, ParamGroup
from ._policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy

__all__ = ["CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "UnshardHandle", "fully_shard", "register_fsdp_forward_method"]  # fmt: skip

Tensor = torch.Tensor


class _Context:
    """What the modules below one outermost module share."""

    def __init__(self) -> None:
        self.states: list[FSDPState] = []
        self.order: list[FSDPState] = []  # in which forward passes ended
        self.backward = False  # whether the end of a backward pass is waited for


class FSDPState:
    """What `fully_shard` knows of one call's module."""

    def __init__(
        self, modules: tuple, group: ParamGroup | None, reshard: bool | None, policy: MixedPrecisionPolicy
    ) -> None:
        self.modules = modules
        self.group = group
        self.reshard_after_forward = reshard
        self.reshard_after_backward = True
        self.policy = policy
        self.context: _Context | None = None
        self.is_root = False
        self.in_backward = False
        self.last_backward = True
        self.arrived: set[int] = set()
        self.forward_prefetch: list[FSDPState] = []
        self.backward_prefetch: list[FSDPState] | None = None

    # Forward

    def enter(self) -> _Context:
        """The outermost module is the one that runs first."""
        if self.context is None:
            self.is_root = True
            made = _Context()
            for module in self.modules:
                for part in module.modules():
                    state = getattr(part, "_fsdp_state", None)
                    if state is not None and state not in made.states:
                        if state is not self:
                            state.is_root = False
                        state.context = made
                        made.states.append(state)
        assert self.context is not None
        return self.context

    def before_forward(self, module: Any, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        context = self.enter()
        if self.in_backward:  # what a checkpoint runs again
            self.gather()
        else:
            if self.is_root:
                context.order.clear()
            self.gather()
            for state in self.forward_prefetch:
                if state.group is not None:
                    state.group.begin()
        dtype = self.policy.param_dtype
        if dtype is not None and self.policy.cast_forward_inputs:
            args, kwargs = (tree_map(functools.partial(_cast, dtype), value) for value in (args, kwargs))
        return args, kwargs

    def gather(self) -> None:
        if self.group is not None:
            self.group.gather()
            for param in self.group.params:
                whole = param.whole
                if whole.requires_grad and param.heard is not whole:
                    param.heard = whole
                    whole.register_post_accumulate_grad_hook(self._grad_arrived)

    def after_forward(self, module: Any, args: Any, output: Any) -> Any:
        if self.in_backward:
            return output
        context = self.context
        assert context is not None
        context.order.append(self)
        keeps = self.reshard_after_forward is False or (self.reshard_after_forward is None and self.is_root)
        if self.group is not None and not keeps:
            self.group.release()
        if self.policy.output_dtype is not None:
            output = tree_map(functools.partial(_cast, self.policy.output_dtype), output)
        return self._watch(output)

    def _watch(self, output: Any) -> Any:
        """Hear of the first gradient of what the module gave."""
        if not torch.is_grad_enabled():
            return output
        flat, spec = tree_flatten(output)
        for number, value in enumerate(flat):
            if isinstance(value, Tensor) and value.requires_grad:
                value.register_hook(self.before_backward)
                flat[number] = value
        return tree_unflatten(flat, spec)

    # Backward

    def before_backward(self, grad: Any) -> Any:
        context = self.context
        assert context is not None
        if not context.backward:
            context.backward = True
            queue_callback(functools.partial(_end_of_backward, context))
        if not self.in_backward:
            self.in_backward = True
            self.arrived.clear()
            self.gather()
            self._prefetch(context)
        return grad

    def _prefetch(self, context: _Context) -> None:
        if self.backward_prefetch is not None:
            ahead = self.backward_prefetch
        else:
            place = context.order.index(self) if self in context.order else 0
            ahead = context.order[place - 1 : place] if place else []
        for state in ahead:
            if state.group is not None and not state.in_backward:
                state.group.begin()

    def _grad_arrived(self, param: Any) -> None:
        if self.group is None:
            return
        if not self.in_backward:  # of a parameter that was used outside of its module
            self.in_backward = True
            self.arrived.clear()
            assert self.context is not None
            if not self.context.backward:
                self.context.backward = True
                queue_callback(functools.partial(_end_of_backward, self.context))
        self.arrived.add(id(param))
        if all(id(p.whole) in self.arrived for p in self.group.params if p.whole is not None and p.whole.requires_grad):
            self.after_backward()

    def after_backward(self) -> None:
        """Average what has arrived, and go to parts."""
        group = self.group
        self.in_backward = False
        self.arrived.clear()
        if group is None:
            return
        if group.sync:
            group.reduce()
        if self.reshard_after_backward:
            group.release()


def _end_of_backward(context: _Context) -> None:
    context.backward = False
    for state in context.states:
        group = state.group
        waiting = (
            group is not None
            and group.sync
            and any(p.whole is not None and p.whole.grad is not None for p in group.params)
        )
        if state.in_backward or waiting:
            state.after_backward()
        elif group is not None and group._pending is not None:
            group.release()
    if all(state.last_backward for state in context.states):
        context.order.clear()


def _cast(dtype: Any, value: Any) -> Any:
    return value.to(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value


class UnshardHandle:
    """What `unshard(async_op=True)` gives."""

    def __init__(self, state: FSDPState) -> None:
        self._state = state

    def wait(self) -> None:
        """Return once the parameters are whole."""
        self._state.gather()


class FSDPModule:
    """What modules are in addition to their class once `fully_shard` was called with them."""

    if TYPE_CHECKING:
        _fsdp_state: FSDPState

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Copies by constructors are of the class as it was."""
        plain = cls.__mro__[2]
        made = plain.__new__(plain, *args, **kwargs)  # type: ignore[call-overload]
        made.__init__(*args, **kwargs)
        return made

    def _get_fsdp_state(self) -> FSDPState:
        return self._fsdp_state

    def _states(self, recurse: bool = True) -> list[FSDPState]:
        found = []
        for module in self.modules() if recurse else [self]:  # type: ignore[attr-defined]
            state = getattr(module, "_fsdp_state", None)
            if state is not None and state not in found:
                found.append(state)
        return found

    def reshard(self) -> None:
        """Have the parameters in parts."""
        if self._fsdp_state.group is not None:
            self._fsdp_state.group.release()

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather the parameters; with `async_op` begin to, and give what can be waited for."""
        state = self._fsdp_state
        if async_op:
            if state.group is not None:
                state.group.begin()
            return UnshardHandle(state)
        state.gather()
        return None

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Whether the next backward pass is the last one of a forward pass."""
        for state in self._states():
            state.last_backward = is_last_backward

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Whether backward passes average gradients; those that do not keep whole gradients, which the next one that does adds."""
        for state in self._states(recurse):
            if state.group is not None:
                state.group.sync = state.group.all_reduces = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Whether parts that several ranks have are averaged among these."""
        for state in self._states(recurse):
            if state.group is not None:
                state.group.all_reduces = requires_all_reduce

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether parameters go to parts after the forward pass. ValueError for what is no bool."""
        if not isinstance(reshard_after_forward, bool):
            raise ValueError(f"reshard_after_forward should be a bool, got {type(reshard_after_forward)}")
        for state in self._states(recurse):
            state.reshard_after_forward = reshard_after_forward

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Whether parameters go to parts after the backward pass."""
        for state in self._states(recurse):
            state.reshard_after_backward = reshard_after_backward

    def set_modules_to_forward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Whose parameters begin to be gathered when this module's have been, in the forward pass."""
        self._fsdp_state.forward_prefetch = [_checked(module)._fsdp_state for module in modules]

    def set_modules_to_backward_prefetch(self, modules: list[FSDPModule]) -> None:
        """The same in the backward pass, where else it is the module whose forward pass came before."""
        self._fsdp_state.backward_prefetch = [_checked(module)._fsdp_state for module in modules]

    def set_all_reduce_hook(self, hook: Callable[[Tensor], None], *, stream: Any = None) -> None:
        """What is called with the averaged parts."""
        if self._fsdp_state.group is not None:
            self._fsdp_state.group.hook = hook

    def set_gradient_divide_factor(self, factor: float) -> None:
        """By what sums of gradients are divided, in place of the number of ranks."""
        if self._fsdp_state.group is not None:
            self._fsdp_state.group.divide_factor = factor

    set_reduce_scatter_divide_factor = set_gradient_divide_factor

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Parameters whose gradients need no whole ones could stay in parts; they are gathered anyway."""

    def set_force_sum_reduction_for_comms(self, enable: bool) -> None:
        """Averages are sums that are divided, in every backend here."""

    def set_post_optim_event(self, event: Any) -> None:
        """Streams of accelerators would wait for this."""

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        for state in self._states():
            if state.group is not None:
                state.group.release()
        made = super()._apply(*args, **kwargs)  # type: ignore[misc]
        for state in self._states():
            for param in state.group.params if state.group is not None else ():
                param.adopt()
        return made


def _checked(module: Any) -> Any:
    if not isinstance(module, FSDPModule):
        raise ValueError(f"modules should be FSDP modules, but got {type(module)}")
    return module


def _managed(module: Any, ignored: set) -> dict[int, tuple[Any, list[tuple[Any, str]]]]:
    """The parameters below a module that no call of `fully_shard` has taken, each with all its places."""
    found: dict[int, tuple[Any, list[tuple[Any, str]]]] = {}
    seen: set[int] = set()

    def visit(part: Any) -> None:
        if id(part) in seen or (part is not module and "_fsdp_state" in vars(part)):
            return
        seen.add(id(part))
        for name, parameter in part._parameters.items():
            if parameter is not None and parameter not in ignored:
                found.setdefault(id(parameter), (parameter, []))[1].append((part, name))
        for child in part._modules.values():
            if child is not None:
                visit(child)

    visit(module)
    return found


def fully_shard(
    module: Any,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[[Any], Any] | None = None,
    mp_policy: MixedPrecisionPolicy = MixedPrecisionPolicy(),
    offload_policy: OffloadPolicy = OffloadPolicy(),
    ignored_params: set | None = None,
    dp_mesh_dims: Any = None,
) -> Any:
    """Take the parameters of a module, those that earlier calls with its submodules left, to parts, which are gathered while the module runs. The module's class becomes one of FSDPModule too.

    Args:
        module: a module, or a list of modules that run one after the other.
        mesh: a line of ranks, each with a part of each parameter; of two dimensions: the last has the parts, the first ranks that have the same. All ranks unless given.
        reshard_after_forward: False keeps parameters whole between forward and backward pass, True does not, None keeps those of the outermost module.
        shard_placement_fn: by parameter, the dimension that is divided, as Shard; the first unless given.
        mp_policy, offload_policy: see MixedPrecisionPolicy and CPUOffloadPolicy.
        ignored_params: parameters that stay as they are.

    Raises:
        ValueError: for containers without a forward pass of their own, parameters without dimensions, or a mesh of more than two dimensions.
    """
    modules = tuple(module) if isinstance(module, (list, tuple)) else (module,)
    for one in modules:
        if isinstance(one, (torch.nn.ModuleList, torch.nn.ModuleDict)):
            raise ValueError(f"fully_shard does not support containers that do not implement forward: {one}")
        if isinstance(one, FSDPModule):
            raise AssertionError("Each distinct composable distributed API can only be applied to a module once. fully_shard has already been applied")  # fmt: skip
    if dp_mesh_dims is not None:
        raise NotImplementedError("dp_mesh_dims: give the part of the mesh for data parallelism as `mesh`")
    if not isinstance(reshard_after_forward, (bool, type(None))) and isinstance(reshard_after_forward, int):
        raise NotImplementedError(
            "reshard_after_forward: parts among fewer ranks than the mesh has are not supported; True, False or None are"
        )
    if mesh is None:
        if not is_initialized():
            init_process_group()
        kind = next((p.device.type for one in modules for p in one.parameters()), "cpu")
        mesh = init_device_mesh("npu" if kind == "npu" else "cpu", (get_world_size(),))
    install(modules, mesh, reshard_after_forward, shard_placement_fn, mp_policy, ignored_params or set())
    for one in modules:
        one.__class__ = _class_of(type(one))
        one.register_state_dict_pre_hook(to_parts)
        one.register_load_state_dict_pre_hook(to_parts)
    return module


def install(
    modules: tuple,
    mesh: DeviceMesh,
    reshard_after_forward: bool | None,
    shard_placement_fn: Callable[[Any], Any] | None,
    policy: MixedPrecisionPolicy,
    ignored: set,
) -> FSDPState:
    """Take the parameters of modules that are left to parts, and gather them when the modules run."""
    own = Mesh.of(mesh)
    params = []
    found: dict[int, tuple[Any, list[tuple[Any, str]]]] = {}
    for one in modules:
        for key, (parameter, places) in _managed(one, ignored).items():
            found.setdefault(key, (parameter, []))[1].extend(places)
    for parameter, places in found.values():
        placed = shard_placement_fn(parameter) if shard_placement_fn is not None else None
        if placed is not None and not isinstance(placed, Shard):
            raise AssertionError(f"Expected Shard, got {type(placed)}: {placed}")
        dim = 0 if placed is None else placed.dim + parameter.dim() if placed.dim < 0 else placed.dim
        params.append(Param.divide(parameter, places, own, dim))
    group = ParamGroup(params, own, policy) if params else None
    state = FSDPState(modules, group, reshard_after_forward, policy)
    for one in modules:
        one._fsdp_state = state
    modules[0].register_forward_pre_hook(
        lambda m, args, kwargs: state.before_forward(m, args, kwargs), prepend=True, with_kwargs=True
    )
    modules[-1].register_forward_hook(lambda m, args, output: state.after_forward(m, args, output))
    return state


@functools.cache
def _class_of(kind: type) -> type:
    return type(f"FSDP{kind.__name__}", (FSDPModule, kind), {"__module__": kind.__module__, "__deepcopy__": _no_copy})


def _no_copy(self: Any, memo: Any) -> Any:
    raise AssertionError("FSDP does not support deepcopy. Please use state dict for serialization.")


def to_parts(module: Any, *args: Any) -> None:
    """State dicts have parts."""
    for part in module.modules():
        state = getattr(part, "_fsdp_state", None)
        if state is not None and state.group is not None:
            state.group.release()


def register_fsdp_forward_method(module: Any, method_name: str) -> None:
    """Have another method of a module gather its parameters too, as its forward pass does. ValueError for one that it does not have."""
    if not isinstance(module, FSDPModule):
        return
    if not hasattr(module, method_name):
        raise ValueError(f"{type(module)} does not have a method {method_name}")
    method = getattr(module, method_name)
    state = module._fsdp_state

    @functools.wraps(method)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = state.before_forward(module, args, kwargs)
        return state.after_forward(module, args, method(*args, **kwargs))

    setattr(module, method_name, wrapped)


def share_comm_ctx(modules: list[FSDPModule]) -> None:
    """Streams and buffers are shared by all modules anyway."""
    for module in modules:
        _checked(module)
