"""DistributedDataParallel where ranks have unequally many inputs: what those do that have no more.

Note [An iteration of a join]
A rank with inputs says so (`Join.notify_join_context`), and then whether its backward pass exchanges gradients; the buffers of the greatest rank with inputs go to all; then come the buckets. A rank without inputs
calls the same collectives, with zeros.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch


def _sum(model: Any, number: int) -> int:
    flag = torch.tensor([number], dtype=torch.int32)
    model.process_group.allreduce([flag]).wait()
    return int(flag)


def _from_greatest(model: Any, candidate: bool, tensors: list[Any]) -> None:
    """All ranks get the tensors of the greatest candidate."""
    chosen = torch.tensor([model.process_group.rank() if candidate else -1])
    model.process_group.allreduce([chosen], torch.distributed.ReduceOp.MAX).wait()
    works = [model.process_group.broadcast([tensor], root=int(chosen)) for tensor in tensors]
    for work in works:
        work.wait()


def announce(model: Any, synchronized: bool) -> None:
    """What a rank with inputs says before an iteration; see Note [An iteration of a join]."""
    from ...distributed.algorithms.join import Join

    work = Join.notify_join_context(model)
    there = int(work.result()[0]) if work is not None else model.process_group.size()
    model.reducer.divisor = model.process_group.size() if model._divide_by_initial_world_size else there
    _sum(model, int(synchronized))
    if model._shares_buffers():
        _from_greatest(model, True, model._kept)


class Shadow:
    """What a rank without inputs does."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def main_hook(self) -> None:
        """Take part in an iteration of the others."""
        model = self._model
        synchronized = _sum(model, 0)
        if model._shares_buffers():
            _from_greatest(model, False, model._kept)
        if synchronized:
            model.reducer.shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        """All ranks get the weights of one that had inputs until the end."""
        model = self._model
        model.reducer.divisor = model.process_group.size()
        params = [param.detach() for param in model.module.parameters()]
        _from_greatest(model, is_last_joiner, params + model._kept)
