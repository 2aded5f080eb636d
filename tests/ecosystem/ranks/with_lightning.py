"""lightning's Trainer, with its strategy for several processes."""

import json
import os

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
        self.losses = []

    def training_step(self, batch, index):
        inputs, wanted = batch
        loss = (self.net(inputs) - wanted).square().mean()
        self.log("loss", loss, sync_dist=True)
        self.losses.append(self.all_gather(loss.detach()).mean().item())
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def main():
    torch.manual_seed(0)
    x = torch.randn(64, 8)
    data = TensorDataset(x, x.sum(1, keepdim=True))
    world = int(os.environ.get("WORLD_SIZE", "1"))
    sampler = DistributedSampler(data, world, int(os.environ.get("RANK", "0")), shuffle=False)
    model = Model()
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=world,
        strategy="ddp",
        max_epochs=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        use_distributed_sampler=False,
    )
    trainer.fit(model, DataLoader(data, batch_size=8 // world, sampler=sampler))
    if trainer.is_global_zero:
        weights = sum(param.double().abs().sum().item() for param in model.parameters())
        print("RESULT", json.dumps([world, *model.losses, weights]))


if __name__ == "__main__":
    main()
