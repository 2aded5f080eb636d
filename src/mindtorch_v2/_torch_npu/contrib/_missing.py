"""Names of `torch_npu.contrib` whose operators are not here: they can be imported, and say so when they are called."""

from __future__ import annotations

from typing import Any, NoReturn

_BOXES = "its operators of boxes have no documented functions in aclnn"
_QUANT = "its layers of quantised weights have formats that are private to the chip; torch_npu.npu_quant_matmul multiplies int8"
_OTHER = "its operator has no documented function in aclnn"
_WHY = {
    **dict.fromkeys(
        "npu_iou npu_ptiou npu_giou npu_diou npu_ciou npu_multiclass_nms npu_batched_multiclass_nms npu_single_level_responsible_flags npu_bbox_coder_encode_yolo "
        "npu_bbox_coder_encode_xyxy2xywh npu_bbox_coder_decode_xywh2xyxy ROIAlign PSROIPool".split(),
        _BOXES,
    ),
    **dict.fromkeys(
        "npu_fast_condition_index_put npu_fused_attention npu_fused_attention_with_layernorm DCNv2 ModulatedDeformConv NpuFairseqDropout NpuCachedDropout MultiheadAttention FusedColorJitter "
        "FastBatchNorm1d FastBatchNorm2d FastBatchNorm3d FastSyncBatchNorm".split(),
        _OTHER,
    ),
    **dict.fromkeys(("LinearA8W8Quant", "LinearQuant", "LinearWeightQuant"), _QUANT),
}


def _refusing(name: str, why: str) -> Any:
    text = f"torch_npu.contrib.{name} can be imported but not called: {why}"

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(text)

    if name[0].isupper():
        return type(
            name, (), {"__init__": refuse, "__module__": "torch_npu.contrib", "__doc__": text, "import_only": why}
        )
    refuse.__name__ = refuse.__qualname__ = name
    refuse.__dict__["import_only"] = why
    return refuse


NAMES: dict[str, Any] = {name: _refusing(name, why) for name, why in _WHY.items()}
"""What stands for each name."""
