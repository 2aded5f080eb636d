"""The plan of one rank of a mesh, as data and as tables."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .. import nn
from . import mesh as meshes
from .recorder import Recorder
from .result import Plan, _grid
from .units import size


@dataclass
class MeshPlan:
    """What a step costs each rank of a mesh. Memory in bytes; see `_planning/mesh.py` for what is assumed."""

    mesh: dict[str, int]
    ranks: int
    rank: Plan
    """The plan of one rank, before `fsdp` divides its parameters."""
    total_parameters: int
    """Of the whole module."""
    parameters: int
    """Of one rank."""
    parameter_bytes: int
    gradient_bytes: int
    optimizer: str
    optimizer_bytes: int
    peak: int
    """Of one rank: what lives at the peak of its run, with its part of parameters and gradients, the layers that are gathered, and the optimizer's state."""
    traffic: list[meshes.Traffic]
    sent: float
    """Bytes that each rank sends in a step."""
    compute_seconds: float
    communication_seconds: float
    """As if nothing went on at the same time."""

    @property
    def seconds(self) -> tuple[float, float]:
        """The least and the most that a step takes: with communication behind computation, and after it."""
        return max(self.compute_seconds, self.communication_seconds), self.compute_seconds + self.communication_seconds

    def as_dict(self, operations: bool = False) -> dict[str, Any]:
        """As plain data."""
        made = asdict(self) | {"rank": self.rank.as_dict(operations), "seconds": list(self.seconds)}
        return made

    def to_json(self, indent: int | None = 2, operations: bool = False) -> str:
        """As JSON."""
        return json.dumps(self.as_dict(operations), indent=indent)

    def to_html(self) -> str:
        """The page of one rank's plan."""
        return self.rank.to_html()

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"<MeshPlan of {self.rank.name} on {self.ranks} ranks: peak {size(self.peak)}, sends {size(self.sent)}>"

    def table(self, depth: int = 2, rows: int = 12) -> str:
        """What each rank has and sends, then the plan of one rank."""
        axes = ", ".join(f"{axis}={number}" for axis, number in self.mesh.items())
        least, most = self.seconds
        totals = [
            ["parameters", f"{self.total_parameters:,}", f"of which a rank has {self.parameters:,}"],
            ["  of a rank", f"{self.parameter_bytes:,}", size(self.parameter_bytes)],
            ["  gradients", f"{self.gradient_bytes:,}", size(self.gradient_bytes)],
            [f"  {self.optimizer}", f"{self.optimizer_bytes:,}", size(self.optimizer_bytes)],
            ["peak of a rank", f"{self.peak:,}", size(self.peak)],
            ["sent by a rank", f"{round(self.sent):,}", size(self.sent)],
            [
                "time",
                f"{least:.4f} to {most:.4f} s",
                f"computing {self.compute_seconds:.4f} s, sending {self.communication_seconds:.4f} s",
            ],
        ]
        head = ["collective", "axis", "ranks", "phase", "calls", "tensors", "sent by a rank", "seconds"]
        body = [
            [t.name, t.axis, str(t.ranks), t.phase, str(t.calls), size(t.payload), size(t.sent), f"{t.seconds:.4f}"]
            for t in self.traffic
        ]
        parts = [f"Plan of {self.rank.name} on {self.ranks} ranks ({axes})", _grid(totals)]
        if body:
            parts.append(_grid([head, *body], right=(2, 4, 5, 6, 7)))
        return "\n\n".join([*parts, "Of one rank:", self.rank.table(depth, rows)])


def plan_of_ranks(
    run: Callable[..., Plan],
    module: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    backward: bool,
    mesh: Any,
    tp_plan: Mapping[str, str] | None,
    optimizer: str,
    machine: meshes.Machine | None,
) -> MeshPlan:
    """The plan of one rank. ValueError for a function, for a mesh that is not known, and for a module that cannot be divided."""
    if not isinstance(module, nn.Module):
        raise ValueError("plan(): a mesh divides a module, not a function")
    axes = meshes.checked_mesh(mesh)
    ledger = meshes.Ledger(machine or meshes.Machine())
    own = meshes.on_meta(module)
    total = sum(parameter.numel() for parameter in own.parameters())
    meshes.divide(own, tp_plan or meshes.plan_of(module), axes.get("tp", 1), ledger)
    recorder = Recorder()
    ledger.phase = lambda: recorder.phase
    made = run(recorder, own, args, kwargs, backward)
    meshes.note_replicas(own, axes, ledger, backward)
    sharded = axes.get("fsdp", 1)
    numbers = [parameter.numel() for parameter in own.parameters()]
    trained = [p for p in own.parameters() if p.requires_grad]
    gradients = sum(p.numel() * p.element_size() for p in trained) if backward else 0
    whole = made.parameter_bytes
    state = meshes.optimizer_state(optimizer, sum(p.numel() * p.element_size() for p in trained)) if backward else 0
    peak = made.peak
    if sharded > 1:
        # Two layers are there as a whole at a time: the one that runs, and the next.
        kept = min(whole, 2 * max(meshes.units(own), default=0))
        peak -= round((whole + gradients) * (1 - 1 / sharded)) - kept
    traffic = sorted(ledger.found.values(), key=lambda one: -one.sent)
    return MeshPlan(
        mesh=axes,
        ranks=math.prod(axes.values()),
        rank=made,
        total_parameters=total,
        parameters=sum(-(-number // sharded) for number in numbers),
        parameter_bytes=-(-whole // sharded),
        gradient_bytes=-(-gradients // sharded),
        optimizer=optimizer if backward else "none",
        optimizer_bytes=round(state / sharded),
        peak=peak + round(state / sharded),
        traffic=traffic,
        sent=sum(one.sent for one in traffic),
        compute_seconds=(made.flops + made.backward_flops) / ledger.machine.flops,
        communication_seconds=sum(one.seconds for one in traffic),
    )
