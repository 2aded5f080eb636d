"""Plans of one rank of many: a module that is divided over a mesh, and what its ranks send each other.

Note [How a module is divided]
The axes of a mesh are `dp` (each replica has its own part of the batch; gradients are averaged), `fsdp` (the same, and each rank keeps its part of parameters, gradients and optimizer state; a layer's parameters
are gathered before they are used, forward and backward, and its gradients are reduced to their owners) and `tp` (the layers that `tp_plan` names are divided within: column-wise ones by what they give, row-wise ones by
what they take). A copy of the module, on meta, gets the parameters that one rank has of the `tp` axis, and runs; its collectives are noted where they would be called. Those of the other axes follow from
sizes: gradients in buckets of 25 MiB (`dp`), layer by layer (`fsdp`).

Note [What a collective sends]
By rings, as libraries of collectives do for large messages: of B bytes among n ranks each sends 2 (n - 1) / n B for all_reduce, and (n - 1) / n of what all have together for all_gather, reduce_scatter and all_to_all; a
broadcast sends B. A call takes its steps' latencies, 2 (n - 1) or n - 1, and what it sends over the bandwidth.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import mindtorch_v2 as torch

from .. import nn
from ..autograd import Function

AXES = ("dp", "fsdp", "tp")
_BUCKET = 25 << 20
_STATES = {"none": 0, "sgd": 0, "momentum": 1, "adam": 2, "adamw": 2}
"""How many tensors of a parameter's size an optimizer keeps."""


@dataclass
class Machine:
    """What the model of time assumes. bandwidth: bytes per second of a rank's link; latency: seconds of a message; flops: operations per second of a rank. An axis may have a link of its own."""

    bandwidth: float = 12.5e9
    latency: float = 10e-6
    flops: float = 100e12
    of_axis: dict[str, tuple[float, float]] = field(default_factory=dict)
    """(bandwidth, latency) by axis, where they differ."""

    def link(self, axis: str) -> tuple[float, float]:
        """The bandwidth and the latency of an axis."""
        return self.of_axis.get(axis, (self.bandwidth, self.latency))


@dataclass
class Traffic:
    """All calls of one collective along one axis. payload: bytes of the tensors (of an all_gather the result, of a reduce_scatter what is given); sent: by each rank."""

    name: str
    axis: str
    ranks: int
    phase: str
    calls: int = 0
    payload: int = 0
    sent: float = 0.0
    seconds: float = 0.0


def sent_bytes(name: str, ranks: int, payload: int) -> float:
    """What each rank sends; see Note [What a collective sends]."""
    if ranks == 1:
        return 0.0
    if name == "all_reduce":
        return 2 * (ranks - 1) / ranks * payload
    if name in ("all_gather", "reduce_scatter", "all_to_all"):
        return (ranks - 1) / ranks * payload
    return float(payload)


class Ledger:
    """Notes collectives."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.phase: Callable[[], str] = lambda: "forward"
        self.found: dict[tuple[str, str, str], Traffic] = {}

    def note(self, name: str, axis: str, ranks: int, payload: int, phase: str = "", calls: int = 1) -> None:
        """Count calls of a collective, each with so many bytes."""
        if ranks == 1 or not payload:
            return
        key = (phase or self.phase(), name, axis)
        one = self.found.setdefault(key, Traffic(name, axis, ranks, key[0]))
        bandwidth, latency = self.machine.link(axis)
        sent = sent_bytes(name, ranks, payload)
        steps = 2 * (ranks - 1) if name == "all_reduce" else ranks - 1
        one.calls += calls
        one.payload += calls * payload
        one.sent += calls * sent
        one.seconds += calls * (steps * latency + sent / bandwidth)


def parse_mesh(text: str) -> dict[str, int]:
    """The axes of `dp=8,tp=8`. ValueError for another form."""
    made: dict[str, int] = {}
    for part in text.split(","):
        name, _, number = part.partition("=")
        if not number.isdigit():
            raise ValueError(f"{text!r} is no list of axis=ranks")
        made[name.strip()] = int(number)
    return checked_mesh(made)


def checked_mesh(mesh: Any) -> dict[str, int]:
    """A mesh as ranks by axis: of a mapping, or of a DeviceMesh with names. ValueError for axes that are not known, or fewer than one rank."""
    if isinstance(mesh, Mapping):
        found = {str(name): int(number) for name, number in mesh.items()}
    elif getattr(mesh, "mesh_dim_names", None):
        found = {name: int(mesh.size(place)) for place, name in enumerate(mesh.mesh_dim_names)}
    else:
        raise ValueError("a mesh is a mapping of axes to ranks, or a DeviceMesh with names")
    for name, number in found.items():
        if name not in AXES or number < 1:
            raise ValueError(f"a mesh has the axes {', '.join(AXES)} with at least one rank, not {name}={number}")
    return found


def _nbytes(tensor: Any) -> int:
    return tensor.numel() * tensor.element_size()


# ---------------------------------------------------------------------------------------------------------- division


class _SumBackward(Function):
    """What column-wise layers take: its gradient is the sum of all ranks'."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, ledger: Ledger, ranks: int) -> Any:
        ctx.said = ledger, ranks
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        ledger, ranks = ctx.said
        ledger.note("all_reduce", "tp", ranks, _nbytes(grads[0]))
        return grads[0], None, None


class _SumForward(Function):
    """What row-wise layers give: the sum of all ranks'."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, ledger: Ledger, ranks: int) -> Any:
        ledger.note("all_reduce", "tp", ranks, _nbytes(tensor))
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0], None, None


class _Gather(Function):
    """The parts that all ranks have of the last dimension."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, ledger: Ledger, ranks: int) -> Any:
        ctx.part = tensor.shape[-1]
        parts = tensor.new_empty((ranks, *tensor.shape))  # what arrives, before it is put in order
        ledger.note("all_gather", "tp", ranks, _nbytes(parts))
        return torch.cat(list(parts), -1)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0][..., : ctx.part].contiguous(), None, None


def on_meta(module: Any) -> Any:
    """A copy of a module whose parameters are on meta; buffers, which are small and may be looked at, keep their values."""
    memo: dict[int, Any] = {}
    for parameter in module.parameters():
        made = nn.Parameter(torch.empty_like(parameter, device="meta"), requires_grad=parameter.requires_grad)
        memo[id(parameter)] = made
    return copy.deepcopy(module, memo)


def _styles(module: Any, plan: Mapping[str, str]) -> Iterator[tuple[str, Any, str]]:
    patterns = [(re.compile(re.escape(name).replace(r"\*", r"[^.]+")), style) for name, style in plan.items()]
    for name, part in module.named_modules():
        for pattern, style in patterns:
            if pattern.fullmatch(name):
                yield name, part, style


def plan_of(module: Any) -> dict[str, str]:
    """How a module says it is divided, as models of transformers do: its class says it of the head, it itself of the layers."""
    return dict(getattr(type(module), "_tp_plan", None) or {}) | dict(getattr(module, "_tp_plan", None) or {})


def _shard(part: Any, name: str, attribute: str, dim: int, ranks: int) -> None:
    parameter = getattr(part, attribute, None)
    if parameter is None:
        return
    if parameter.shape[dim] % ranks:
        raise ValueError(
            f"{name}.{attribute}: dimension {dim} of {list(parameter.shape)} cannot be divided among {ranks} ranks"
        )
    shape = list(parameter.shape)
    shape[dim] //= ranks
    made = nn.Parameter(torch.empty(shape, dtype=parameter.dtype, device="meta"), parameter.requires_grad)
    setattr(part, attribute, made)


def divide(module: Any, plan: Mapping[str, str] | None, ranks: int, ledger: Ledger) -> None:
    """Let a module on meta be that of one rank of the `tp` axis.

    Raises:
        ValueError: without a plan, for a style that is not known, a layer that is none of Linear, and sizes that cannot be divided.
    """
    if ranks == 1:
        return
    if not plan:
        raise ValueError(
            f"plan(): {type(module).__name__} does not say how it is divided; give tp_plan={{'layers.*.up': 'colwise', 'layers.*.down': 'rowwise'}}"
        )
    shared = {id(part.weight): name for name, part in module.named_modules() if isinstance(part, nn.Embedding)}
    for name, part, style in _styles(module, plan):
        if style == "replicated":
            continue
        if not isinstance(part, nn.Linear) or style not in ("colwise", "rowwise", "colwise_rep"):
            raise ValueError(f"plan(): {name}: {style} of {type(part).__name__} is not planned")
        if id(part.weight) in shared:
            continue  # it is the table of an embedding, which all ranks have
        if style == "rowwise":
            _shard(part, name, "weight", 1, ranks)
            part.in_features //= ranks
            part.register_forward_hook(lambda _, args, out: _SumForward.apply(out, ledger, ranks))
            continue
        _shard(part, name, "weight", 0, ranks)
        _shard(part, name, "bias", 0, ranks)
        part.out_features //= ranks
        part.register_forward_pre_hook(lambda _, args: (_SumBackward.apply(args[0], ledger, ranks), *args[1:]))
        if style == "colwise_rep":
            part.register_forward_hook(lambda _, args, out: _Gather.apply(out, ledger, ranks))


# ---------------------------------------------------------------------------------------------------------- the rest


def units(module: Any) -> list[int]:
    """Bytes of the parameters that `fsdp` gathers together: those of each layer of a list, and the rest."""
    found, seen = [], set()

    def take(part: Any) -> int:
        total = 0
        for parameter in part.parameters():
            if id(parameter) not in seen:
                seen.add(id(parameter))
                total += _nbytes(parameter)
        return total

    for part in module.modules():
        if isinstance(part, nn.ModuleList):
            found += [take(layer) for layer in part]
    found.append(take(module))
    return [size for size in found if size]


def note_replicas(module: Any, mesh: Mapping[str, int], ledger: Ledger, backward: bool) -> None:
    """Note what the `fsdp` and `dp` axes send."""
    sharded, replicas = mesh.get("fsdp", 1), mesh.get("dp", 1)
    sizes = units(module)
    for size in sizes:
        ledger.note("all_gather", "fsdp", sharded, size, "forward")
        if backward:
            ledger.note("all_gather", "fsdp", sharded, size, "backward")
            ledger.note("reduce_scatter", "fsdp", sharded, size, "backward")
    if not backward:
        return
    if sharded > 1:
        for size in sizes:
            ledger.note("all_reduce", "dp", replicas, -(-size // sharded), "backward")
        return
    left = sum(_nbytes(parameter) for parameter in module.parameters() if parameter.requires_grad)
    while left > 0:
        ledger.note("all_reduce", "dp", replicas, min(left, _BUCKET), "backward")
        left -= _BUCKET


def optimizer_state(name: str, parameter_bytes: float) -> float:
    """Bytes of an optimizer's state. ValueError for one that is not known."""
    if name not in _STATES:
        raise ValueError(f"plan(): optimizer {name!r} is none of {', '.join(_STATES)}")
    return _STATES[name] * parameter_bytes
