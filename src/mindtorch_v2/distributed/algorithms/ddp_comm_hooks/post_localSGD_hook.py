"""A hook that after some iterations averages gradients within a subgroup alone; a model averager averages the weights of all."""

from __future__ import annotations

from typing import Any

from ....futures import Future
from ... import distributed_c10d as dist
from . import default_hooks as default

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


class PostLocalSGDState:
    """process_group: the ranks of the first iterations; subgroup: those afterwards; start_localSGD_iter: when that begins; post_local_gradient_allreduce: whether gradients are averaged then at all."""

    def __init__(
        self, process_group: Any, subgroup: Any, start_localSGD_iter: int, post_local_gradient_allreduce: bool = True
    ) -> None:
        self.process_group, self.subgroup = process_group, subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket: Any) -> None:
        """Count an iteration, at its last bucket."""
        if bucket.is_last():
            self.iter += 1


def post_localSGD_hook(state: PostLocalSGDState, bucket: Any) -> Future[Any]:
    """A future of the bucket's average over all ranks at first, over the subgroup afterwards."""
    group = state.process_group if state.process_group is not None else dist._get_default_group()
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return default._averaged(group, bucket.buffer())
    state.maybe_increase_iter(bucket)
    if not state.post_local_gradient_allreduce:
        made: Future[Any] = Future()
        made.set_result(bucket.buffer())
        return made
    if state.subgroup is None:
        state.subgroup, _ = dist.new_subgroups(1)
    return default._averaged(state.subgroup, bucket.buffer())
