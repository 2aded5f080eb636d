"""Modules of `torch_npu.contrib`, by operators that are there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import mindtorch_v2 as torch

from ... import nn

__all__ = [
    "BiLSTM",
    "ChannelShuffle",
    "Focus",
    "LabelSmoothingCrossEntropy",
    "Mish",
    "NpuDropPath",
    "Prefetcher",
    "SiLU",
    "Swish",
]


class Mish(nn.Mish):
    """`torch.nn.Mish`."""

    def __init__(self) -> None:
        super().__init__()


class SiLU(nn.SiLU):
    """`torch.nn.SiLU`."""

    def __init__(self) -> None:
        super().__init__()


Swish = SiLU


class ChannelShuffle(nn.Module):
    """Joins two tensors along their channels and takes these of both by turns; in two halves with `split_shuffle`.

    RuntimeError for other numbers of groups than 2.
    """

    def __init__(self, in_channels: int, groups: int = 2, split_shuffle: bool = True) -> None:
        super().__init__()
        if groups != 2:
            raise RuntimeError(f"ChannelShuffle: two tensors are shuffled, in 2 groups, not {groups}")
        self.split_shuffle, self.group_len = split_shuffle, in_channels // groups

    def forward(self, x1: torch.Tensor, x2: torch.Tensor) -> Any:
        """The channels of both by turns."""
        turns = torch.stack((x1, x2), 2).flatten(1, 2)
        return (turns[:, : self.group_len], turns[:, self.group_len :]) if self.split_shuffle else turns


class Focus(nn.Module):
    """Every second pixel of both directions as channels of their own (a quarter of the pixels, four times the channels), a convolution, a normalisation and SiLU.

    k, s, p, g: kernel, stride, padding (`k // 2` unless it is given) and groups of the convolution. act: True for SiLU, or a module.
    """

    def __init__(
        self, c1: int, c2: int, k: int = 1, s: int = 1, p: int | None = None, g: int = 1, act: Any = True
    ) -> None:
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(c1 * 4, c2, k, s, k // 2 if p is None else p, groups=g, bias=False),
            nn.BatchNorm2d(c2),
            nn.SiLU() if act is True else act if isinstance(act, nn.Module) else nn.Identity(),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of shape [N, c1, H, W]: [N, c2, H / 2, W / 2] with a stride of 1."""
        return self.conv(torch.cat([x[..., i::2, j::2] for j in (0, 1) for i in (0, 1)], 1))


class LabelSmoothingCrossEntropy(nn.Module):
    """The mean cross entropy with `1 - smooth_factor` for the label and `smooth_factor` shared by the other classes."""

    def __init__(self, num_classes: int = 1000, smooth_factor: float = 0.0) -> None:
        super().__init__()
        self.on_value = 1.0 - smooth_factor
        self.off_value = smooth_factor / (num_classes - 1)

    def forward(self, pred: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """The loss of scores [N, num_classes] and labels [N]."""
        logs = torch.log_softmax(pred, 1)
        picked = logs.gather(1, target.long().unsqueeze(1)).squeeze(1)
        losses = -((self.on_value - self.off_value) * picked + self.off_value * logs.sum(1))
        return losses.mean(dtype=torch.float32)


class NpuDropPath(nn.Module):
    """Leaves out whole examples while it trains, and scales the others by `1 / (1 - drop_prob)`."""

    def __init__(self, drop_prob: float) -> None:
        super().__init__()
        self.drop_prob, self.keep_prob = drop_prob, 1 - drop_prob

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The examples that are kept, and zeros."""
        if self.drop_prob == 0.0 or not self.training:
            return x
        kept = torch.rand((x.shape[0],) + (1,) * (x.ndim - 1), dtype=x.dtype, device=x.device) + self.keep_prob
        return x.div(self.keep_prob) * kept.floor_()

    @classmethod
    def enable_droppath_ensemble(cls, model: nn.Module) -> None:
        """Nothing: the numbers are drawn where they are needed, by the device."""


class BiLSTM(nn.Module):
    """A layer of `torch.nn.LSTM` in both directions: [T, N, input_size] to [T, N, 2 * hidden_size]."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.rnn = nn.LSTM(input_size, hidden_size, bidirectional=True)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """What both directions gave at each step."""
        return self.rnn(inputs)[0]


class Prefetcher:
    """Copies the next batch (two tensors) of a loader to the NPU on a stream of its own, while the current one is computed with. `next()` gives (None, None) after the last."""

    def __init__(self, loader: Iterable[Any], stream: Any = None) -> None:
        self.loader = iter(loader)
        self.stream = torch.npu.Stream() if stream is None else stream
        self.preload()

    def preload(self) -> None:
        """Begin to copy the next batch."""
        self.next_input, self.next_target = next(self.loader, (None, None))
        if self.next_input is None or self.next_target is None:
            return
        with torch.npu.stream(self.stream):
            self.next_input = self.next_input.npu(non_blocking=True)
            self.next_target = self.next_target.npu(non_blocking=True)

    def next(self) -> tuple[Any, Any]:
        """The batch that was copied; the copies of the one after it begin."""
        current = torch.npu.current_stream()
        current.wait_stream(self.stream)
        found = self.next_input, self.next_target
        for tensor in found:
            if tensor is not None:
                tensor.record_stream(current)
        if found[1] is not None:
            self.preload()
        return found
