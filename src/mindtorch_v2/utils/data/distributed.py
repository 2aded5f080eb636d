"""The sampler that gives each of several processes its own part of the indices."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import mindtorch_v2 as mt

from .sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[Any]):
    """Every `num_replicas`-th index, beginning at `rank`, of an order that is the same in every process.

    Args:
        dataset: what the indices are for.
        num_replicas, rank: how many processes there are, and which one this is; the default process group's unless given.
        shuffle: a random order, by `seed` and the epoch of `set_epoch`.
        seed: must be the same in every process.
        drop_last: leave out what cannot be divided evenly, instead of giving some indices twice.

    Raises:
        ValueError: if `rank` is out of range, or something is not given and there is no process group.
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None:
            num_replicas = int(mt.distributed.get_world_size())
        if rank is None:
            rank = int(mt.distributed.get_rank())
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        length = len(dataset)
        if drop_last and length % num_replicas:
            length -= num_replicas
        self.num_samples = math.ceil(length / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[Any]:
        length = len(self.dataset)
        if self.shuffle:
            generator = mt.Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = mt.randperm(length, generator=generator).tolist()
        else:
            indices = list(range(length))
        if self.drop_last:
            indices = indices[: self.total_size]
        elif indices:
            padding = self.total_size - len(indices)
            indices += (indices * math.ceil(padding / len(indices)))[:padding]
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose the random order of this epoch."""
        self.epoch = epoch
