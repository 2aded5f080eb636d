"""In which order parts of a batch go forward and backward through the stages of a rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import mindtorch_v2 as torch

from .microbatch import merge_chunks, split_args_kwargs_into_chunks
from .stage import PipelineStage


class _Step(NamedTuple):
    backward: bool
    stage: int
    part: int


class _Schedule:
    """Runs a batch, in `n_microbatches` parts, through the stages of this rank.

    Args:
        loss_fn: of the last stage's result and the target. Without it there is no backward pass.
        args_chunk_spec, kwargs_chunk_spec, output_merge_spec: in which dimensions batches are divided and results joined; the first unless said.
        scale_grads: gradients are divided by the number of parts, so that means over parts are means over the batch.
    """

    def __init__(
        self,
        stages: list[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable[..., Any] | None,
        args_chunk_spec: Any,
        kwargs_chunk_spec: Any,
        output_merge_spec: Any,
        scale_grads: bool,
    ) -> None:
        if n_microbatches < 1:
            raise ValueError(f"Number of microbatches ({n_microbatches}) must be positive")
        self._stages = {stage.stage_index: stage for stage in stages}
        self._n_microbatches, self._loss_fn, self.scale_grads = n_microbatches, loss_fn, scale_grads
        self._args_chunk_spec, self._kwargs_chunk_spec = args_chunk_spec, kwargs_chunk_spec
        self._output_merge_spec = output_merge_spec
        self._num_stages = stages[0].num_stages

    def _order(self) -> Iterator[_Step]:
        """The steps of this rank."""
        raise NotImplementedError

    def step(
        self,
        *args: Any,
        target: Any = None,
        losses: list[Any] | None = None,
        return_outputs: bool = True,
        loss_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Run a batch forward and, with a loss, backward. The joined results on the rank with the last stage, None elsewhere; `losses` gets those of the parts there.

        Raises:
            RuntimeError: within `torch.no_grad()`, where there is a loss; for batches with fewer rows than parts.
        """
        if self._loss_fn is not None and not torch.is_grad_enabled():
            raise RuntimeError(
                "step() requires gradients to be enabled for backward computation; it should not be used under torch.no_grad() context. Please call eval() instead."
            )
        return self._run(args, kwargs, target, losses, return_outputs, loss_kwargs or {}, self._loss_fn is not None)

    def eval(self, *args: Any, target: Any = None, losses: list[Any] | None = None, **kwargs: Any) -> Any:
        """Run a batch forward alone."""
        with torch.no_grad():
            return self._run(args, kwargs, target, losses, True, {}, False)

    def _run(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        target: Any,
        losses: list[Any] | None,
        return_outputs: bool,
        loss_kwargs: dict[str, Any],
        backward: bool,
    ) -> Any:
        count = self._n_microbatches
        if 0 not in self._stages:
            args = ()
        parts, named = split_args_kwargs_into_chunks(
            args, kwargs, count, self._args_chunk_spec, self._kwargs_chunk_spec
        )
        last = self._stages.get(self._num_stages - 1)
        targets = torch.tensor_split(target, count) if target is not None and last is not None else None
        outputs: dict[int, Any] = {}
        made: dict[int, Any] = {}
        for stage in self._stages.values():
            stage.has_backward = backward
        left = dict.fromkeys(self._stages, count)
        for step in self._order():
            stage = self._stages[step.stage]
            if step.backward:
                left[step.stage] -= 1
                if backward:
                    stage.backward_one_chunk(step.part, made.get(step.part), self._stages, not left[step.stage])
                continue
            output = stage.forward_one_chunk(step.part, parts[step.part], named[step.part], self._stages)
            if stage is last:
                outputs[step.part] = output
                if self._loss_fn is not None and targets is not None:
                    made[step.part] = self._loss_fn(output, targets[step.part], **loss_kwargs)
                elif backward:
                    raise RuntimeError("step() has a loss_fn, and the rank with the last stage got no target")
        for stage in self._stages.values():
            stage.finish()
            if backward and self.scale_grads:
                stage.scale_grads(count)
        if last is None:
            return None
        if losses is not None:
            losses[:] = [made[part] for part in sorted(made)]
        if not return_outputs:
            return None
        return merge_chunks([outputs[part] for part in range(count)], self._output_merge_spec)


class _Single(_Schedule):
    """A schedule of ranks that have one stage each."""

    def __init__(
        self,
        stage: PipelineStage,
        n_microbatches: int,
        loss_fn: Callable[..., Any] | None = None,
        args_chunk_spec: Any = None,
        kwargs_chunk_spec: Any = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
    ) -> None:
        super().__init__(
            [stage], n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads
        )
        self._stage = stage


class ScheduleGPipe(_Single):
    """All parts forward, then all backward."""

    def _order(self) -> Iterator[_Step]:
        for backward in (False, True):
            for part in range(self._n_microbatches):
                yield _Step(backward, self._stage.stage_index, part)


class Schedule1F1B(_Single):
    """One forward, one backward, once as many parts are on their way as there are stages. ValueError for fewer parts than stages."""

    def __init__(self, stage: PipelineStage, n_microbatches: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(stage, n_microbatches, *args, **kwargs)
        if n_microbatches < stage.num_stages:
            raise ValueError(
                f"Number of microbatches ({n_microbatches}) must be greater than or equal to the number of stages ({stage.num_stages})."
            )

    def _order(self) -> Iterator[_Step]:
        stage, count = self._stage.stage_index, self._n_microbatches
        ahead = min(count, self._num_stages - stage)
        for part in range(ahead):
            yield _Step(False, stage, part)
        for part in range(count):
            yield _Step(True, stage, part)
            if part + ahead < count:
                yield _Step(False, stage, part + ahead)


class _Multi(_Schedule):
    """A schedule of ranks that have several stages each."""

    def __init__(
        self,
        stages: list[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable[..., Any] | None = None,
        args_chunk_spec: Any = None,
        kwargs_chunk_spec: Any = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
    ) -> None:
        super().__init__(
            stages, n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads
        )
        self._numbers = sorted(self._stages)
        self.pp_group_size, self.rank = stages[0].group_size, stages[0].group_rank
        wanted = list(range(self.rank, self._num_stages, self.pp_group_size))
        if self._numbers != wanted:
            raise ValueError(f"rank {self.rank} has the stages {self._numbers}; stages lie in turn, so it has {wanted}")


class ScheduleLoopedBFS(_Multi):
    """All parts forward through one stage after the other, then all backward."""

    def _order(self) -> Iterator[_Step]:
        for stage in self._numbers:
            for part in range(self._n_microbatches):
                yield _Step(False, stage, part)
        for stage in reversed(self._numbers):
            for part in range(self._n_microbatches):
                yield _Step(True, stage, part)


class ScheduleInterleaved1F1B(_Multi):
    """1F1B over several stages of each rank, in rounds. ValueError where the parts do not divide into rounds."""

    def __init__(self, stages: list[PipelineStage], n_microbatches: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(stages, n_microbatches, *args, **kwargs)
        self.number_of_rounds = max(1, n_microbatches // self.pp_group_size)
        self.microbatches_per_round = n_microbatches // self.number_of_rounds
        if n_microbatches % self.number_of_rounds:
            raise ValueError(
                f"Interleaved 1F1B requires the number of microbatches to be a multiple of the number of rounds ({self.number_of_rounds}), but got {n_microbatches}."
            )

    def _order(self) -> Iterator[_Step]:
        each, local = self.microbatches_per_round, len(self._numbers)
        total = self._n_microbatches * local
        ahead = min(total, (local - 1) * each + 2 * (self.pp_group_size - 1 - self.rank))

        def of(index: int, backward: bool) -> _Step:
            place = index // each % local
            part = index // (each * local) * each + index % each
            return _Step(backward, self._numbers[local - 1 - place if backward else place], part)

        for index in range(ahead):
            yield of(index, False)
        for index in range(total):
            if index + ahead < total:
                yield of(index + ahead, False)
            yield of(index, True)
