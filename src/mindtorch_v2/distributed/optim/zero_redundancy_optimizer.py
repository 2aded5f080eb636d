"""An optimizer whose state is divided among the ranks: each updates its share of the parameters and tells the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import mindtorch_v2 as torch

from ...optim import Optimizer
from .. import distributed_c10d as dist
from ..algorithms.join import Join, Joinable, JoinHook

__all__ = ["ZeroRedundancyOptimizer"]


class _Hook(JoinHook):
    """A rank without inputs makes steps, since the others wait for its share."""

    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self._optimizer = optimizer

    def main_hook(self) -> None:
        self._optimizer.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """`optimizer_class` over this rank's share of the parameters; after a step all ranks have all of them.

    Shares are made by size: the next largest parameter goes to the rank that has least. All ranks give the same parameters in the same order.

    Args:
        params: parameters, or groups of them.
        optimizer_class: what updates them.
        process_group: the ranks; all of them unless said.
        parameters_as_bucket_view: whether a share lies in one piece of memory, which is sent as it is.
        overlap_with_ddp: not here.
        defaults: options of the optimizer.

    Raises:
        TypeError: for what is no parameter.
        ValueError: for no parameters.
        NotImplementedError: for `overlap_with_ddp`.
    """

    def __init__(
        self,
        params: Iterable[Any],
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError("ZeroRedundancyOptimizer: overlap_with_ddp is not implemented")
        given = list(params)
        self.initialized = False
        Optimizer.__init__(self, given, defaults)
        Joinable.__init__(self)
        self.process_group = process_group if process_group is not None else dist._get_default_group()
        self.world_size, self.rank = dist.get_world_size(self.process_group), dist.get_rank(self.process_group)
        self.global_rank = dist.get_global_rank(self.process_group, self.rank)
        self._loads = [0] * self.world_size
        self._owner: dict[int, int] = {}
        self._held: list[Any] = []
        self._all_state_dicts: list[dict[str, Any]] = []
        self.parameters_as_bucket_view = parameters_as_bucket_view
        for group in self.param_groups:
            self._share(group)
        # A rank without parameters of its own keeps one that gets no gradient, since optimizers refuse to have none.
        self._empty = torch.nn.Parameter(torch.zeros(0))
        own = [{**group, "params": self._mine(group) or [self._empty]} for group in self.param_groups]
        self.optim = optimizer_class(own, **defaults)
        for group, local in zip(self.param_groups, self.optim.param_groups):
            for name, value in local.items():
                group.setdefault(name, value)
        self._flatten()
        self.initialized = True

    def _share(self, group: dict[str, Any]) -> None:
        """Give each parameter of a group a rank."""
        for param in sorted(group["params"], key=lambda param: param.numel(), reverse=True):
            rank = self._loads.index(min(self._loads))
            self._owner[id(param)] = rank
            self._loads[rank] += param.numel()
            self._held.append(param)

    def _mine(self, group: dict[str, Any]) -> list[Any]:
        return [param for param in group["params"] if self._owner[id(param)] == self.rank]

    def _of(self, rank: int) -> list[Any]:
        """The parameters of a rank, in their order."""
        return [param for group in self.param_groups for param in group["params"] if self._owner[id(param)] == rank]

    def _flatten(self) -> None:
        """Put the parameters of each rank and dtype into one piece of memory, where that is wanted."""
        self._pieces: list[list[Any]] = []
        for rank in range(self.world_size):
            pieces = []
            if self.parameters_as_bucket_view:
                for dtype in dict.fromkeys(param.dtype for param in self._of(rank)):
                    params = [param for param in self._of(rank) if param.dtype is dtype]
                    flat = torch.cat([param.data.reshape(-1) for param in params])
                    for param, part in zip(params, flat.split([param.numel() for param in params])):
                        param.data = part.view(param.shape)
                    pieces.append(flat)
            self._pieces.append(pieces)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters, on all ranks; the others stay where they are."""
        super().add_param_group(param_group)
        if not self.initialized:
            return
        group = self.param_groups[-1]
        self._share(group)
        self.optim.add_param_group({**group, "params": self._mine(group) or [self._empty]})
        self._flatten()

    def _options(self, source: list[dict[str, Any]], target: list[dict[str, Any]]) -> None:
        for one, other in zip(source, target):
            for name, value in one.items():
                if name != "params":
                    other[name] = value

    def _tell(self) -> None:
        """All ranks get what each has updated."""
        works = []
        for rank in range(self.world_size):
            for tensor in self._pieces[rank] or [param.detach() for param in self._of(rank)]:
                works.append(dist.broadcast(tensor, group=self.process_group, group_src=rank, async_op=True))
        for work in works:
            work.wait()

    def step(self, closure: Any = None, **kwargs: Any) -> Any:
        """A step of this rank's share, then everybody's to all. What `closure` gives."""
        Join.notify_join_context(self)
        self._options(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(closure, **kwargs) if closure is not None else self.optim.step(**kwargs)
        self._options(self.optim.param_groups, self.param_groups)
        self._tell()
        return loss

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a rank without inputs does: steps."""
        return _Hook(self)

    @property
    def join_device(self) -> Any:
        """The parameters' device."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self) -> Any:
        """The ranks."""
        return self.process_group

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring the state of all ranks to rank `to` of the group, whose `state_dict` has it then. All ranks call it."""
        self._options(self.param_groups, self.optim.param_groups)
        here = self.rank == to
        taken: list[Any] | None = [None] * self.world_size if here else None
        dist.gather_object(self.optim.state_dict(), taken, group=self.process_group, group_dst=to)
        self._all_state_dicts = taken or []

    def _numbers(self) -> dict[int, int]:
        """The number of each parameter, as a state dict of an optimizer that has all of them numbers it."""
        params = [param for group in self.param_groups for param in group["params"]]
        return {id(param): number for number, param in enumerate(params)}

    def state_dict(self) -> dict[str, Any]:
        """That of an optimizer of all parameters, as `consolidate_state_dict` brought it. RuntimeError where it did not."""
        if not self._all_state_dicts:
            raise RuntimeError(
                f"Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to save the global state."
            )
        numbers = self._numbers()
        groups, state = [], {}
        for group in self.param_groups:
            saved = {name: value for name, value in group.items() if name != "params"}
            groups.append(saved | {"params": [numbers[id(param)] for param in group["params"]]})
        for rank, local in enumerate(self._all_state_dicts):
            for group, own in zip(self.param_groups, local["param_groups"]):
                params = [param for param in group["params"] if self._owner[id(param)] == rank]
                for number, param in zip(own["params"], params):
                    if number in local["state"]:
                        state[numbers[id(param)]] = local["state"][number]
        return {"state": dict(sorted(state.items())), "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take a state dict of all parameters, of which each rank keeps its share."""
        numbers = self._numbers()
        groups, state = [], {}
        place = 0
        for group, given in zip(self.param_groups, state_dict["param_groups"]):
            mine = self._mine(group) or [self._empty]
            own = list(range(place, place + len(mine)))
            place += len(mine)
            groups.append({**given, "params": own})
            for number, param in zip(own, mine):
                if id(param) in numbers and numbers[id(param)] in state_dict["state"]:
                    state[number] = state_dict["state"][numbers[id(param)]]
        self.optim.load_state_dict({"state": state, "param_groups": groups})
        self._options(state_dict["param_groups"], self.param_groups)
        self._options(self.param_groups, self.optim.param_groups)
        self._all_state_dicts = []
