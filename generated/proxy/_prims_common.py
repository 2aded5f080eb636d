# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._prims_common, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.prims import (
    alert_not_deterministic, canonicalize_dim, canonicalize_dims, check, is_boolean_dtype, is_complex_dtype,
    is_contiguous, is_contiguous_or_false, is_float_dtype, is_integer_dtype, make_contiguous_strides_for,
)

_MODULE = "torch._prims_common"
