"""Programs written for torch_npu, on the CPU and on an NPU: a Trainer run, and a loop of accelerate. Prints the numbers that it ends with as JSON.

Run under the proxy: `python -m mindtorch_v2 tests/npu/torch_npu_programs.py by_hand npu`.
"""

import json
import sys
import tempfile

import torch
import torch_npu
from torch_npu.npu.amp import autocast

torch.npu.set_compile_mode(jit_compile=False)
torch_npu.npu.config.allow_internal_format = False


def data() -> torch.utils.data.TensorDataset:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(48, 6, generator=generator)
    return torch.utils.data.TensorDataset(x, (x[:, 0] * 2 - x[:, 1:3].sum(1) > 0).long())


def network() -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.LayerNorm(16), torch.nn.GELU(), torch.nn.Linear(16, 2))


def by_hand(cpu: bool) -> list:
    """A loop as users of torch_npu write it."""
    device = torch.device("cpu" if cpu else "npu:0")
    model = network().to(device)
    optimizer = torch_npu.optim.NpuFusedAdamW(model.parameters(), lr=0.01)
    stream, done = (None, None) if cpu else (torch.npu.Stream(), torch.npu.Event())
    for _ in range(3):
        for x, y in torch.utils.data.DataLoader(data(), 16, pin_memory=not cpu):
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.clip_grad_norm_fused_(1.0)
            optimizer.step()
    if stream is not None:
        done.record()
        with torch.npu.stream(stream):
            stream.wait_event(done)
            assert torch.isfinite(loss).item()
        torch.npu.synchronize()
        assert torch.npu.max_memory_allocated() >= torch.npu.memory_allocated() > 0
        with autocast(dtype=torch.bfloat16):
            assert model(x).dtype is torch.bfloat16
    return [loss.item(), *(p.detach().cpu().tolist() for p in model.parameters())]


def accelerated(cpu: bool) -> list:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=cpu)
    assert accelerator.device.type == ("cpu" if cpu else "npu"), accelerator.device
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    loader = torch.utils.data.DataLoader(data(), 16)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for x, y in loader:
        with accelerator.accumulate(model):
            loss = torch.nn.functional.cross_entropy(model(x), y)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    with tempfile.TemporaryDirectory() as folder:
        accelerator.save_state(folder)
        accelerator.load_state(folder)
    accelerator.free_memory()
    return [loss.item(), *(p.detach().cpu().tolist() for p in model.parameters())]


def trainer(cpu: bool) -> list:
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed
    from transformers.utils import is_torch_npu_available

    assert is_torch_npu_available() and is_torch_npu_available(check_device=True)
    set_seed(5)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = BertConfig(**sizes, vocab_size=50, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = BertForSequenceClassification(config)
    generator = torch.Generator().manual_seed(2)
    rows = [
        {"input_ids": torch.randint(5, 50, (9,), generator=generator), "labels": torch.tensor(i % 2)} for i in range(24)
    ]
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, max_steps=5, per_device_train_batch_size=8, learning_rate=1e-3, logging_steps=1, save_steps=3, report_to=[], use_cpu=cpu, disable_tqdm=True,
            optim="adamw_torch" if cpu else "adamw_torch_npu_fused", seed=5,
        )  # fmt: skip
        assert arguments.device.type == ("cpu" if cpu else "npu"), arguments.device
        run = Trainer(model, arguments, train_dataset=rows, eval_dataset=rows[:8])
        run.train()
        losses = [entry["loss"] for entry in run.state.log_history if "loss" in entry]
        evaluated = run.evaluate()["eval_loss"]
    return [*losses, evaluated, *(p.detach().cpu().tolist() for p in model.parameters())]


PROGRAMS = {"by_hand": by_hand, "accelerated": accelerated, "trainer": trainer}


def flat(value: object) -> list:
    return [number for item in value for number in flat(item)] if isinstance(value, list) else [value]


def main(program: str, device: str) -> None:
    print("NUMBERS", json.dumps(flat(PROGRAMS[program](device == "cpu"))))


if __name__ == "__main__":
    main(*sys.argv[1:])
