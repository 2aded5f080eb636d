# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.backends.cuda, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.backends import (
    cudnn_sdp_enabled, enable_cudnn_sdp, enable_flash_sdp, enable_math_sdp, enable_mem_efficient_sdp,
    flash_sdp_enabled, math_sdp_enabled, matmul, mem_efficient_sdp_enabled, sdp_kernel,
)
from mindtorch_v2._torch_proxy.placeholders import ImportOnly, returning

_MODULE = "torch.backends.cuda"
_BECAUSE = "there is no CUDA device"
cufft_plan_cache = None
allow_fp16_bf16_reduction_math_sdp = returning("allow_fp16_bf16_reduction_math_sdp", _MODULE, None)
can_use_cudnn_attention = returning("can_use_cudnn_attention", _MODULE, False)
can_use_efficient_attention = returning("can_use_efficient_attention", _MODULE, False)
can_use_flash_attention = returning("can_use_flash_attention", _MODULE, False)
fp16_bf16_reduction_math_sdp_allowed = returning("fp16_bf16_reduction_math_sdp_allowed", _MODULE, False)
is_built = returning("is_built", _MODULE, False)
is_ck_sdpa_available = returning("is_ck_sdpa_available", _MODULE, False)
is_flash_attention_available = returning("is_flash_attention_available", _MODULE, False)
preferred_blas_library = returning("preferred_blas_library", _MODULE, None)
preferred_linalg_library = returning("preferred_linalg_library", _MODULE, None)


class SDPAParams(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
