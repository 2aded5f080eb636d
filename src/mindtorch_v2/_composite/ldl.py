"""Factors of symmetric and Hermitian matrices, refused where they are not there."""

from __future__ import annotations

from mindtorch_v2._generated import functions as F
from mindtorch_v2._tensor import Tensor, alias_as


def linalg_ldl_factor(self: Tensor, hermitian: bool = False) -> tuple[Tensor, Tensor]:
    """(L and D in one matrix, pivots). RuntimeError where a block of D is zero."""
    factors, pivots, info = F.linalg_ldl_factor_ex(self, hermitian=hermitian)
    if info.device.type != "meta":
        info = alias_as(Tensor, info)  # of all examples of a batch
        for place, code in enumerate(F.flatten(info).tolist()):
            if code:
                which = f"(Batch element {place}): " if info.dim() else ""
                raise RuntimeError(f"torch.linalg.ldl_factor: {which}Unknown error code: {code}.")
    return factors, pivots
