"""Numbers, arrays and tensors as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._tensor import Tensor

__all__ = ["make_np"]


def make_np(x: Any) -> np.ndarray:
    """An array of a tensor (half types in float32), an array or a number. NotImplementedError for anything else."""
    if isinstance(x, np.ndarray):
        return x
    if np.isscalar(x):
        return np.array([x])
    if isinstance(x, Tensor):
        x = x.detach().cpu()
        return (x.float() if x.dtype.itemsize < 4 and x.is_floating_point() else x).numpy()
    raise NotImplementedError(f"Got {type(x)}, but numpy array or torch tensor are expected.")
