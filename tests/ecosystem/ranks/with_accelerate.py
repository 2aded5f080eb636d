"""A loop as accelerate's documentation writes it: prepared objects, accumulated gradients, clipping, gathered losses."""

import json

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    accelerator = Accelerator(gradient_accumulation_steps=2)
    set_seed(1)
    x = torch.randn(64, 8)
    y = (x.sum(1, keepdim=True) > 0).float()
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    loader = DataLoader(TensorDataset(x, y), batch_size=8 // accelerator.num_processes)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    losses = []
    for _ in range(2):
        for inputs, labels in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.binary_cross_entropy_with_logits(model(inputs), labels)
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            losses.append(accelerator.gather_for_metrics(loss.detach().reshape(1)).mean().item())
    accelerator.wait_for_everyone()
    weights = sum(param.double().abs().sum().item() for param in accelerator.unwrap_model(model).parameters())
    accelerator.print("RESULT", json.dumps([accelerator.num_processes, *losses, weights]))


if __name__ == "__main__":
    main()
