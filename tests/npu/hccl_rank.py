"""One rank of `test_hccl.py`: collectives against numpy, and DistributedDataParallel against one process. Prints what it has as JSON."""

import json
import os
import sys

import numpy as np

import mindtorch_v2 as torch
import mindtorch_v2.distributed as dist

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def values(rank: int, *shape: int, dtype: str = "float32") -> np.ndarray:
    """What a rank hands in."""
    made = np.random.default_rng(rank).integers(1, 9, shape)
    return made.astype(dtype)


def tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(array.copy()).npu()


def collectives() -> None:
    every = [values(rank, 4, 3) for rank in range(SIZE)]
    for op, function in (("SUM", np.add), ("PRODUCT", np.multiply), ("MAX", np.maximum), ("MIN", np.minimum)):
        for dtype in ("float32", "float16", "int32", "int64", "int8"):
            mine = tensor(values(RANK, 4, 3, dtype=dtype))
            dist.all_reduce(mine, getattr(dist.ReduceOp, op))
            expected = function.reduce([values(rank, 4, 3, dtype=dtype) for rank in range(SIZE)])
            np.testing.assert_array_equal(mine.cpu().numpy(), expected, err_msg=f"{op} {dtype}")
    mean = tensor(every[RANK])
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    np.testing.assert_allclose(mean.cpu().numpy(), np.mean(every, 0))
    turned = tensor(every[RANK]).t()
    dist.all_reduce(turned)
    np.testing.assert_array_equal(turned.cpu().numpy(), np.sum(every, 0).T)
    flag = torch.tensor([RANK == 1, True], device="npu")
    dist.all_reduce(flag, dist.ReduceOp.MIN)
    assert flag.tolist() == [SIZE == 1, True]
    shared = tensor(every[RANK])
    dist.broadcast(shared, 1)
    np.testing.assert_array_equal(shared.cpu().numpy(), every[1])
    reduced = tensor(every[RANK])
    dist.reduce(reduced, 1)
    np.testing.assert_array_equal(reduced.cpu().numpy(), np.sum(every, 0) if RANK == 1 else every[RANK])
    gathered = [torch.empty(4, 3, device="npu") for _ in range(SIZE)]
    dist.all_gather(gathered, tensor(every[RANK]))
    for found, expected in zip(gathered, every, strict=True):
        np.testing.assert_array_equal(found.cpu().numpy(), expected)
    whole = torch.empty(4 * SIZE, 3, device="npu")
    dist.all_gather_into_tensor(whole, tensor(every[RANK]))
    np.testing.assert_array_equal(whole.cpu().numpy(), np.concatenate(every))
    part = torch.empty(2, 3, device="npu")
    dist.reduce_scatter_tensor(part, tensor(every[RANK]))
    np.testing.assert_array_equal(part.cpu().numpy(), np.sum(every, 0)[2 * RANK : 2 * RANK + 2])
    taken = torch.empty(4, 3, device="npu")
    dist.all_to_all_single(taken, tensor(every[RANK]))
    np.testing.assert_array_equal(taken.cpu().numpy(), np.concatenate([e[2 * RANK : 2 * RANK + 2] for e in every]))
    uneven = torch.empty(6 if RANK else 2, 3, device="npu")
    dist.all_to_all_single(uneven, tensor(every[RANK]), [3, 3] if RANK else [1, 1], [1, 3])
    np.testing.assert_array_equal(uneven.cpu().numpy(), np.concatenate([e[1:] if RANK else e[:1] for e in every]))
    own = torch.empty(3, device="npu")
    dist.scatter(own, [tensor(row) for row in every[0][:SIZE]] if RANK == 0 else None, 0)
    np.testing.assert_array_equal(own.cpu().numpy(), every[0][RANK])
    if RANK == 0:
        dist.send(tensor(every[0]), 1)
    else:
        received = torch.empty(4, 3, device="npu")
        dist.recv(received, 0)
        np.testing.assert_array_equal(received.cpu().numpy(), every[0])
    objects()
    dist.barrier()
    group = dist.new_group([0, 1])
    again = tensor(every[RANK])
    dist.all_reduce(again, group=group)
    np.testing.assert_array_equal(again.cpu().numpy(), np.sum(every, 0))
    for wrong, message in (
        (lambda: dist.all_reduce(torch.ones(2)), "unsupported device type cpu"),
        (lambda: dist.all_reduce(torch.ones(2, device="npu", dtype=torch.float64)), "not supported"),
    ):
        try:
            wrong()
        except RuntimeError as error:
            assert message in str(error), error
        else:
            raise AssertionError("it was taken")


def objects() -> None:
    gathered: list = [None] * SIZE
    dist.all_gather_object(gathered, {"rank": RANK})
    assert gathered == [{"rank": rank} for rank in range(SIZE)]
    dist.gather_object("x" * (RANK + 1), gathered if RANK == 0 else None)
    assert RANK or gathered == ["x", "xx"]
    shared = [RANK, "of rank", RANK]
    dist.broadcast_object_list(shared, 1)
    assert shared == [1, "of rank", 1]
    own: list = [None]
    dist.scatter_object_list(own, ["first", "second"] if RANK == 0 else None)
    assert own == [["first", "second"][RANK]]
    if RANK == 0:
        dist.send_object_list([{"a": 1}], 1)
    else:
        dist.recv_object_list(own, 0)
        assert own == [{"a": 1}]


def trained() -> list[float]:
    """A model after steps over both ranks' parts of a batch."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).npu()
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1)
    inputs, targets = torch.randn(8, 6), torch.randn(8, 2)
    rows = slice(RANK * 8 // SIZE, (RANK + 1) * 8 // SIZE)
    for _ in range(5):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(parallel(inputs[rows].npu()), targets[rows].npu()).backward()
        optimizer.step()
    return [value for p in model.parameters() for value in p.detach().cpu().reshape(-1).tolist()]


def main() -> None:
    dist.init_process_group("hccl")
    assert dist.get_backend() == "hccl"
    if SIZE > 1:
        collectives()
    weights = trained()
    dist.destroy_process_group()
    print("FOUND", json.dumps(weights))


if __name__ == "__main__":
    sys.exit(main())
