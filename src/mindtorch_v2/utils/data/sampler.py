"""Samplers: in which order, and with which repetitions, a loader asks for samples.

With equal seeds the random ones give the same indices as PyTorch's: they draw the same numbers in the same order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar, cast

import mindtorch_v2 as mt

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

_T_co = TypeVar("_T_co", covariant=True)
_CHUNK = 32  # with replacement, so many indices are drawn at a time


class Sampler(Generic[_T_co]):
    """The base class: a subclass defines `__iter__`, which gives indices or lists of them, and may define `__len__`."""

    def __init__(self, data_source: Any = None) -> None:
        pass

    def __iter__(self) -> Iterator[_T_co]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """Every index, in order."""

    data_source: Sized

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices in random order.

    Args:
        data_source: what the indices are for.
        replacement: draw every index independently, so that some come again.
        num_samples: how many indices; as many as there are samples if it is not given.
        generator: where the numbers are drawn from; without one, each round has its own, seeded from the default generator.

    Raises:
        TypeError: if `replacement` is not a bool.
        ValueError: if `num_samples` is not a positive integer.
    """

    data_source: Sized
    replacement: bool

    def __init__(
        self, data_source: Sized, replacement: bool = False, num_samples: int | None = None, generator: Any = None
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(self.replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={self.replacement}")
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={self.num_samples}")

    @property
    def num_samples(self) -> int:
        """How many indices a round has; the length of the data source may change between rounds."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n = len(self.data_source)
        generator = self.generator
        if generator is None:
            generator = mt.Generator()
            generator.manual_seed(int(mt.empty((), dtype=mt.int64).random_().item()))
        if self.replacement:
            for done in range(0, self.num_samples + 1, _CHUNK):
                size = min(_CHUNK, self.num_samples - done)
                yield from mt.randint(high=n, size=(size,), dtype=mt.int64, generator=generator).tolist()
            return
        for _ in range(self.num_samples // n):
            yield from mt.randperm(n, generator=generator).tolist()
        yield from mt.randperm(n, generator=generator).tolist()[: self.num_samples % n]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Given indices in random order."""

    indices: Sequence[int]

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in mt.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with given weights, which need not sum to 1.

    Raises:
        ValueError: if an argument has the wrong type or shape.
    """

    weights: Any
    num_samples: int
    replacement: bool

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Any = None
    ) -> None:
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        tensor = mt.as_tensor(weights, dtype=mt.float64)
        if tensor.dim() != 1:
            raise ValueError(f"weights should be a 1d sequence but given weights have shape {tuple(tensor.shape)}")
        self.weights = tensor
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = mt.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        yield from iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of indices of another sampler.

    Args:
        sampler: gives the indices.
        batch_size: how many go into a list.
        drop_last: leave out a last list that is shorter.

    Raises:
        ValueError: if `batch_size` is not a positive integer, or `drop_last` is not a bool.
    """

    def __init__(self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __len__(self) -> int:
        whole, rest = divmod(len(cast(Sized, self.sampler)), self.batch_size)
        return whole if self.drop_last or not rest else whole + 1
