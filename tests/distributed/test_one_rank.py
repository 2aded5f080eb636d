"""A group of one rank, which needs no other process: how programs of one process use torch.distributed."""

import inspect
import re
import threading
import warnings
import weakref

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.distributed as dist
from mindtorch_v2.distributed import _watching


@pytest.fixture(autouse=True)
def group():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.group.WORLD
    if dist.is_initialized():
        dist.destroy_process_group()


def test_watchers_are_told_of_every_thread(monkeypatch):
    told, begun, ends = [], threading.Event(), threading.Event()
    monkeypatch.setattr(_watching, "WATCHERS", [lambda namespace, name: told.append(name)])

    @_watching.watched("short_")
    def short():
        return 1

    @_watching.watched("long_")
    def long():
        begun.set()
        return ends.wait(60) and short()

    thread = threading.Thread(target=long)
    thread.start()
    assert begun.wait(60) and short() == 1
    ends.set()
    thread.join()
    assert told == ["long_", "short_"]


def test_who_is_there(group):
    assert dist.is_available() and dist.is_initialized() and dist.get_rank() == 0 and dist.get_world_size() == 1
    assert dist.get_backend() == "gloo" and dist.get_backend_config() == "cpu:gloo,cuda:gloo" and group.name() == "gloo"
    assert group.group_name == "0" and group.group_desc == "default_pg" and dist.get_process_group_ranks(None) == [0]
    with pytest.raises(ValueError, match="trying to initialize the default process group twice!"):
        dist.init_process_group("gloo", rank=0, world_size=1)
    dist.destroy_process_group()
    for call in (dist.get_rank, dist.get_world_size, lambda: dist.all_reduce(torch.ones(1)), dist.barrier):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            call()


@pytest.mark.parametrize("method", ["env://", "tcp://localhost:{port}", "file://{path}"])
def test_methods(method, tmp_path, monkeypatch):
    dist.destroy_process_group()
    port = dist.TCPStore("localhost", 0, 1, True).port
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}.items():
        monkeypatch.setenv(name, value)
    given = {} if method == "env://" else {"rank": 0, "world_size": 1}
    dist.init_process_group(init_method=method.format(port=port, path=tmp_path / "store"), **given)
    assert dist.get_world_size() == 1
    dist.all_reduce(torch.ones(2))


def test_a_group_lets_go_of_what_is_done():
    calls = (
        dist.all_reduce,
        lambda x: dist.all_reduce(x, async_op=True).wait(),
        lambda x: dist.all_gather([torch.zeros(3)], x),
        lambda x: dist.broadcast(x, 0),
    )
    for call in calls:
        x = torch.ones(3)
        seen = weakref.ref(x)
        call(x)
        del x
        assert seen() is None


def test_calls_are_copies():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MAX):
        assert dist.all_reduce(x.t(), op) is None and x.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    work = dist.all_reduce(x, async_op=True)
    assert work.wait() and work.is_success() and work.get_future().wait()[0] is x
    assert work.get_future().then(lambda done: done.value()[0].sum()).wait() == 10
    taken = [torch.zeros(2, 2)]
    dist.all_gather(taken, x.t())
    assert taken[0].tolist() == [[1.0, 3.0], [2.0, 4.0]]
    for call, given in ((dist.all_gather_single, x), (dist.reduce_scatter_single, x), (dist.all_to_all_single, x)):
        out = torch.zeros(2, 2)
        call(out, given)
        assert torch.equal(out, x), call
    for call in (dist.all_to_all, dist.scatter, dist.gather, dist.reduce_scatter):
        out = torch.zeros(2, 2)
        call(
            *{"all_to_all": ([out], [x]), "scatter": (out, [x]), "gather": (x, [out]), "reduce_scatter": (out, [x])}[
                call.__name__
            ]
        )
        assert torch.equal(out, x), call
    dist.broadcast(x, 0)
    dist.reduce(x, 0)
    dist.barrier()
    dist.monitored_barrier()
    objects = [None]
    dist.all_gather_object(objects, {"a": 1})
    assert objects == [{"a": 1}]
    dist.broadcast_object_list(objects)
    with dist._coalescing_manager(async_ops=True) as manager:
        dist.all_reduce(x)
    manager.wait()


def test_refusals(group):
    x = torch.ones(4)
    cases = [
        (lambda: dist.all_reduce(3), TypeError, "Expected parameter `tensor` of type torch.Tensor"),
        (lambda: dist.all_reduce(x, "x"), TypeError, "incompatible function arguments"),
        (
            lambda: dist.all_reduce(x, dist.ReduceOp.BAND),
            RuntimeError,
            "Cannot use ReduceOp.BAND with non-integral dtype",
        ),
        (
            lambda: dist.all_reduce(x.int(), dist.ReduceOp.AVG),
            RuntimeError,
            "result type Float can't be cast to the desired output type Int",
        ),
        (
            lambda: dist.all_reduce(x + 1j, dist.ReduceOp.MAX),
            ValueError,
            "all_reduce does not support RedOpType.MAX on complex tensors",
        ),
        (lambda: dist.broadcast(x, 5), RuntimeError, "ProcessGroupGloo::broadcast: invalid root rank: 5"),
        (lambda: dist.broadcast(x), ValueError, "Must specify global_rank or group_rank"),
        (
            lambda: dist.all_gather([x, x], x),
            RuntimeError,
            r"invalid output tensor list at index 0 \(expected length 1, got 2\)",
        ),
        (
            lambda: dist.all_gather([x[:3]], x),
            RuntimeError,
            r"invalid tensor size at index 0 \(expected \(4\), got \(3\)\)",
        ),
        (lambda: dist.all_gather([x.int()], x), ValueError, "Invalid usage of tensors with different dtypes"),
        (lambda: dist.gather(x), ValueError, "Argument ``gather_list`` must be specified on destination rank."),
        (lambda: dist.scatter(x), ValueError, "Argument ``scatter_list`` must be specified on source rank."),
        (lambda: dist.send(x, 0), ValueError, "Invalid destination rank"),
        (lambda: dist.all_to_all_single(x, x, [3], [4]), RuntimeError, "Split sizes doesn't match total dim 0 size"),
        (lambda: dist.new_group([0, 5]), ValueError, "the new group's world size should be less or equal"),
        (lambda: dist.new_group([5]), ValueError, "Rank 5 is out of range"),
        (lambda: dist.new_subgroups(2), ValueError, "must not exceed the world size"),
        (lambda: dist.P2POp(dist.send, x, 1), ValueError, "Invalid ``op``"),
        (lambda: dist.destroy_process_group(3), ValueError, "Invalid process group specified"),
    ]
    for call, error, match in cases:
        with pytest.raises(error, match=match):
            call()


def test_groups_and_former_names(group):
    made = dist.new_group([0], group_desc="mine")
    assert dist.get_rank(made) == 0 and made.group_desc == "mine" and dist.get_pg_count() == 2
    assert dist.new_subgroups(1)[1][0].size() == 1 and dist.split_group(split_ranks=[[0]]).size() == 1
    dist.destroy_process_group(made)
    with pytest.raises(ValueError, match="is not registered"):
        dist.get_group_rank(made, 0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        dist.all_gather_into_tensor(torch.zeros(2), torch.ones(2))
        assert dist.reduce_op.SUM is dist.ReduceOp.SUM
    assert [one.category for one in said] == [FutureWarning, FutureWarning]


def test_meta_and_fake_groups():
    dist.all_reduce(torch.ones(2, 3, device="meta"))
    dist.destroy_process_group()
    dist.init_process_group("fake", rank=3, world_size=64)
    x = torch.ones(5)
    dist.all_reduce(x)
    out = torch.zeros(320)
    dist.all_gather_single(out, x)
    assert dist.get_world_size() == 64 and dist.get_rank() == 3 and torch.equal(out, torch.ones(320))
    assert dist.new_group([0, 3]).size() == 2


GROUP_OPERATORS = """
_allgather_base_(Tensor output_tensor, Tensor input_tensor, GROUP process_group, bool async_op=True, int timeout=-1) -> (Tensor, WORK)
_reduce_scatter_base_(Tensor output_tensor, Tensor input_tensor, GROUP process_group, OP reduce_op, bool async_op=True, int timeout=-1) -> (Tensor, WORK)
allgather_(Tensor[][] output_tensors, Tensor[] input_tensors, GROUP process_group, bool async_op=True, int timeout=-1) -> (Tensor[][], WORK)
allgather_coalesced_(Tensor[][] output_lists, Tensor[] input_list, GROUP process_group, bool async_op=True) -> WORK
allgather_into_tensor_coalesced_(Tensor[] outputs, Tensor[] inputs, GROUP process_group, bool async_op=True) -> WORK
allreduce_(Tensor[] tensors, GROUP process_group, OP reduce_op, Tensor? sparse_indices, bool async_op=True, int timeout=-1) -> (Tensor[], WORK)
allreduce_coalesced_(Tensor[] tensors, GROUP process_group, OP reduce_op, bool async_op=True, int timeout=-1) -> WORK
alltoall_(Tensor[] output_tensors, Tensor[] input_tensors, GROUP process_group, bool async_op=True, int timeout=-1) -> (Tensor[], WORK)
alltoall_base_(Tensor output, Tensor input, GROUP process_group, int[] output_split_sizes, int[] input_split_sizes, bool async_op=True, int timeout=-1) -> WORK
barrier(Tensor tensor, GROUP process_group, int[] device_ids, bool async_op=True, int timeout=-1) -> WORK
broadcast_(Tensor[] tensors, GROUP process_group, int root_rank, int root_tensor, bool async_op=True, int timeout=-1) -> (Tensor[], WORK)
check_for_nan(Tensor tensor) -> ()
gather_(Tensor[][] output_tensors, Tensor[] input_tensors, GROUP process_group, int root_rank, bool async_op=True, int timeout=-1) -> WORK
monitored_barrier_(Tensor tensor, GROUP process_group, int[] device_ids, int timeout, bool wait_all_ranks) -> ()
recv_(Tensor[] tensors, GROUP process_group, int src, int tag) -> WORK
recv_any_source_(Tensor[] tensors, GROUP process_group, int tag) -> WORK
reduce_(Tensor[] tensors, GROUP process_group, OP reduce_op, int root_rank, int root_tensor, bool async_op=True, int timeout=-1) -> WORK
reduce_scatter_(Tensor[] output_tensors, Tensor[][] input_tensors, GROUP process_group, OP reduce_op, bool async_op=True, int timeout=-1) -> (Tensor[], WORK)
reduce_scatter_tensor_coalesced_(Tensor[] outputs, Tensor[] inputs, GROUP process_group, OP reduce_op, bool async_op=True, int timeout=-1) -> WORK
scatter_(Tensor[] output_tensors, Tensor[][] input_tensors, GROUP process_group, int root_rank, bool async_op=True, int timeout=-1) -> (Tensor[], WORK)
send(Tensor[] tensors, GROUP process_group, int dst, int tag) -> WORK
"""  # as PyTorch 2.13 has them, with short names of classes


@pytest.mark.parametrize("line", GROUP_OPERATORS.strip().split("\n"))
def test_operators_over_groups_have_pytorchs_signatures(line):
    name = line.partition("(")[0]
    for short, whole in (("GROUP", "ProcessGroup"), ("WORK", "Work"), ("OP", "ReduceOp")):
        line = re.sub(rf"\b{short}\b", f"__torch__.torch.classes.c10d.{whole}", line)
    packet = getattr(torch.ops.c10d, name)
    assert packet is getattr(torch.ops.c10d, name) and packet.overloads() == ["default"]
    assert str(packet.default._schema) == f"c10d::{line}"
    assert (str(packet), str(packet.default)) == (f"c10d.{name}", f"c10d.{name}.default")
    function = inspect.signature(packet.default.op)
    assert list(function.parameters) == [argument.name for argument in packet.default._schema.arguments]


def test_a_name_that_is_no_operator_over_groups():
    with pytest.raises(AttributeError, match="'_OpNamespace' 'c10d' object has no attribute 'nothing'"):
        torch.ops.c10d.nothing  # noqa: B018
