"""Kernels on an NPU that take more than one call: results to be filled, then the arguments as tensors."""

from __future__ import annotations

from typing import Any

from mindtorch_v2._backends.npu.aclnn import launch
from mindtorch_v2._generated.npu.functions import aclnnMuls, aclnnTanh


def scaled_tanh(results: Any, self: Any, scale: float) -> Any:
    """tanh into the result, which is multiplied in place."""
    launch(aclnnTanh, self._payload, results[0])
    launch(aclnnMuls, results[0], scale, results[0])
