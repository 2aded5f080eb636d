"""A rank's layers: what comes in, what goes out, and gradients the other way.

Note [Messages between stages]
Before the tensors of a part goes one message of fixed length, how long the next one is, and that one: dtypes, shapes and which need gradients. So parts may have different shapes. Tags are by stage and
direction, so that ranks that have several stages do not mix them.
"""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import mindtorch_v2 as torch

from ..._tensor import Tensor
from ...nn.parallel import DistributedDataParallel
from .. import distributed_c10d as dist


class PipelineStage:
    """`submodule`, the layers of stage `stage_index` of `num_stages`. Stages lie on the ranks of a group in turn.

    Args:
        device: where it is: the CPU.
        input_args, output_args: examples. Shapes are found out as they come, so they are not needed.
        group: the ranks; all of them unless said.

    Raises:
        ValueError: for a stage that is not there, and for fewer stages than ranks.
    """

    def __init__(
        self,
        submodule: Any,
        stage_index: int,
        num_stages: int,
        device: Any,
        input_args: Any = None,
        output_args: Any = None,
        output_grads: Any = None,
        input_grads: Any = None,
        group: Any = None,
        dw_builder: Any = None,
        get_mesh: Any = None,
    ) -> None:
        if not 0 <= stage_index < num_stages:
            raise ValueError(f"Stage index {stage_index} is out of range of {num_stages}")
        self.submod, self.stage_index, self.num_stages = submodule, stage_index, num_stages
        self.device = torch.device(device)
        self.group = group if group is not None else dist._get_default_group()
        self.group_rank, self.group_size = dist.get_rank(self.group), dist.get_world_size(self.group)
        if self.group_size > num_stages:
            raise ValueError(
                f"Pipeline group size {self.group_size} cannot be larger than number of stages {num_stages}"
            )
        self.has_backward = False
        self._inputs: dict[int, tuple[Any, ...]] = {}
        self._outputs: dict[int, tuple[Tensor, ...]] = {}
        self._works: list[Any] = []
        self._local: dict[tuple[int, int, int], list[Any]] = {}

    @property
    def is_first(self) -> bool:
        """Whether the batch comes in here."""
        return self.stage_index == 0

    @property
    def is_last(self) -> bool:
        """Whether the result is here."""
        return self.stage_index == self.num_stages - 1

    def _rank_of(self, stage: int) -> int:
        return stage % self.group_size

    def _send(self, tensors: list[Any], stage: int, backward: bool) -> None:
        said = [
            None if one is None else [str(one.dtype)[6:], list(one.shape), bool(one.requires_grad)] for one in tensors
        ]
        written = torch.tensor(list(json.dumps(said).encode()), dtype=torch.uint8)
        values = [one.detach().contiguous() for one in tensors if one is not None]
        tag = 2 * self.stage_index + backward
        for message in (torch.tensor([written.numel()]), written, *values):
            work = dist.isend(message, group=self.group, group_dst=self._rank_of(stage), tag=tag)
            self._works.append((work, message))

    def _receive(self, stage: int, backward: bool) -> list[Any]:
        tag, rank = 2 * stage + backward, self._rank_of(stage)

        def take(tensor: Tensor) -> Tensor:
            dist.recv(tensor, group=self.group, group_src=rank, tag=tag)
            return tensor

        length = take(torch.zeros(1, dtype=torch.int64))
        said = json.loads(bytes(take(torch.zeros(int(length), dtype=torch.uint8)).tolist()))
        made: list[Any] = []
        for one in said:
            if one is None:
                made.append(None)
                continue
            tensor = take(torch.empty(one[1], dtype=getattr(torch, one[0])))
            made.append(tensor.requires_grad_(one[2]) if not backward else tensor)
        return made

    def _pass(
        self, tensors: list[Any], stage: int, backward: bool, number: int, stages: dict[int, PipelineStage]
    ) -> None:
        if stage in stages:
            given = [
                None if one is None else one.detach().requires_grad_(one.requires_grad and not backward)
                for one in tensors
            ]
            stages[stage]._local[self.stage_index, backward, number] = given
        else:
            self._send(tensors, stage, backward)

    def _take(self, stage: int, backward: bool, number: int, stages: dict[int, PipelineStage]) -> list[Any]:
        if stage in stages:
            return self._local.pop((stage, backward, number))
        return self._receive(stage, backward)

    def forward_one_chunk(
        self, number: int, args: tuple[Any, ...], kwargs: dict[str, Any], stages: dict[int, PipelineStage]
    ) -> Any:
        """Run part `number`: with `args` in the first stage, with what the stage before sends in the others. The result."""
        if not self.is_first:
            args = tuple(self._take(self.stage_index - 1, False, number, stages))
        with self._alone():
            output = self.submod(*args, **kwargs)
        outputs = output if isinstance(output, (tuple, list)) else (output,)
        for one in outputs:
            if not isinstance(one, Tensor):
                raise RuntimeError(f"stage {self.stage_index} gives {type(one).__name__}; stages exchange tensors")
        if self.has_backward:
            self._inputs[number], self._outputs[number] = args, tuple(outputs)
        if not self.is_last:
            self._pass(list(outputs), self.stage_index + 1, False, number, stages)
        return output

    def _alone(self) -> AbstractContextManager[None]:
        """Of layers that are replicated on several ranks: that a part is not waited for, since gradients are averaged with the last one."""
        if self.has_backward and isinstance(self.submod, DistributedDataParallel):
            return self.submod.no_sync()
        return nullcontext()

    def backward_one_chunk(
        self, number: int, loss: Tensor | None, stages: dict[int, PipelineStage], last: bool = False
    ) -> None:
        """Run part `number` backward: from its loss in the last stage, from what the stage behind sends in the others. last: no other part comes after it."""
        inputs, outputs = self._inputs.pop(number), self._outputs.pop(number)
        if last and isinstance(self.submod, DistributedDataParallel) and self.submod.require_backward_grad_sync:
            self.submod.reducer.begin(outputs)
        if self.is_last:
            assert loss is not None
            loss.backward()
        else:
            grads = self._take(self.stage_index + 1, True, number, stages)
            pairs = [(one, grad) for one, grad in zip(outputs, grads) if one.requires_grad and grad is not None]
            if pairs:
                torch.autograd.backward([one for one, _ in pairs], [grad for _, grad in pairs])
        if not self.is_first:
            grads = [one.grad if isinstance(one, Tensor) else None for one in inputs]
            self._pass(grads, self.stage_index - 1, True, number, stages)

    def scale_grads(self, factor: int) -> None:
        """Divide the gradients of the layers."""
        for param in self.submod.parameters():
            if param.grad is not None:
                param.grad.div_(factor)

    def finish(self) -> None:
        """Wait for what has been sent."""
        for work, _ in self._works:
            work.wait()
        self._works.clear()
        self._inputs.clear()
        self._outputs.clear()
