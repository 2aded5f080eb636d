"""What tests of PyTorch look at views, histories and batches by."""

from __future__ import annotations

from mindtorch_v2._generated import functions as F
from mindtorch_v2._tensor import Tensor


def plain_copy(self: Tensor, b: bool) -> Tensor:
    """A copy, with the history of one."""
    return F.clone(self)


def flat_view(self: Tensor) -> Tensor:
    """The elements in one dimension."""
    return self.view(-1)


def flat_copy(self: Tensor) -> Tensor:
    """The elements in one dimension, in memory of their own."""
    return F.clone(self.view(-1))


def checked(self: Tensor) -> Tensor:
    """A copy of a bool tensor. RuntimeError unless every element holds, those of all examples of a batch."""
    if not F._is_all_true(self):
        raise RuntimeError("Test message for TORCH_CHECK_TENSOR_ALL")
    return F.clone(self)
