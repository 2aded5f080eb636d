"""Datasets: maps from index to sample, iterables of samples, and combinations of them."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar, cast

import mindtorch_v2 as mt

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterDataPipe",
    "IterableDataset",
    "MapDataPipe",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

_T_co = TypeVar("_T_co", covariant=True)


class Dataset(Generic[_T_co]):
    """A map from index to sample.

    A subclass defines `__getitem__`, usually `__len__`, and may define `__getitems__`, which takes a list of indices.
    """

    def __getitem__(self, index: Any) -> _T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[_T_co]) -> ConcatDataset[_T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[_T_co], Iterable[_T_co]):
    """A stream of samples: a subclass defines `__iter__`."""

    def __add__(self, other: Dataset[_T_co]) -> ChainDataset:  # type: ignore[override]  (streams make a stream)
        return ChainDataset([self, other])


class IterDataPipe(IterableDataset[_T_co]):
    """The base class of pipes that are iterated over."""


class MapDataPipe(Dataset[_T_co]):
    """The base class of pipes that are asked by index."""


class TensorDataset(Dataset[tuple[Any, ...]]):
    """Samples are the slices of tensors along their first dimension.

    Raises:
        AssertionError: if the first dimensions differ.
    """

    def __init__(self, *tensors: Any) -> None:
        if any(tensors[0].size(0) != tensor.size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset[Any]):
    """Samples are tuples (or dicts, for datasets given by name) of the samples of several datasets.

    Raises:
        ValueError: if the lengths differ, or datasets are given both ways or not at all.
    """

    def __init__(self, *args: Dataset[Any], **kwargs: Dataset[Any]) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or"
                "``dict``- (via ``kwargs``) like input/output, but both types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets: tuple[Any, ...] | dict[str, Any] = args or kwargs
        lengths = [len(cast(Sized, dataset)) for dataset in args or kwargs.values()]
        if any(length != lengths[0] for length in lengths):
            raise ValueError("Size mismatch between datasets")
        self._length = lengths[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """The samples of several indices."""
        if isinstance(self.datasets, dict):
            columns = {name: self._column(dataset, indices) for name, dataset in self.datasets.items()}
            return [{name: column[i] for name, column in columns.items()} for i in range(len(indices))]
        return list(zip(*(self._column(dataset, indices) for dataset in self.datasets), strict=True))

    @staticmethod
    def _column(dataset: Any, indices: list[int]) -> Any:
        if not callable(getattr(dataset, "__getitems__", None)):
            return [dataset[index] for index in indices]
        items = dataset.__getitems__(indices)
        if len(items) != len(indices):
            raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}")
        return items

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[_T_co]):
    """Several datasets one after the other.

    Raises:
        AssertionError: if there are none, or one is a stream.
    """

    datasets: list[Dataset[_T_co]]
    cumulative_sizes: list[int]

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """The sums of the lengths so far."""
        return list(itertools.accumulate(len(dataset) for dataset in sequence))

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> _T_co:
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, idx)
        before = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][idx - before]

    @property
    def cummulative_sizes(self) -> list[int]:
        """The former spelling of `cumulative_sizes`."""
        warnings.warn(
            "`cummulative_sizes` attribute is renamed to `cumulative_sizes`", DeprecationWarning, stacklevel=2
        )
        return self.cumulative_sizes


class ChainDataset(IterableDataset[Any]):
    """Several streams one after the other."""

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        super().__init__()
        self.datasets = datasets

    def _streams(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self) -> Iterator[Any]:
        for dataset in self._streams():
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._streams())


class Subset(Dataset[_T_co]):
    """The samples of a dataset at given indices."""

    dataset: Dataset[_T_co]
    indices: Sequence[int]

    def __init__(self, dataset: Dataset[_T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """The samples of several indices."""
        chosen = [self.indices[i] for i in indices]
        together = getattr(self.dataset, "__getitems__", None)
        if callable(together):
            return cast("list[Any]", together(chosen))
        return [self.dataset[i] for i in chosen]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Dataset[Any], lengths: Sequence[int | float], generator: Any = None) -> list[Subset[Any]]:
    """Split a dataset at random into parts of given lengths, or fractions that sum to 1.

    What rounding down the fractions leaves over goes to the parts in turn, one sample each.

    Raises:
        ValueError: if the lengths do not sum to the length of the dataset, or a fraction is not between 0 and 1.
    """
    total = len(cast(Sized, dataset))
    sizes = list(lengths)
    if math.isclose(sum(sizes), 1) and sum(sizes) <= 1:
        for i, fraction in enumerate(sizes):
            if fraction < 0 or fraction > 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        sizes = [math.floor(total * fraction) for fraction in sizes]
        for i in range(total - sum(sizes)):
            sizes[i % len(sizes)] += 1
        for i, size in enumerate(sizes):
            if size == 0:
                warnings.warn(
                    f"Length of split at index {i} is 0. This might result in an empty dataset.", stacklevel=2
                )
    if sum(sizes) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = mt.randperm(total, generator=generator).tolist()
    ends = list(itertools.accumulate(sizes))
    return [Subset(dataset, order[end - size : end]) for end, size in zip(ends, sizes, strict=True)]
