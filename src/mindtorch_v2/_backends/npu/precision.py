"""How products of float32 matrices may be computed: `torch.npu.matmul.allow_hf32`, `torch.npu.conv.allow_hf32`."""

from __future__ import annotations

__all__ = ["ALLOW_HF32"]

ALLOW_HF32 = {"matmul": False, "conv": True}
"""Whether HF32 may stand for float32, by torch_npu's defaults."""
