"""Run by several ranks: modules whose parameters are in parts train as one process does on the joined batch."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    FSDPModule,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    FullyShardedDataParallel,
    MixedPrecisionPolicy,
    ShardingStrategy,
    StateDictType,
    fully_shard,
)
from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = nn.Linear(6, 7), nn.Linear(7, 9), nn.Linear(9, 3)
        self.scale = nn.Parameter(torch.ones(5))

    def forward(self, x):
        return self.third(F.gelu(self.second(torch.tanh(self.first(x))))) * self.scale.sum()


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.size = width // heads

    def forward(self, x):
        q, k, v = (f(x).unflatten(-1, (-1, self.size)).transpose(1, 2) for f in (self.q, self.k, self.v))
        return self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.gate, self.up, self.down = (
            nn.Linear(width, inner, False),
            nn.Linear(width, inner, False),
            nn.Linear(inner, width, False),
        )

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention_norm, self.attention = nn.RMSNorm(width), Attention(width, heads)
        self.ffn_norm, self.ffn = nn.RMSNorm(width), FeedForward(width, 2 * width)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.ffn(self.ffn_norm(x))


class Llama(nn.Module):
    """A tiny decoder."""

    def __init__(self, vocabulary=20, width=16, heads=4, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


LOSSES = []
"""Of the present run, step by step."""

RECORDED = {
    ("MLP", 2): [0.251267, 0.319376, 0.085902, 0.05067, 0.067192, 0.127216, 0.06183, 0.0708],
    ("Llama", 2): [3.163744, 3.161952, 3.171525, 3.088062, 3.176418, 3.143446, 3.150533, 3.140842],
    ("MLP", 4): [0.398319, 0.432836, 0.036697, 0.061712, 0.044029, 0.041734, 0.04406, 0.034473],
    ("Llama", 4): [3.177369, 3.106587, 3.112526, 3.119521, 3.189797, 3.062936, 3.025121, 3.139542],
    ("2 x 2", 4): [3.163744, 3.153736, 3.087405, 3.176638],
}
"""Losses of PyTorch 2.13 with gloo on as many ranks: of `check_fully_shard` by model, and of `check_two_dimensions`."""


def as_recorded(name, size):
    wanted = RECORDED.get((name, size), LOSSES)
    assert len(LOSSES) == len(wanted) and all(abs(a - b) < 2e-5 for a, b in zip(LOSSES, wanted)), (name, LOSSES)


def close(found, wanted, what="", rough=1e-5):
    if isinstance(found, DTensor):
        found = found.full_tensor()
    torch.testing.assert_close(found, wanted, rtol=rough, atol=rough, msg=lambda text: f"{text}\n{what}")


def net(kind):
    torch.manual_seed(11)
    return kind()


def batch(kind, step, size):
    generator = torch.Generator().manual_seed(step)
    if kind is MLP:
        return torch.randn(size * 2, 6, generator=generator)
    return torch.randint(0, 20, (size * 2, 9), generator=generator)


def loss_of(model, data):
    if data.is_floating_point():
        return model(data).square().mean()
    logits = model(data[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), data[:, 1:].flatten())


def train(
    kind,
    model,
    rank,
    size,
    split=None,
    steps=4,
    accumulate=1,
    clip=None,
    context=None,
    rough=1e-5,
    of_batch=None,
    make=torch.optim.AdamW,
):
    """Losses, gradients' norms and weights of some steps, beside those of one process."""
    LOSSES.clear()
    plain = net(kind)
    optimizers = [make(m.parameters(), lr=0.05) for m in (model, plain)]
    share = size if split is None else split
    for step in range(steps):
        for optimizer in optimizers:
            optimizer.zero_grad()
        for part in range(accumulate):
            data = batch(kind, 10 * step + part, share)
            mine = data.chunk(share)[rank if of_batch is None else of_batch]
            if isinstance(model, FSDPModule):
                model.set_requires_gradient_sync(part == accumulate - 1)
            if context is not None:
                with context():
                    loss = loss_of(model, mine)
                    loss.backward()
            else:
                loss = loss_of(model, mine)
                loss.backward()
            wanted = loss_of(plain, data)
            wanted.backward()
            total = loss.detach().full_tensor() if isinstance(loss, DTensor) else loss.detach().clone()
            dist.all_reduce(total, dist.ReduceOp.AVG)
            close(total, wanted.detach(), (step, part), rough)
            LOSSES.append(float(total))
        if clip is not None:
            norms = [nn.utils.clip_grad_norm_(m.parameters(), clip) for m in (model, plain)]
            close(norms[0], norms[1], "norm", rough)
        for optimizer in optimizers:
            optimizer.step()
    return plain


STEPPED = 1e-3
"""How near weights are after AdamW, which divides a gradient by its own size: one of 1e-8 that another order of sums moves by a hundredth moves its
weight by as much of the rate, 0.05."""


def same_weights(model, plain, rough=STEPPED):
    for (name, one), other in zip(model.named_parameters(), plain.parameters()):
        close(one.detach(), other.detach(), name, rough)


def check_fully_shard(rank, size):
    for reshard in (None, True, False):
        for kind in (MLP, Llama):
            model = net(kind)
            parts = [model.first, model.second] if kind is MLP else list(model.layers)
            for part in parts:
                fully_shard(part, reshard_after_forward=reshard)
            assert fully_shard(model, reshard_after_forward=reshard) is model
            assert (
                isinstance(model, FSDPModule)
                and isinstance(model, kind)
                and type(model).__name__ == f"FSDP{kind.__name__}"
            )
            assert all(isinstance(p, DTensor) and p.placements == (Shard(0),) for p in model.parameters())
            plain = train(kind, model, rank, size, accumulate=2, clip=0.7)
            as_recorded(kind.__name__, size)
            same_weights(model, plain)
            state = model.state_dict()
            assert list(state) == list(plain.state_dict())
            for key, value in plain.state_dict().items():
                close(state[key], value, key, STEPPED)
    model = net(MLP)
    fully_shard([model.first, model.second])
    fully_shard(model, shard_placement_fn=lambda p: Shard(0))
    same_weights(model, train(MLP, model, rank, size, make=torch.optim.SGD))
    handle = model.unshard(async_op=True)
    handle.wait()
    assert not isinstance(model.scale, DTensor)
    model.reshard()
    assert (
        isinstance(model.scale, DTensor) and model.scale.to_local().numel() == len(torch.arange(5).chunk(size)[rank])
        if rank < len(torch.arange(5).chunk(size))
        else True
    )
    try:
        fully_shard(nn.ModuleList([nn.Linear(2, 2)]))
        raise AssertionError
    except ValueError as error:
        assert "containers that do not implement forward" in str(error)


def check_late_parameters(rank):
    """Of models that were made without memory, and of other dtypes afterwards; gradients that are scaled."""
    with torch.device("meta"):
        model, other = MLP(), MLP()
    plain = net(MLP)
    fully_shard(model.second)
    fully_shard(model)
    model.to_empty(device="cpu")
    torch.manual_seed(11)
    for part in (model.first, model.second, model.third):
        part.reset_parameters()
    nn.init.ones_(model.scale)
    same_weights(model, plain)
    x = torch.ones(2, 6)
    close(model(x).detach(), plain(x).detach())
    model.double()
    made = model(x.double())
    made.sum().backward()
    assert made.dtype == torch.float64 and model.first.weight.grad.dtype == torch.float64
    group = model._fsdp_state.group
    assert all(param.heard is param.whole for param in group.params)  # objects of other dtypes are heard of, too
    weight = model.first.weight
    weight.data.mul_(0)
    assert isinstance(weight.data, DTensor) and float(weight.data.full_tensor().abs().sum()) == 0
    fully_shard(other)
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_model_state_dict(other, plain.state_dict() if rank == 0 else {}, options=options)
    same_weights(other, plain)
    optimizer, scaler = torch.optim.SGD(other.parameters(), 0.1), ShardedGradScaler(device="cpu", init_scale=4.0)
    before = other.scale.full_tensor().clone()
    scaler.scale(other(x * (float("inf") if rank == 0 else 1)).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    close(other.scale.full_tensor().detach(), before.detach())
    assert scaler.get_scale() == 2.0


def check_precision(rank, size):
    model = net(Llama)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    seen = []
    model.layers[0].register_forward_hook(lambda m, args, out: seen.append((args[0].dtype, m.ffn.up.weight.dtype)))
    for layer in model.layers:
        fully_shard(layer, mp_policy=policy)
    fully_shard(model, mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32, output_dtype=torch.float32))
    train(Llama, model, rank, size, steps=2, rough=0.1)
    assert seen[0] == (torch.bfloat16, torch.bfloat16) and model.head.weight.dtype == torch.float32


def check_wrapper(rank, size):
    for strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy.NO_SHARD):
        model = FullyShardedDataParallel(
            net(Llama), auto_wrap_policy=ModuleWrapPolicy({Block}), sharding_strategy=strategy, use_orig_params=True
        )
        assert len(FullyShardedDataParallel.fsdp_modules(model)) == 3
        plain = train(Llama, model, rank, size)
        state = model.state_dict()
        assert list(state) == list(plain.state_dict()), list(state)
        for key, value in plain.state_dict().items():
            close(state[key], value, key, STEPPED)
        with FullyShardedDataParallel.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
            parts = model.state_dict()
            assert all(isinstance(value, DTensor) for value in parts.values()) and list(parts) == list(state)
        other = FullyShardedDataParallel(
            Llama(), auto_wrap_policy=ModuleWrapPolicy({Block}), sharding_strategy=strategy
        )
        other.load_state_dict(state)
        with FullyShardedDataParallel.summon_full_params(other):
            for one, wanted in zip(other.parameters(), plain.parameters()):
                close(one.detach(), wanted.detach(), rough=STEPPED)
            other.module.head.weight.data.zero_()
        assert float(other.state_dict()["head.weight"].abs().sum()) == 0
        with model.no_sync():
            loss_of(model, batch(Llama, 0, 1)).backward()
        assert all(p.grad is not None for p in plain.parameters())
        total = model.clip_grad_norm_(0.1)
        assert not isinstance(total, DTensor)
        check_state_of_the_first_rank(model, rank)


def check_state_of_the_first_rank(model, rank):
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    loss_of(model, batch(Llama, 0, 1)).backward()
    optimizer.step()
    settings = FullStateDictConfig(rank0_only=True), FullOptimStateDictConfig(rank0_only=True)
    with FullyShardedDataParallel.state_dict_type(model, StateDictType.FULL_STATE_DICT, *settings):
        state = FullyShardedDataParallel.optim_state_dict(model, optimizer)
        before = {key: value.clone() for key, value in optimizer.state[model.module.head.weight].items()}
        other = torch.optim.AdamW(model.parameters(), 0.5)
        made = FullyShardedDataParallel.optim_state_dict_to_load(model, other, None if rank else state)
    other.load_state_dict(made)
    assert other.param_groups[0]["lr"] == 0.01
    for key, value in other.state[model.module.head.weight].items():
        assert isinstance(value, DTensor) == isinstance(before[key], DTensor), key
        torch.testing.assert_close(value, before[key])


def tensor_parallel(model, mesh, sequence=False):
    """The plan of a decoder."""
    rows = {"output_layouts": Shard(1)} if sequence else {}
    plan = {
        "embed": RowwiseParallel(input_layouts=Replicate(), **rows),
        "head": ColwiseParallel(output_layouts=Replicate(), **({"input_layouts": Shard(1)} if sequence else {})),
    }
    if sequence:
        plan["norm"] = SequenceParallel(use_local_output=True)
    parallelize_module(model, mesh, plan)
    for layer in model.layers:
        plan = {f"attention.{name}": ColwiseParallel() for name in "qkv"} | {
            "ffn.gate": ColwiseParallel(),
            "ffn.up": ColwiseParallel(),
        }
        plan |= {"attention.o": RowwiseParallel(**rows), "ffn.down": RowwiseParallel(**rows)}
        if sequence:
            whole = {"input_layouts": (Shard(1),), "desired_input_layouts": (Replicate(),), "use_local_output": True}
            plan |= {"attention": PrepareModuleInput(**whole), "ffn": PrepareModuleInput(**whole)}
            plan |= {
                "attention_norm": SequenceParallel(use_local_output=True),
                "ffn_norm": SequenceParallel(use_local_output=True),
            }
        parallelize_module(layer, mesh, plan)
    return model


def check_tensor_parallel(rank, size):
    if size == 3:
        return
    mesh = init_device_mesh("cpu", (size,), mesh_dim_names=("tp",))
    for sequence in (False, True):
        model = tensor_parallel(net(Llama), mesh, sequence)
        weight = model.layers[0].attention.q.weight
        assert (
            isinstance(weight, nn.Parameter)
            and weight.placements == (Shard(0),)
            and weight.to_local().shape == (16 // size, 16)
        )
        same_weights(model, train(Llama, model, 0, size, split=1))
    model = net(Llama)
    parallelize_module(model, mesh, {"head": ColwiseParallel(use_local_output=False)})
    plain = net(Llama)
    data = batch(Llama, 0, 1)
    with loss_parallel():
        logits = model(data[:, :-1])
        assert isinstance(logits, DTensor) and logits.placements == (Shard(2),)
        target = DTensor.from_local(data[:, 1:].flatten(), mesh, [Replicate()])
        found = F.cross_entropy(logits.flatten(0, 1), target)
        close(found.detach(), loss_of(plain, data).detach())
        found.backward()
    loss_of(plain, data).backward()
    for (name, one), other in zip(model.named_parameters(), plain.parameters()):
        close(one.grad, other.grad, name)


def check_two_dimensions(rank):
    """Tensor parallel 2 x data parallel 2, and parts among two ranks of which each two have the same."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    for sequence in (False, True):
        model = tensor_parallel(net(Llama), mesh["tp"], sequence)
        for layer in model.layers:
            fully_shard(layer, mesh=mesh["dp"])
        fully_shard(model, mesh=mesh["dp"])
        plain = train(Llama, model, rank, 4, split=2, of_batch=mesh["dp"].get_local_rank(), clip=None)
        as_recorded("2 x 2", 4)
        same_weights(model, plain)
        assert model.head.weight.device_mesh.ndim == 2
    model = net(Llama)
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    assert model.head.weight.placements == (Replicate(), Shard(0))
    same_weights(model, train(Llama, model, rank, 4, clip=0.5))
    wrapped = FullyShardedDataParallel(net(Llama), device_mesh=mesh, sharding_strategy=ShardingStrategy.HYBRID_SHARD)
    same_weights(wrapped, train(Llama, wrapped, rank, 4))


def check_waiting_replicas(rank, size):
    """Passes that take no average among replicas leave no gradient, and the next one that does has theirs too."""
    mesh = init_device_mesh("cpu", (size, 1), mesh_dim_names=("replicas", "parts"))
    for factor in (None, 4.0):
        model = torch.nn.Linear(3, 2)
        for p in model.parameters():
            torch.nn.init.constant_(p, 0.5)
        fully_shard(model, mesh=mesh)
        if factor is not None:
            model.set_gradient_divide_factor(factor)
        for number in range(2):
            model.set_requires_all_reduce(number == 1)
            model(torch.full((1, 3), float(rank + 1 + 10 * number))).sum().backward()
            assert (model.weight.grad is None) == (number == 0)
        total = sum(rank + 1 + rank + 11 for rank in range(size))
        wanted = torch.full((2, 3), total / (factor or size))
        torch.testing.assert_close(model.weight.grad.full_tensor(), wanted)


def check_pieces(rank, size):
    """Which piece of a tensor a rank has; one without elements begins behind the last element."""
    mesh = init_device_mesh("cpu", (size,))
    own = -(-5 // size)
    start = min(own * rank, 5)
    wanted = min(own, 5 - start), start
    assert compute_local_shape_and_global_offset((5, 3), mesh, [Shard(0)]) == ((wanted[0], 3), (wanted[1], 0))
    assert compute_local_shape_and_global_offset((3, 5), mesh, [Shard(-1)]) == ((3, wanted[0]), (0, wanted[1]))
    assert compute_local_shape_and_global_offset((5, 3), mesh, [Replicate()]) == ((5, 3), (0, 0))
    assert compute_local_shape_and_global_offset((5, 3), mesh, [Shard(0)], skip_offset=True) == ((wanted[0], 3), ())
    assert Shard.local_shard_size_and_offset(5, size, rank) == wanted


def check_replicated_stages(rank):
    """Two stages of which two replicas, or parts, take half of the batch each, against both stages on the whole."""

    def layers(number):
        torch.manual_seed(number)
        return nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 6)).double()

    def loss(output, target):
        return (output - target).square().mean()

    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "dp"))
    number, replica = mesh.get_local_rank("pp"), mesh.get_local_rank("dp")
    data, target = (
        torch.randn(16, 6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) for seed in (7, 8)
    )
    half = slice(8 * replica, 8 * replica + 8)
    for make in ("replicas", "parts"):
        for kind in (ScheduleGPipe, Schedule1F1B):
            plain, model = [layers(0), layers(1)], layers(number)
            if make == "replicas":
                wrapped = DistributedDataParallel(model, process_group=mesh.get_group("dp"))
            else:
                wrapped = fully_shard(model, mesh=mesh["dp"])
            stage = PipelineStage(wrapped, number, 2, torch.device("cpu"), group=mesh.get_group("pp"))
            schedule = kind(stage, 4, loss_fn=loss)
            optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (*plain, model)]
            for _ in range(3):
                schedule.step(*([] if number else [data[half]]), target=target[half] if number else None)
                loss(plain[1](plain[0](data)), target).backward()
                for got, wanted in zip(model.parameters(), plain[number].parameters()):
                    close(got.grad, wanted.grad, (make, kind), 1e-10)
                for optimizer in optimizers:
                    optimizer.step()
                    optimizer.zero_grad()
            same_weights(model, plain[number], 1e-10)


def main():
    rank, size = dist.get_rank(), dist.get_world_size()
    check_fully_shard(rank, size)
    check_late_parameters(rank)
    check_precision(rank, size)
    check_wrapper(rank, size)
    check_waiting_replicas(rank, size)
    check_pieces(rank, size)
    check_tensor_parallel(rank, size)
    if size == 4:
        check_two_dimensions(rank)
        check_replicated_stages(rank)
    print("ok")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
