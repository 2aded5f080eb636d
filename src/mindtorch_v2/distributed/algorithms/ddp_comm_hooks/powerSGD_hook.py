"""Hooks that exchange matrices of gradients by two thin ones (PowerSGD, arXiv 1905.13727), and what that loses in the next iteration."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import mindtorch_v2 as torch

from ....futures import Future
from ... import distributed_c10d as dist
from . import default_hooks as default

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]


class PowerSGDState:
    """What PowerSGD keeps between iterations.

    Args:
        process_group: the ranks; all of them where it is None.
        matrix_approximation_rank: how many columns the thin matrices have.
        start_powerSGD_iter: the iterations before are exchanged as they are.
        min_compression_rate: smaller gains are not worth it.
        use_error_feedback: what is lost is added to the next gradients.
        warm_start: the next iteration begins with the matrices of this one.
        orthogonalization_epsilon: added to norms that are divided by.
        random_seed: of the first matrices; the same on all ranks.

    Raises:
        ValueError: for compression from the first iterations on with error feedback or a warm start.
    """

    def __init__(
        self,
        process_group: Any,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1_000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD can only be applied after the first two iterations in DDP."
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.rng = np.random.RandomState(random_seed)
        self.compression_stats_logging_frequency = compression_stats_logging_frequency
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape
        self.error_dict: dict[int, Any] = {}
        self.q_memory_dict: dict[int, dict[int, Any]] = {}
        self.iter = 0
        self.total_numel_before_compression = self.total_numel_after_compression = 0

    def maybe_increase_iter(self, bucket: Any) -> None:
        """Count an iteration, at its last bucket."""
        if bucket.is_last():
            self.iter += 1

    def compression_stats(self) -> tuple[float, int, int]:
        """How many times less is sent, of how many numbers, and how many that are."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after else 0.0), before, after


def _summed(group: Any, tensors: list[Any]) -> None:
    """Sum tensors over the ranks, in place, by one call."""
    if not tensors:
        return
    flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
    group.allreduce([flat]).wait()
    for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors])):
        tensor.copy_(part.view(tensor.shape))


def _orthogonal(matrix: Any, epsilon: float) -> None:
    """Make the columns orthogonal, in place: more than two by QR, which half types have not, and else by Gram and Schmidt."""
    if matrix.shape[1] > 2 and matrix.dtype not in (torch.float16, torch.bfloat16):
        matrix.copy_(torch.linalg.qr(matrix)[0])
        return
    for column in range(matrix.shape[1]):
        part = matrix[:, column : column + 1]
        part /= part.norm() + epsilon
        if column + 1 < matrix.shape[1]:
            rest = matrix[:, column + 1 :]
            rest -= (part * rest).sum(0) * part


def _drawn(state: PowerSGDState, matrices: list[tuple[int, Any]]) -> dict[int, Any]:
    """Where each approximation begins: numbers that PyTorch would draw, matrices of one shape after each other, from a seed of its own for each call."""
    generator = torch.Generator().manual_seed(int(state.rng.randint(1_000_000_000)))
    by_shape: dict[Any, list[tuple[int, Any]]] = {}
    for number, matrix in matrices:
        by_shape.setdefault(matrix.shape, []).append((number, matrix))
    found = {}
    for number, matrix in (one for same in by_shape.values() for one in same):
        rank = min(*matrix.shape, state.matrix_approximation_rank)
        found[number] = torch.randn(matrix.shape[1], rank, generator=generator, dtype=matrix.dtype)
    return found


def _approximate(state: PowerSGDState, key: int, matrices: list[tuple[int, Any]], group: Any) -> None:
    """Put an approximation of the average over all ranks into each matrix (a number of its own beside it)."""
    if not state.warm_start or key not in state.q_memory_dict:
        state.q_memory_dict[key] = _drawn(state, matrices)
    made = []
    for number, matrix in matrices:
        q = state.q_memory_dict[key][number]
        _orthogonal(q, state.orthogonalization_epsilon)
        made.append((number, matrix, q, matrix @ q))
    _summed(group, [p for _, _, _, p in made])
    for _, matrix, q, p in made:
        _orthogonal(p, state.orthogonalization_epsilon)
        torch.matmul(matrix.t(), p, out=q)
    _summed(group, [q for _, _, q, _ in made])
    for _, matrix, q, p in made:
        q /= group.size()
        matrix.copy_(p @ q.t())
        state.total_numel_after_compression += p.numel() + q.numel()


def _done(value: Any) -> Future[Any]:
    made: Future[Any] = Future()
    made.set_result(value)
    return made


def _with_feedback(state: PowerSGDState, bucket: Any) -> tuple[int, Any]:
    key, flat = bucket.index(), bucket.buffer()
    if state.use_error_feedback and key in state.error_dict and state.error_dict[key].shape == flat.shape:
        flat.add_(state.error_dict[key])
    return key, flat.clone()


def powerSGD_hook(state: PowerSGDState, bucket: Any) -> Future[Any]:
    """A future of the bucket's average, of which each tensor that is worth it is approximated by two thin matrices."""
    group = state.process_group if state.process_group is not None else dist._get_default_group()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return default._averaged(group, bucket.buffer())
    key, local = _with_feedback(state, bucket)
    flat = bucket.buffer()
    state.total_numel_before_compression += flat.numel()
    matrices, rest = [], []
    for number, tensor in enumerate(bucket.gradients()):
        rows = tensor.shape[0] if tensor.dim() else 1
        columns = tensor.numel() // rows if rows else 0
        rank = min(rows, columns, state.matrix_approximation_rank)
        if (rows + columns) * rank * state.min_compression_rate < tensor.numel():
            matrices.append((number, tensor.view(rows, columns)))
        else:
            rest.append(tensor)
            state.total_numel_after_compression += tensor.numel()
    _summed(group, rest)
    for tensor in rest:
        tensor.div_(group.size())
    _approximate(state, key, matrices, group)
    if state.use_error_feedback:
        state.error_dict[key] = local - flat
    state.maybe_increase_iter(bucket)
    return _done(flat)


def batched_powerSGD_hook(state: PowerSGDState, bucket: Any) -> Future[Any]:
    """`powerSGD_hook` of the whole bucket as one square matrix: faster, and less exact."""
    group = state.process_group if state.process_group is not None else dist._get_default_group()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return default._averaged(group, bucket.buffer())
    key, local = _with_feedback(state, bucket)
    flat = bucket.buffer()
    state.total_numel_before_compression += flat.numel()
    side = math.ceil(math.sqrt(flat.numel()))
    square = flat.new_zeros(side * side)
    square[: flat.numel()] = flat
    _approximate(state, key, [(0, square.view(side, side))], group)
    flat.copy_(square[: flat.numel()])
    if state.use_error_feedback:
        state.error_dict[key] = local - flat
    state.maybe_increase_iter(bucket)
    return _done(flat)
