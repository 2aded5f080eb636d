"""What bindings to aclnn functions are written with (`npu:` of the schema): arguments of operators as C parameters want them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import precision

_SCATTER_MODES = {"add": 1, "multiply": 2}


def product_mode() -> int:
    """The cubeMathType of products of matrices."""
    return precision.mode("matmul")


def convolution_mode() -> int:
    """The cubeMathType of convolutions."""
    return precision.mode("conv")


def dims(tensor: Any, dim: Any) -> list[int]:
    """The dimensions of a reduction: all of them where none is given."""
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return list(range(tensor.ndim))
    return [dim] if isinstance(dim, int) else list(dim)


def spread(value: Any, count: int) -> list[int]:
    """One number per dimension."""
    given: Sequence[int] = [value] if isinstance(value, int) else list(value)
    return list(given) * count if len(given) == 1 else list(given)


def rounding(mode: str | None) -> int:
    """The mode of DivMod: 0 true division, 1 towards zero, 2 towards minus infinity."""
    return {None: 0, "trunc": 1, "floor": 2}[mode]


def approximation(name: str) -> int:
    """The mode of GeluV2: 0 exact, 1 by tanh."""
    return {"none": 0, "tanh": 1}[name]


def held(tensor: Any, value: Any) -> Any:
    """A number as the tensor's dtype holds it: any but zero is True."""
    return bool(value) if str(tensor.dtype).endswith("bool") else value


def scatter_mode(reduce: str) -> int:
    """The mode of Scatter: 0 sets, 1 adds, 2 multiplies."""
    return _SCATTER_MODES[reduce]


def largest(tensor: Any, given: float | None, sign: int = 1) -> float:
    """What infinities become: the number that is given (times `sign`), or the largest of the dtype."""
    if given is not None:
        return sign * given
    name = str(tensor.dtype).rpartition(".")[2]
    if name == "bfloat16":
        return 3.3895313892515355e38
    if not tensor.dtype.is_floating_point:
        return 0.0  # there are no infinities to replace
    return float(np.finfo(tensor.dtype.np).max)


def rotary_mode_of(name: str) -> int:
    """The mode of RotaryPositionEmbedding: 0 halves, 1 pairs."""
    return {"half": 0, "interleave": 1}[name]


def experts_of(indices: Any) -> int:
    """How many experts each token goes to."""
    return indices.shape[1] if len(indices.shape) == 2 else 1


def given(mask: Sequence[bool], out: Any) -> list[bool]:
    """Which results are asked for, of those that there are."""
    return [bool(asked) and spec is not None for asked, spec in zip(mask, out.specs, strict=True)]
