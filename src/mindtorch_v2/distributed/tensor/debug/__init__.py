"""`torch.distributed.tensor.debug`: which collectives run, and which rank has which part of a tensor."""

from ._comm_mode import CommDebugMode
from ._parts import visualize_sharding

__all__ = ["CommDebugMode", "visualize_sharding"]
