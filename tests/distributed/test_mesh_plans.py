"""Plans of one rank of many: against runs of four ranks, and by hand."""

import json
import sys
import time

import pytest
from _ranks import HAS_MPI, ranks_of, start

import mindtorch_v2 as torch
import mindtorch_v2.distributed as dist
from mindtorch_v2 import nn
from mindtorch_v2._planning.mesh import Machine, parse_mesh, sent_bytes
from mindtorch_v2.testing._internal.distributed.fake_pg import FakeStore


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8, bias=False) for _ in range(4)])
        self.head = nn.Linear(8, 4, bias=False)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def test_a_plan_says_what_four_ranks_do():
    assert ranks_of("planned.py", 4, "mpi" if HAS_MPI else "store").count("ok") == 4


def test_bytes_and_times_by_hand():
    net, x = Net(), torch.ones(2, 8)
    machine = Machine(bandwidth=1000.0, latency=0.5, flops=1e6)
    made = torch.plan(net, x, backward=True, mesh={"dp": 4}, optimizer="momentum", machine=machine)
    size = 4 * (4 * 64 + 32)
    (one,) = made.traffic
    assert (one.name, one.axis, one.ranks, one.phase, one.calls, one.payload) == (
        "all_reduce",
        "dp",
        4,
        "backward",
        1,
        size,
    )
    assert made.sent == 1.5 * size and made.communication_seconds == pytest.approx(6 * 0.5 + 1.5 * size / 1000)
    assert made.compute_seconds == pytest.approx((made.rank.flops + made.rank.backward_flops) / 1e6)
    assert made.parameters == 288 and made.optimizer_bytes == size and made.peak == made.rank.peak + size
    made = torch.plan(net, x, backward=True, mesh={"fsdp": 2, "dp": 3})
    counts = {(t.name, t.axis, t.phase): (t.calls, t.payload) for t in made.traffic}
    assert counts == {
        ("all_gather", "fsdp", "forward"): (5, size),
        ("all_gather", "fsdp", "backward"): (5, size),
        ("reduce_scatter", "fsdp", "backward"): (5, size),
        ("all_reduce", "dp", "backward"): (5, size // 2),
    }
    assert made.ranks == 6 and made.parameter_bytes == size // 2 and made.optimizer_bytes == size
    assert made.peak == made.rank.peak - size + 2 * 256 + size  # parts of both, two layers, and the state
    made = torch.plan(net, x, mesh={"tp": 4}, tp_plan={"layers.*": "colwise_rep", "head": "colwise_rep"})
    assert made.parameters == 72 and made.rank.outputs == [((2, 4), "torch.float32")]
    assert [(t.name, t.calls, t.payload) for t in made.traffic] == [("all_gather", 5, 4 * 64 + 32)]
    assert sent_bytes("all_reduce", 8, 800) == 1400 and sent_bytes("broadcast", 8, 800) == 800
    assert "all_gather" in str(made) and json.loads(made.to_json())["mesh"] == {"tp": 4}
    assert net.layers[0].weight.shape == (8, 8) and net.layers[0].weight.grad is None


def test_what_cannot_be_planned():
    net, x = Net(), torch.ones(2, 8)
    for call, said in [
        (lambda: torch.plan(net, x, mesh={"pp": 2}), "a mesh has the axes dp, fsdp, tp"),
        (lambda: torch.plan(net, x, mesh={"tp": 2}), "does not say how it is divided"),
        (lambda: torch.plan(net, x, mesh={"tp": 3}, tp_plan={"head": "colwise"}), "cannot be divided among 3 ranks"),
        (
            lambda: torch.plan(net, x, mesh={"tp": 2}, tp_plan={"layers": "colwise"}),
            "colwise of ModuleList is not planned",
        ),
        (lambda: torch.plan(net, x, mesh={"tp": 2}, tp_plan={"head": "best"}), "best of Linear is not planned"),
        (lambda: torch.plan(net, x, backward=True, mesh={"dp": 2}, optimizer="best"), "optimizer 'best' is none of"),
        (lambda: torch.plan(lambda: x, mesh={"dp": 2}), "a mesh divides a module"),
        (lambda: parse_mesh("dp=8;tp"), "is no list of axis=ranks"),
    ]:
        with pytest.raises(ValueError, match=said):
            call()


def test_a_model_of_70_billion_on_64_ranks():
    pytest.importorskip("transformers")
    fields = ["num_hidden_layers=80", "hidden_size=8192", "intermediate_size=28672", "vocab_size=128256"]
    fields += ["num_attention_heads=64", "num_key_value_heads=8"]
    command = [
        "plan",
        "--model",
        "LlamaConfig",
        "--head",
        "CausalLM",
        "--set",
        *fields,
        "--dtype",
        "bfloat16",
        "--backward",
    ]
    begin = time.monotonic()
    process = start(*command, "--mesh", "dp=8,tp=8", "--json")
    printed, errors = process.communicate(timeout=300)
    assert not process.returncode, errors
    made = json.loads(printed)
    print(f"{time.monotonic() - begin:.1f} s", file=sys.stderr)
    assert made["ranks"] == 64 and made["total_parameters"] == 70_553_706_496
    layer = (2 * 8192 * 8192 + 2 * 8192 * 1024 + 3 * 8192 * 28672) // 8 + 2 * 8192
    assert made["parameters"] == 80 * layer + 128256 * 8192 + 128256 * 8192 // 8 + 8192
    counts = {(t["name"], t["axis"], t["phase"]): t["calls"] for t in made["traffic"]}
    # one for each row-wise layer forward, one for each column-wise one backward, the head's too
    assert counts["all_reduce", "tp", "forward"] == 160 and counts["all_reduce", "tp", "backward"] == 401
    assert counts["all_gather", "tp", "forward"] == 1


def test_fake_groups_of_any_size():
    dist.init_process_group("fake", store=FakeStore(), rank=4000, world_size=5000)
    try:
        x = torch.ones(3)
        dist.all_reduce(x)
        assert dist.get_rank() == 4000 and x.tolist() == [1.0, 1.0, 1.0]
        made = torch.empty(15000, device="meta")
        dist.all_gather_single(made, torch.empty(3, device="meta"))
        name = dist.group.WORLD.group_name
        assert torch.ops._c10d_functional.all_gather_into_tensor(x, 5000, name).shape == (15000,)
    finally:
        dist.destroy_process_group()
