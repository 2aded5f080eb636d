"""Datasets, samplers and loaders; recorded indices are those of PyTorch 2.13 for the same seeds."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    get_worker_info,
    random_split,
)

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")
FIRST, SECOND = [[3, 2], [5, 4], [1, 0], [6]], [[3, 1], [6, 0], [2, 4], [5]]  # two rounds with seed 3
Pair = namedtuple("Pair", "a b")


class Records(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        if index == 99:
            raise KeyError("boom")
        return {"x": torch.tensor([float(index)]), "y": index, "s": str(index), "f": index * 0.5}


class Stream(IterableDataset):
    def __iter__(self):
        worker = get_worker_info()
        return iter(range(10) if worker is None else range(worker.id, 10, worker.num_workers))


class Draws(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.rand(1).item(), np.random.rand()


def batches(loader, key=None):
    return [(batch if key is None else batch[key]).tolist() for batch in loader]


def test_samplers_draw_pytorchs_indices():
    torch.manual_seed(0)
    assert list(RandomSampler(range(10))) == [6, 9, 0, 7, 3, 5, 4, 2, 1, 8]
    assert list(RandomSampler(range(5), num_samples=12)) == [1, 4, 2, 3, 0, 2, 0, 1, 4, 3, 0, 1]
    drawn = list(RandomSampler(range(5), replacement=True, num_samples=40))
    assert drawn[:12] == [3, 4, 1, 2, 2, 1, 0, 0, 1, 2, 1, 2] and drawn[-8:] == [0, 3, 2, 1, 1, 2, 4, 4]
    assert list(SubsetRandomSampler([5, 6, 7, 8])) == [8, 7, 5, 6]
    assert list(BatchSampler(SequentialSampler(range(10)), 3, False)) == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    assert len(BatchSampler(SequentialSampler(range(10)), 3, True)) == 3
    assert list(WeightedRandomSampler([0.1, 0.2, 0.7], 5)) == [0, 1, 2, 1, 2]
    parts = random_split(range(10), [3, 7], generator=torch.Generator().manual_seed(42))
    assert [part.indices for part in parts] == [[2, 6, 1], [8, 4, 5, 0, 9, 3, 7]]
    assert [len(part) for part in random_split(range(10), [0.33, 0.33, 0.34])] == [4, 3, 3]
    assert list(DistributedSampler(range(10), 3, 1)) == [1, 3, 8, 4]
    assert list(DistributedSampler(range(10), 3, 2, shuffle=False, drop_last=True)) == [2, 5, 8]


@pytest.mark.parametrize("method", [None, "fork", "spawn"])
def test_shuffled_loader_over_two_rounds(method):
    options = {} if method is None else {"num_workers": 2, "multiprocessing_context": method}
    torch.manual_seed(3)
    loader = DataLoader(Records(7), batch_size=2, shuffle=True, **options)
    assert batches(loader, "y") == FIRST and batches(loader, "y") == SECOND


def test_batch_of_records():
    batch = next(iter(DataLoader(Records(7), batch_size=3)))
    assert batch["x"].tolist() == [[0.0], [1.0], [2.0]] and batch["s"] == ["0", "1", "2"]
    assert batch["y"].dtype is torch.int64 and batch["f"].dtype is torch.float64


def test_streams():
    assert batches(DataLoader(Stream(), batch_size=4)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert batches(DataLoader(Stream(), batch_size=4, drop_last=True)) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    expected = [[0, 3], [1, 4], [2, 5], [6, 9], [7], [8]]
    assert batches(DataLoader(Stream(), batch_size=2, num_workers=3)) == expected
    loader = DataLoader(Stream(), batch_size=2, num_workers=3, persistent_workers=True)
    assert (batches(loader), batches(loader)) == (expected, expected)
    unordered = batches(DataLoader(Stream(), batch_size=2, num_workers=3, in_order=False))
    assert sorted(sum(unordered, [])) == list(range(10))


def test_workers_keep_the_order_and_persist():
    loader = DataLoader(Records(7), batch_size=2, num_workers=2, persistent_workers=True)
    expected = [[0, 1], [2, 3], [4, 5], [6]]
    assert (batches(loader, "y"), batches(loader, "y")) == (expected, expected)


def test_workers_are_seeded_as_pytorchs():
    torch.manual_seed(11)
    (first, first_numpy), (second, second_numpy) = DataLoader(Draws(), batch_size=2, num_workers=2)
    torch.manual_seed(11)
    again = list(DataLoader(Draws(), batch_size=2, num_workers=2))
    assert again[0][0].tolist() == first.tolist() and again[1][1].tolist() == second_numpy.tolist()
    assert len({*first.tolist(), *second.tolist()}) == 4 and len({*first_numpy.tolist(), *second_numpy.tolist()}) == 4


@pytest.mark.parametrize("workers", [0, 2])
def test_errors_of_the_dataset_come_through(workers):
    with pytest.raises(KeyError, match="boom") as caught:
        list(DataLoader(Records(100), batch_size=10, num_workers=workers))
    assert ("DataLoader worker process" in str(caught.value)) is bool(workers)


def _fail(worker_id):
    raise RuntimeError("no start")


def test_errors_of_the_start_come_through():
    with pytest.raises(RuntimeError, match="no start"):
        list(DataLoader(Records(4), num_workers=1, worker_init_fn=_fail))


def _exit(worker_id):
    import os

    os._exit(3)


def test_a_dead_worker_is_noticed(monkeypatch):
    from mindtorch_v2.utils.data import _workers

    monkeypatch.setattr(_workers, "ALIVE_CHECK_SECONDS", 0.2)
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly"):
        list(DataLoader(Records(4), num_workers=1, worker_init_fn=_exit))


def test_combined_datasets():
    joined = ConcatDataset([range(3), range(5)])
    assert [joined[i] for i in range(len(joined))] == [0, 1, 2, 0, 1, 2, 3, 4] and joined[-1] == 4
    with pytest.raises(ValueError, match="absolute value of index should not exceed dataset length"):
        joined[-9]
    assert list(ChainDataset([Stream(), Stream()]))[8:12] == [8, 9, 0, 1]
    assert StackDataset(range(3), range(3))[1] == (1, 1) and StackDataset(a=range(3))[1] == {"a": 1}
    assert Subset(range(10), [3, 5])[1] == 5
    tensors = TensorDataset(torch.arange(6).view(3, 2), torch.arange(3))
    assert [[x.tolist() for x in batch] for batch in DataLoader(tensors, batch_size=2)] == [
        [[[0, 1], [2, 3]], [0, 1]],
        [[[4, 5]], [2]],
    ]


def test_collate_and_convert():
    assert [column.tolist() for column in default_collate([(1, 2), (3, 4)])] == [[1, 3], [2, 4]]
    joined = default_collate([Pair(1, 2.0), Pair(3, 4.0)])
    assert isinstance(joined, Pair) and joined.b.dtype is torch.float64
    assert default_collate([np.int32(1), np.int32(2)]).dtype is torch.int32
    assert default_collate([True, False]).dtype is torch.bool and default_collate([b"a", b"b"]) == [b"a", b"b"]
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        default_collate([[1], [1, 2]])
    with pytest.raises(
        TypeError, match="default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists"
    ):
        default_collate([object()])
    converted = default_convert({"a": np.ones(2), "b": [1, "x"], "c": np.array(["s"])})
    assert isinstance(converted["a"], torch.Tensor) and converted["b"] == [1, "x"]
    assert isinstance(converted["c"], np.ndarray)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"num_workers": -1}, ValueError, "num_workers option should be non-negative"),
        ({"batch_size": 0}, ValueError, "batch_size should be a positive integer value, but got batch_size=0"),
        ({"shuffle": True, "sampler": [1]}, ValueError, "sampler option is mutually exclusive with shuffle"),
        ({"batch_sampler": [[1]], "batch_size": 2}, ValueError, "batch_sampler option is mutually exclusive"),
        ({"prefetch_factor": 2}, ValueError, "prefetch_factor option could only be specified in multiprocessing"),
        ({"timeout": -1}, ValueError, "timeout option should be non-negative"),
        ({"persistent_workers": True}, ValueError, "persistent_workers option needs num_workers > 0"),
        ({"batch_size": None, "drop_last": True}, ValueError, "batch_size=None option disables auto-batching"),
        ({"multiprocessing_context": "fork"}, ValueError, "can only be used with multi-process loading"),
        ({"num_workers": 1, "multiprocessing_context": "zz"}, ValueError, "should specify a valid start method"),
        ({"num_workers": 1, "multiprocessing_context": 3}, TypeError, "should be a valid context object"),
    ],
)
def test_wrong_options(options, kind, message):
    with pytest.raises(kind, match=message):
        DataLoader(Records(3), **options)


def test_attributes_are_fixed():
    with pytest.raises(ValueError, match="batch_size attribute should not be set after DataLoader is initialized"):
        DataLoader(Records(3)).batch_size = 2
    with pytest.raises(ValueError, match="expected unspecified shuffle option, but got shuffle=True"):
        DataLoader(Stream(), shuffle=True)
