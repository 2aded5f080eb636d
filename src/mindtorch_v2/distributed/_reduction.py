"""How the elements of several ranks become one."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np


class RedOpType(enum.Enum):
    """The kinds of reductions."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __int__(self) -> int:
        return self.value


RedOpType.__qualname__ = "ReduceOp.RedOpType"


class ReduceOp:
    """A reduction; `ReduceOp.SUM` and its like are members of `ReduceOp.RedOpType`. `factor` is that of PREMUL_SUM."""

    RedOpType = RedOpType
    SUM = RedOpType.SUM
    AVG = RedOpType.AVG
    PRODUCT = RedOpType.PRODUCT
    MIN = RedOpType.MIN
    MAX = RedOpType.MAX
    BAND = RedOpType.BAND
    BOR = RedOpType.BOR
    BXOR = RedOpType.BXOR
    PREMUL_SUM = RedOpType.PREMUL_SUM

    def __init__(self, op: Any, factor: Any = None) -> None:
        if isinstance(op, ReduceOp):
            op, factor = op.op, op.factor
        if not isinstance(op, RedOpType):
            raise TypeError(
                "__init__(): incompatible constructor arguments. The following argument types are supported:\n"
                "    1. torch._C._distributed_c10d.ReduceOp(arg0: torch._C._distributed_c10d.ReduceOp.RedOpType)\n\n"
                f"Invoked with: {op!r}"
            )
        self.op = op
        self.factor = factor

    def __eq__(self, other: Any) -> bool:
        return other is self.op if isinstance(other, RedOpType) else isinstance(other, ReduceOp) and other.op is self.op

    def __hash__(self) -> int:
        return self.op.value

    def __repr__(self) -> str:
        return f"<torch.distributed.distributed_c10d.ReduceOp {self.op.name}>"


def premul_sum(factor: Any) -> ReduceOp:
    """A sum of what each rank has times its factor, a number or a tensor of one element."""
    return ReduceOp(RedOpType.PREMUL_SUM, factor)


def kind_of(op: Any, options: str = "AllreduceOptions") -> RedOpType:
    """The kind of reduction. TypeError for what is none, and for PREMUL_SUM without its factor."""
    if op.__class__ is RedOpType and op is not RedOpType.PREMUL_SUM:
        return op
    if isinstance(op, ReduceOp):
        return op.op
    raise TypeError(
        "(): incompatible function arguments. The following argument types are supported:\n"
        f"    1. (self: torch._C._distributed_c10d.{options}, arg0: torch._C._distributed_c10d.ReduceOp) -> None\n\n"
        f"Invoked with: <torch.distributed.distributed_c10d.{options} object>, {op!r}"
    )


FUNCTIONS: dict[RedOpType, Callable[..., Any]] = {
    RedOpType.SUM: np.add,
    RedOpType.PRODUCT: np.multiply,
    RedOpType.MIN: np.minimum,
    RedOpType.MAX: np.maximum,
    RedOpType.BAND: np.bitwise_and,
    RedOpType.BOR: np.bitwise_or,
    RedOpType.BXOR: np.bitwise_xor,
}
"""What reduces two arrays. AVG and PREMUL_SUM are sums by the time that elements of several ranks meet."""

OF_BOOL = {
    RedOpType.SUM: RedOpType.BOR,
    RedOpType.MAX: RedOpType.BOR,
    RedOpType.PRODUCT: RedOpType.BAND,
    RedOpType.MIN: RedOpType.BAND,
}
"""The reductions of truth values that have no bit operation's name."""
