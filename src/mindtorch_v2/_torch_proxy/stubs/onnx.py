"""The operators of `torch.onnx.operators`, which are plain operators outside of an export."""

from __future__ import annotations

from typing import Any

import mindtorch_v2


def shape_as_tensor(x: Any) -> Any:
    """The shape of a tensor as an int64 tensor."""
    return mindtorch_v2._shape_as_tensor(x)


def reshape_from_tensor_shape(x: Any, shape: Any) -> Any:
    """`x` in the shape that an int64 tensor says."""
    return mindtorch_v2.reshape(x, shape.tolist())
