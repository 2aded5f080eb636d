"""`torch.distributed.algorithms`: what goes on around collectives."""

from .join import Join as Join, Joinable as Joinable, JoinHook as JoinHook
