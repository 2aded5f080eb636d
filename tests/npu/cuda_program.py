"""A training program as it is written for CUDA: nothing in it knows of NPUs. Prints the numbers that it ends with as JSON."""

import json
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.cuda.amp import GradScaler, autocast
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
on_cuda = device.type == "cuda"
torch.backends.cudnn.benchmark = True
torch.manual_seed(0)
torch.cuda.manual_seed_all(0)
if on_cuda:
    torch.cuda.set_device(device)
os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "0")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4 * 16, 3)

    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x)))
        x = nn.functional.max_pool2d(x, 2)
        return self.head(x.flatten(1))


def reduced(value):
    if dist.is_initialized():
        dist.all_reduce(value)
        value /= dist.get_world_size()
    return value


dist.init_process_group("nccl" if on_cuda else "gloo", init_method="file://" + tempfile.mktemp(), rank=0, world_size=1)
generator = torch.Generator().manual_seed(5)
images, labels = torch.randn(32, 1, 8, 8, generator=generator), torch.randint(0, 3, (32,), generator=generator)
dataset = TensorDataset(images, labels)
loader = DataLoader(
    dataset,
    8,
    sampler=DistributedSampler(dataset, seed=1),
    pin_memory=True,
    pin_memory_device="cuda" if on_cuda else "",
)
model = Net()
model = model.cuda() if on_cuda else model
if on_cuda:
    assert next(model.parameters()).is_cuda and next(model.parameters()).device.index == 0
model = DistributedDataParallel(model, device_ids=[0] if on_cuda else None)
criterion = nn.CrossEntropyLoss().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)
scaler = GradScaler(init_scale=4.0, enabled=on_cuda)
copies = torch.cuda.Stream() if on_cuda else None
begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2)) if on_cuda else (None, None)
losses = []
if on_cuda:
    begun.record()
for epoch in range(2):
    loader.sampler.set_epoch(epoch)
    for x, y in loader:
        if on_cuda:
            with torch.cuda.stream(copies):
                x, y = x.cuda(non_blocking=True), y.cuda(device, non_blocking=True)
            torch.cuda.current_stream().wait_stream(copies)
            x.record_stream(torch.cuda.current_stream())
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device_type=device.type, dtype=torch.float16 if on_cuda else torch.bfloat16, enabled=False):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
        losses.append(reduced(loss.detach()).item())
if on_cuda:
    ended.record()
    torch.cuda.synchronize()
    model.eval()
    assert begun.elapsed_time(ended) > 0
    with autocast():
        assert model(images[:2].to("cuda")).dtype is torch.float16 and torch.is_autocast_enabled()
    with torch.cuda.amp.autocast(dtype=torch.bfloat16):
        assert model(images[:2].to("cuda:0")).dtype is torch.bfloat16
    made = [
        torch.zeros(2, device="cuda"),
        torch.ones(2, device=device),
        torch.tensor([1.0, 2.0], device="cuda:0"),
        torch.rand(2, generator=torch.Generator(device="cuda").manual_seed(1), device="cuda"),
        torch.empty(2).to(device="cuda", non_blocking=True),
        torch.arange(3, device=torch.cuda.current_device()),
        torch.cuda.FloatTensor([1, 2]),
        torch.ones(2).type("torch.cuda.FloatTensor"),
        torch.ones(1).new_zeros(3, device="cuda"),
    ]
    with torch.device("cuda"):
        made.append(torch.ones(2))
    torch.set_default_device("cuda")
    made.append(torch.randn(2))
    torch.set_default_device(None)
    assert all(tensor.is_cuda for tensor in made), [tensor.device for tensor in made]
    assert torch.cuda.memory_allocated() > 0 and torch.cuda.get_device_properties(0).total_memory > 0
    assert torch.cuda.get_device_name() and torch.cuda.device_count() >= 1 and dist.is_nccl_available()
    torch.cuda.empty_cache()
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model.pt")
    torch.save(model.module.state_dict(), path)
    model.module.load_state_dict(torch.load(path, map_location=device))
    state = torch.load(path, map_location={"cuda:0": "cpu", "npu:0": "cpu"}, weights_only=True)
dist.barrier()
dist.destroy_process_group()
print("NUMBERS", json.dumps(losses + [v for p in state.values() for v in p.float().flatten().tolist()]))
