"""Run by several ranks: synchronized batch normalization, hooks, averages, sharded optimizers, unequal inputs and pipelines against one process."""

import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed._composable.replicate import replicate
from torch.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, default_hooks, register_ddp_comm_hook
from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState, post_localSGD_hook
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import (
    PowerSGDState,
    batched_powerSGD_hook,
    powerSGD_hook,
)
from torch.distributed.algorithms.join import Join, Joinable
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.optim import (
    PostLocalSGDOptimizer,
    ZeroRedundancyOptimizer,
    _apply_optimizer_in_backward,
    _get_in_backward_optimizers,
)
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleLoopedBFS,
)
from torch.nn.parallel import DistributedDataParallel


def seeded(number):
    return torch.Generator().manual_seed(number)


def mlp(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 12), nn.Tanh(), nn.Linear(12, 2)).double()


def same(got, wanted, tolerance=1e-10):
    torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance)


def same_models(one, other, tolerance=1e-10):
    for got, wanted in zip(one.parameters(), other.parameters()):
        same(got, wanted, tolerance)


def check_batch_norm(rank, size):
    for shape, momentum, affine in (((5, 3), 0.1, True), ((2, 3, 4), None, True), ((2, 3, 2, 3), 0.3, False)):
        torch.manual_seed(0)
        kinds = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d}
        plain = kinds[len(shape)](3, momentum=momentum, affine=affine).double()
        model = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(nn.Sequential(plain)))
        assert isinstance(model[0], nn.SyncBatchNorm)
        for step in range(3):
            rows = [shape[0] + other for other in range(size)]  # ranks have batches of different sizes
            parts = [
                torch.randn(n, *shape[1:], generator=seeded(10 * step + i), dtype=torch.float64)
                for i, n in enumerate(rows)
            ]
            whole = torch.cat(parts).requires_grad_()
            mine = parts[rank].clone().requires_grad_()
            weight = torch.randn(whole.shape, generator=seeded(step), dtype=torch.float64)
            wanted = plain(whole)
            (wanted * weight).sum().backward()
            got = model(mine)
            place = slice(sum(rows[:rank]), sum(rows[: rank + 1]))
            (got * weight[place]).sum().backward()
            same(got, wanted[place])
            same(mine.grad, whole.grad[place])
            same(model[0].running_mean, plain.running_mean)
            same(model[0].running_var, plain.running_var)
            if affine:
                for one, other in zip(model.parameters(), plain.parameters()):
                    total = one.grad.clone()
                    dist.all_reduce(total)
                    same(total, other.grad)
                    one.grad = other.grad = None
        model.eval(), plain.eval()
        same(model(mine), plain(mine))


def gradients(hook, rank, size, state=None, steps=1):
    model = DistributedDataParallel(mlp().float(), bucket_cap_mb=1e-3)
    if callable(hook) and not isinstance(hook, DDPCommHookType):
        model.register_comm_hook(state, hook)
    else:
        register_ddp_comm_hook(hook, model, state)
    plain = mlp().float()
    for step in range(steps):
        data = torch.randn(size, 4, 6, generator=seeded(step))
        for one, batch in ((model, data[rank]), (plain, data.reshape(-1, 6))):
            one.zero_grad()
            one(batch).square().mean().backward()
    return [(one.grad, other.grad) for one, other in zip(model.parameters(), plain.parameters())]


def check_hooks(rank, size):
    for hook, tolerance in (
        (DDPCommHookType.ALLREDUCE, 1e-5),
        (default_hooks.fp16_compress_hook, 2e-3),
        (DDPCommHookType.FP16_COMPRESS, 2e-3),
        (DDPCommHookType.BF16_COMPRESS, 2e-2),
        (default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook), 2e-3),
        (default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook), 2e-2),
    ):
        for got, wanted in gradients(hook, rank, size):
            assert got.dtype is torch.float32
            same(got, wanted, tolerance)
    for hook in (powerSGD_hook, batched_powerSGD_hook):
        # with as many columns as the matrices have nothing is lost
        state = PowerSGDState(None, 64, start_powerSGD_iter=2, min_compression_rate=1e-9)
        for got, wanted in gradients(hook, rank, size, state, steps=4):
            same(got, wanted, 2e-3)
        assert state.iter == 4 and state.compression_stats()[1] > 0
        state = PowerSGDState(None, 1, start_powerSGD_iter=2, min_compression_rate=1)
        made = torch.cat([got.flatten() for got, _ in gradients(hook, rank, size, state, steps=3)])
        every = torch.empty(size, made.numel())
        dist.all_gather_single(every, made)
        assert all(torch.equal(one, every[0]) for one in every)  # it is less exact, and the same everywhere
    for got, wanted in gradients(DDPCommHookType.NOOP, rank, size):
        assert size == 1 or not torch.equal(got, wanted)


RECORDED = [1.45112, 1.40740, 1.32054, 1.32126, -1.81591, 0.70350, -0.26459, 0.43227, -1.06586, -0.37577]
"""Of rank 0 of two, by PyTorch 2.13 with gloo: the losses of four steps with PowerSGD, and the sums of the parameters."""


def check_recorded(rank, size):
    if size != 2:
        return
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
    model = DistributedDataParallel(net)
    model.register_comm_hook(PowerSGDState(None, 1, start_powerSGD_iter=2, min_compression_rate=1), powerSGD_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    found = []
    for step in range(4):
        generator = seeded(100 * step + rank)
        x, y = torch.randn(6, 8, generator=generator), torch.randint(0, 4, (6,), generator=generator)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    found += [value.detach().sum().item() for value in net.parameters()]
    if rank == 0:
        same(torch.tensor(found), torch.tensor(RECORDED), 2e-5)


def check_replicate(rank, size):
    seen = []

    def hook(state, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        seen.append(bucket.is_last())
        return default_hooks.allreduce_hook(state, bucket)

    plain, model = mlp(), mlp()
    frozen = [value.detach().clone() for value in model[2].parameters()]
    assert replicate(model, ignored_modules=[model[2]]) is model
    assert type(model).__name__ == "DDPSequential" and list(model.state_dict()) == list(plain.state_dict())
    model.register_comm_hook(None, hook)
    parts = [torch.randn(3, 6, generator=seeded(other), dtype=torch.float64) for other in range(size)]
    plain(torch.cat(parts)).sum().backward()
    model.set_requires_gradient_sync(False)
    model(parts[rank]).sum().backward()
    assert not seen
    model.zero_grad()
    model.set_requires_gradient_sync(True)
    model(parts[rank]).sum().backward()
    assert seen[-1]
    for number in (0, 4):
        same(model[number].weight.grad * size, plain[number].weight.grad)
    alone = mlp()
    alone(parts[rank]).sum().backward()
    same(model[2].weight.grad, alone[2].weight.grad)
    for value, before in zip(model[2].parameters(), frozen):
        same(value.detach(), before)
    norm = replicate(nn.BatchNorm1d(2))
    for _ in range(2):
        norm(torch.full((3, 2), float(rank)))
    assert torch.allclose(norm.running_mean, torch.full((2,), 0.19 * rank))  # no rank has another's
    for call, kind, said in (
        (lambda: copy.deepcopy(model), AssertionError, "DDP does not support deepcopy"),
        (lambda: replicate(mlp(), device_id="cpu"), RuntimeError, "Expected device_id to be int or torch.device"),
    ):
        try:
            call()
        except kind as error:
            assert said in str(error)
        else:
            raise AssertionError(said)


def check_steps_in_backward(rank, size):
    plain, model = mlp(), mlp()
    _apply_optimizer_in_backward(torch.optim.SGD, model.parameters(), {"lr": 0.1, "momentum": 0.9})
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9)
    assert len(_get_in_backward_optimizers(model)) == 6
    for step in range(3):
        x = torch.randn(4, 6, generator=seeded(step), dtype=torch.float64)
        optimizer.zero_grad()
        for one in (plain, model):
            one(x).square().sum().backward()
        optimizer.step()
        same_models(model, plain)
        assert all(value.grad is None for value in model.parameters())


def check_local_sgd(rank, size):
    model = DistributedDataParallel(mlp())
    mine, _ = dist.new_subgroups(1)
    model.register_comm_hook(PostLocalSGDState(None, mine, start_localSGD_iter=2), post_localSGD_hook)
    optimizer = PostLocalSGDOptimizer(
        torch.optim.SGD(model.parameters(), 0.1), PeriodicModelAverager(3, warmup_steps=2)
    )
    replicas = [mlp() for _ in range(size)]
    optimizers = [torch.optim.SGD(one.parameters(), 0.1) for one in replicas]
    for step in range(7):
        data = torch.randn(size, 4, 6, generator=seeded(step), dtype=torch.float64)
        optimizer.zero_grad()
        model(data[rank]).square().mean().backward()
        optimizer.step()
        for one, batch in zip(replicas, data):
            one.zero_grad()
            one(batch).square().mean().backward()
        if step < 2:
            for grads in zip(*([param.grad for param in one.parameters()] for one in replicas)):
                average = sum(grads) / size
                for grad in grads:
                    grad.copy_(average)
        for one in optimizers:
            one.step()
        if step >= 2 and (step - 2) % 3 == 0:
            with torch.no_grad():
                for params in zip(*(one.parameters() for one in replicas)):
                    average = sum(params) / size
                    for param in params:
                        param.copy_(average)
        same_models(model.module, replicas[rank])
    assert optimizer.state_dict()["step"] == 7


def groups(model):
    params = list(model.parameters())
    return [{"params": params[:2], "lr": 0.02}, {"params": params[2:]}]


def check_zero(rank, size):
    for flat in (False, True):
        model, plain = DistributedDataParallel(mlp()), mlp()
        sharded = ZeroRedundancyOptimizer(
            groups(model.module), torch.optim.Adam, parameters_as_bucket_view=flat, lr=0.01
        )
        whole = torch.optim.Adam(groups(plain), lr=0.01)
        steps = torch.optim.lr_scheduler.StepLR(sharded, 1, 0.5), torch.optim.lr_scheduler.StepLR(whole, 1, 0.5)
        for step in range(4):
            data = torch.randn(size, 4, 6, generator=seeded(step), dtype=torch.float64)
            for optimizer, one, batch in ((sharded, model, data[rank]), (whole, plain, data.reshape(-1, 6))):
                optimizer.zero_grad()
                one(batch).square().mean().backward()
                optimizer.step()
            for one in steps:
                one.step()
            same_models(model.module, plain)
            if step == 1:
                sharded.consolidate_state_dict(to=0)
                saved = [sharded.state_dict() if rank == 0 else None]
                if rank:
                    try:
                        sharded.state_dict()
                    except RuntimeError as error:
                        assert "has not been consolidated" in str(error)
                    else:
                        raise AssertionError("a state that is not here was given")
                else:
                    wanted = whole.state_dict()
                    assert saved[0]["param_groups"] == wanted["param_groups"]
                    for number, entry in wanted["state"].items():
                        same(saved[0]["state"][number]["exp_avg"], entry["exp_avg"])
                dist.broadcast_object_list(saved)
                kept = [param.detach().clone() for param in plain.parameters()]
        held = sum(len(entry) for entry in sharded.optim.state.values())
        assert size == 1 or held < sum(len(entry) for entry in whole.state.values())
        # what was saved goes on as the whole optimizer does
        again = mlp()
        with torch.no_grad():
            for param, value in zip(again.parameters(), kept):
                param.copy_(value)
        restored = ZeroRedundancyOptimizer(groups(again), torch.optim.Adam, lr=0.5)
        restored.load_state_dict(copy.deepcopy(saved[0]))
        other = copy.deepcopy(again)
        reference = torch.optim.Adam(groups(other), lr=0.5)
        reference.load_state_dict(copy.deepcopy(saved[0]))
        data = torch.randn(4, 6, generator=seeded(9), dtype=torch.float64)
        for optimizer, one in ((restored, again), (reference, other)):
            one(data).square().mean().backward()
            optimizer.step()
        same_models(again, other)


def check_join(rank, size):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = mlp()
            self.register_buffer("seen", torch.zeros(1))

        def forward(self, x):
            self.seen += 1
            return self.inner(x)

    for everybody in (True, False):
        model, plain = DistributedDataParallel(Net(), bucket_cap_mb=1e-3), Net()
        optimizers = torch.optim.SGD(model.parameters(), 0.1), torch.optim.SGD(plain.parameters(), 0.1)
        assert isinstance(model, Joinable) and not isinstance(plain, Joinable)
        with Join([model], divide_by_initial_world_size=everybody):
            for step in range(3 + rank):
                optimizers[0].zero_grad()
                batch = torch.randn(4, 6, generator=seeded(100 * step + rank), dtype=torch.float64)
                model(batch).square().mean().backward()
                optimizers[0].step()
        for step in range(3 + size - 1):
            optimizers[1].zero_grad()
            there = [other for other in range(size) if step < 3 + other]
            for other in there:
                batch = torch.randn(4, 6, generator=seeded(100 * step + other), dtype=torch.float64)
                (plain.inner(batch).square().mean() / (size if everybody else len(there))).backward()
            optimizers[1].step()
        same_models(model.module, plain)
        assert model.module.seen.item() == 3 + size - 1
    if size > 1:
        model = DistributedDataParallel(mlp())
        try:
            with Join([model], throw_on_early_termination=True):
                for _ in range(2 + rank):
                    model(torch.ones(1, 6, dtype=torch.float64)).sum().backward()
        except RuntimeError as error:
            said = f"Rank {rank} exhausted all inputs." if rank == 0 else "exhausted inputs. Throwing across all ranks."
            assert said in str(error), error
        else:
            raise AssertionError("unequal inputs were not noticed")


def check_pipeline(rank, size):
    def blocks(count):
        torch.manual_seed(1)
        return [nn.Sequential(nn.Linear(6, 6), nn.Tanh()).double() for _ in range(count)]

    def loss(output, target):
        return (output - target).square().mean()

    data = torch.randn(12, 6, generator=seeded(0), dtype=torch.float64)
    target = torch.randn(12, 6, generator=seeded(1), dtype=torch.float64)
    for kind, each in ((ScheduleGPipe, 1), (Schedule1F1B, 1), (ScheduleInterleaved1F1B, 2), (ScheduleLoopedBFS, 2)):
        whole = blocks(size * each)
        own = blocks(size * each)
        numbers = range(rank, size * each, size)
        stages = [PipelineStage(own[number], number, size * each, "cpu") for number in numbers]
        for parts in (12 // size * size if kind is ScheduleInterleaved1F1B else 5,):
            schedule = kind(stages[0] if each == 1 else stages, parts, loss)
            optimizers = [
                torch.optim.SGD([p for one in model for p in one.parameters()], 0.1) for model in (whole, own)
            ]
            for _ in range(2):
                losses = []
                output = schedule.step(
                    *([data] if rank == 0 else []), target=target if rank == size - 1 else None, losses=losses
                )
                wanted = nn.Sequential(*whole)(data)
                # a mean of means, as the schedule has it
                pairs = zip(wanted.tensor_split(parts), target.tensor_split(parts))
                means = [loss(one, other) for one, other in pairs]
                (sum(means) / parts).backward()
                if rank == size - 1:
                    same(output, wanted)
                    same(torch.stack(losses), torch.stack(means))
                else:
                    assert output is None and not losses
                for number in numbers:
                    for got, one in zip(own[number].parameters(), whole[number].parameters()):
                        same(got.grad, one.grad)
                for optimizer in optimizers:
                    optimizer.step()
                    optimizer.zero_grad()
            output = schedule.eval(*([data] if rank == 0 else []))
            if rank == size - 1:
                same(output, nn.Sequential(*whole)(data))


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    for check in (
        check_batch_norm,
        check_hooks,
        check_recorded,
        check_replicate,
        check_steps_in_backward,
        check_local_sgd,
        check_zero,
        check_join,
        check_pipeline,
    ):
        check(rank, size)
    dist.destroy_process_group()
    print("ok", rank, flush=True)


if __name__ == "__main__":
    main()
