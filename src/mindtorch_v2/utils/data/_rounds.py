"""A round of a loader in this process, and what it shares with rounds whose batches come from worker processes."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import mindtorch_v2 as mt

from ..._state import TLS
from ...autograd.profiler import record_function
from ._utils import fetch, pin_memory

if TYPE_CHECKING:
    from .dataloader import DataLoader


class _DatasetKind:
    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind: int, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool) -> Any:
        cls = fetch._MapDatasetFetcher if kind == _DatasetKind.Map else fetch._IterableDatasetFetcher
        return cls(dataset, auto_collation, collate_fn, drop_last)


class _BaseDataLoaderIter:
    """One round of a loader."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._pin_memory = loader.pin_memory
        self._pin_memory_device = loader.pin_memory_device or None
        self._sampler_iter = iter(self._index_sampler)
        # Drawn even without workers: so the default generator is where PyTorch's would be after a round.
        self._base_seed = mt.empty((), dtype=mt.int64).random_(generator=loader.generator).item()
        self._persistent_workers = loader.persistent_workers
        self._len_called = loader._IterableDataset_len_called
        self._num_yielded = 0

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False) -> None:
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._len_called = loader._IterableDataset_len_called

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _fetcher_factory(self) -> Callable[[], Any]:
        return functools.partial(
            _DatasetKind.create_fetcher,
            self._dataset_kind,
            self._dataset,
            self._auto_collation,
            self._collate_fn,
            self._drop_last,
        )

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        if TLS.profiler is None:
            data = self._next_data()
        else:
            with record_function(f"enumerate(DataLoader)#{type(self).__name__}.__next__"):
                data = self._next_data()
        if self._pin_memory:
            data = pin_memory.pin_memory(data, self._pin_memory_device)
        self._num_yielded += 1
        if self._len_called is not None and self._num_yielded > self._len_called:
            if self._dataset_kind == _DatasetKind.Iterable:
                self._warn_of_length()
        return data

    def _warn_of_length(self) -> None:
        text = (
            f"Length of IterableDataset {self._dataset} was reported to be {self._len_called}"
            f"(when accessing len(dataloader)), but {self._num_yielded} samples have been fetched. "
        )
        if self._num_workers > 0:
            text += (
                "For multiprocessing data-loading, this could be caused by not properly configuring the "
                "IterableDataset replica at each worker."
            )
        warnings.warn(text, stacklevel=3)

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError("{} cannot be pickled", self.__class__.__name__)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Loads in this process."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        if self._timeout != 0:
            raise AssertionError(f"_SingleProcessDataLoaderIter expected timeout == 0, but got timeout={self._timeout}")
        if self._num_workers != 0:
            raise AssertionError(
                f"_SingleProcessDataLoaderIter expected num_workers == 0, but got num_workers={self._num_workers}"
            )
        self._dataset_fetcher = self._fetcher_factory()()

    def _next_data(self) -> Any:
        return self._dataset_fetcher.fetch(self._next_index())
