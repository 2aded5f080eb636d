"""`torch.utils.tensorboard`: writes what TensorBoard shows. It needs the package tensorboard; without it the import fails, as PyTorch's does."""

from __future__ import annotations

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
