"""What `fully_shard` is told: dtypes and places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """In what dtypes a module computes and exchanges.

    param_dtype: of the gathered parameters, and of the inputs unless `cast_forward_inputs` is False. reduce_dtype: in which gradients are averaged, param_dtype unless said. output_dtype: of
    what the module gives.
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Parts stay on the mesh's devices."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parts, their gradients and the optimizer's state are on the CPU; what is gathered is on the mesh's devices. `pin_memory` is for accelerators."""

    pin_memory: bool = True
