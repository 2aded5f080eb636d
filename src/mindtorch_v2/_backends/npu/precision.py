"""How products of float32 are computed: `torch.npu.matmul.allow_hf32`, `torch.npu.conv.allow_hf32`, and the `cubeMathType` of aclnn's functions by them and the chip."""

from __future__ import annotations

import re

from .chips import soc_name

__all__ = ["ALLOW_HF32", "mode"]

ALLOW_HF32 = {"matmul": False, "conv": True}
"""Whether HF32 may stand for float32, by torch_npu's defaults."""

KEEP, LOWER = 0, 1  # as the operands' dtype has it; float32 as HF32 on Atlas A2, as float16 on older chips


def mode(which: str) -> int:
    """The cubeMathType of `matmul` or `conv`. Chips that multiply float16 alone lower float32 always."""
    return LOWER if ALLOW_HF32[which] or re.match(r"Ascend(910A|910Pro|910$|310)", soc_name()) else KEEP
