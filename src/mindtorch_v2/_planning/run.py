"""Makes plans: runs a module or function under a recorder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .. import nn
from .._dispatch import ops
from .._tensor import Tensor
from ..nn.modules._hooks import register_module_forward_hook, register_module_forward_pre_hook
from ..utils import _pytree as pytree
from .recorder import Recorder
from .result import ModuleCost, Plan, summarise


def plan(
    module_or_function: Callable,
    /,
    *args: Any,
    backward: bool = False,
    mesh: Any = None,
    tp_plan: Any = None,
    optimizer: str = "adamw",
    machine: Any = None,
    **kwargs: Any,
) -> Any:
    """What `module_or_function(*args, **kwargs)` costs, without computing it: a run on the meta device.

    Returns a `Plan`: FLOPs, bytes read and written, per operator and per module, and the peak of live memory with what holds it. `print(plan)` shows tables.

    Arguments, parameters and captured tensors may be on any device; they are replaced by meta tensors of their shapes, and nothing of theirs is touched. Small integral
    and boolean tensors keep their values, so programs may look at masks and lengths; few random numbers (whether a layer is dropped, say) are drawn from a
    stream of the plan's own.
    backward: run the backward pass too, from the sum of all floating-point results that require grad (from `loss`, where the result has one). Gradients are made
    for stand-ins, not for the parameters.

    mesh: ranks by axis (`{"dp": 8, "tp": 8}`, and `fsdp`), or a DeviceMesh with these names. The plan is then a `MeshPlan`, of one rank of a module that is divided over it: its parameters, gradients, optimizer state and
    peak, what it sends by which collective, and how long that takes. The arguments are those of one rank of the axes `dp` and `fsdp`.
    tp_plan: which layers the axis `tp` divides, and how: names with `*` for a part, and colwise, rowwise or colwise_rep; `module._tp_plan`, as models of transformers have it, unless given.
    optimizer: adamw, adam, momentum, sgd or none: what state it keeps.
    machine: bandwidth, latency and speed (`mindtorch_v2._planning.mesh.Machine`).

    Memory is that of tensors (parameters, buffers, arguments, results, saved tensors); kernels' workspace and Python objects come on top. The grad mode of the caller counts:
    under `no_grad` nothing is saved for a backward pass.

    Raises what the call would raise on the CPU; RuntimeError when the program asks for values that a plan does not know; ValueError when `backward` finds nothing to
    differentiate; and for a mesh, or a module on it, that cannot be divided so.
    """
    if mesh is not None:
        from .ranks import plan_of_ranks

        return plan_of_ranks(_run, module_or_function, args, kwargs, backward, mesh, tp_plan, optimizer, machine)
    return _run(Recorder(), module_or_function, args, kwargs, backward)


def measure(module_or_function: Callable, /, *args: Any, backward: bool = False, **kwargs: Any) -> Plan:
    """As `plan`, of a real run: on the devices of the tensors, with the storages that it really held. Gradients reach the parameters."""
    return _run(Recorder(on_meta=False), module_or_function, args, kwargs, backward)


def _run(recorder: Recorder, target: Callable, args: tuple, kwargs: dict, backward: bool) -> Plan:
    root = target if isinstance(target, nn.Module) else None
    names = {id(module): name for name, module in root.named_modules()} if root is not None else {}
    costs: dict[str, ModuleCost] = {}
    with recorder:
        owned = list(_owned(root)) if root is not None else []
        for kind, name, tensor in owned:
            recorder.watch(recorder.stand_in(tensor), kind, name)
        args, kwargs = pytree.tree_map(lambda leaf: _argument(recorder, leaf), (args, kwargs))
        hooks = [
            register_module_forward_pre_hook(lambda module, _: _enter(recorder, costs, names, module)),
            register_module_forward_hook(lambda module, _, out: _leave(recorder, costs, out), always_call=True),
        ]
        try:
            result = target(*args, **kwargs)
            if backward:
                del args, kwargs
                recorder.phase = "backward"
                _backward(result)
        finally:
            for hook in hooks:
                hook.remove()
        outputs = _outputs(result)
    return summarise(recorder, _title(target), root, owned, costs, outputs)


def _owned(root: nn.Module) -> Iterator[tuple[str, str, Tensor]]:
    """(kind, name, tensor) of each parameter and buffer, shared ones once."""
    for name, parameter in root.named_parameters():
        yield "parameter", name, parameter
    for name, buffer in root.named_buffers():
        yield "buffer", name, buffer


def _argument(recorder: Recorder, leaf: Any) -> Any:
    if not isinstance(leaf, Tensor):
        return leaf
    given = recorder.stand_in(leaf)
    recorder.watch(given, "argument", "")
    return given


def _title(target: Callable) -> str:
    return type(target).__name__ if isinstance(target, nn.Module) else getattr(target, "__qualname__", repr(target))


# Modules


def _enter(recorder: Recorder, costs: dict[str, ModuleCost], names: dict[int, str], module: nn.Module) -> None:
    name = names.get(id(module))
    if name is None:  # made on the way, or of a function: by its place and class
        above = recorder.modules[-1]
        name = f"{above}.{type(module).__name__}" if above else type(module).__name__
    if name not in costs:
        parameters = sum(parameter.numel() for parameter in module.parameters())
        costs[name] = ModuleCost(name, type(module).__name__, parameters)
    costs[name].calls += 1
    recorder.modules.append(name)


def _leave(recorder: Recorder, costs: dict[str, ModuleCost], out: Any) -> None:
    name = recorder.modules.pop()
    costs[name].outputs = costs[name].outputs or _outputs(out)


def _outputs(out: Any) -> list:
    return [
        (tuple(leaf.shape), str(leaf.dtype)) for leaf in pytree.tree_leaves(_plain(out)) if isinstance(leaf, Tensor)
    ]


def _plain(out: Any) -> Any:
    """A result whose class pytree may not know (a dataclass-like dict of a model library) as a plain dict."""
    return dict(out) if isinstance(out, dict) else out


# Backward


def _backward(result: Any) -> None:
    loss = getattr(result, "loss", None)
    leaves = [loss] if isinstance(loss, Tensor) else pytree.tree_leaves(_plain(result))
    roots = [leaf for leaf in leaves if isinstance(leaf, Tensor) and leaf.requires_grad]
    if not roots:
        raise ValueError("plan(): backward=True, but no result requires grad")
    from ..autograd import backward

    backward(roots, [ops.ones_like(root) for root in roots])
