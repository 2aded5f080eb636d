"""Functions of neural networks: what ``torch.nn.functional`` has.

Those that do argument work in Python live in ``_functional/``; the others are operators, taken from the generated
functions when they are asked for.
"""

from __future__ import annotations

from typing import Any

from .._generated import functions as _f
from . import _reduction as _Reduction, grad as grad  # noqa: F401 (PyTorch's name for it)
from ._functional.activation import (
    _get_softmax_dim as _get_softmax_dim,
    celu as celu,
    elu as elu,
    glu as glu,
    gumbel_softmax as gumbel_softmax,
    hardsigmoid as hardsigmoid,
    hardswish as hardswish,
    hardtanh as hardtanh,
    leaky_relu as leaky_relu,
    log_softmax as log_softmax,
    mish as mish,
    relu as relu,
    relu6 as relu6,
    rrelu as rrelu,
    selu as selu,
    sigmoid as sigmoid,
    silu as silu,
    softmax as softmax,
    softmin as softmin,
    softsign as softsign,
    tanh as tanh,
    tanhshrink as tanhshrink,
    threshold as _threshold,  # noqa: F401 (PyTorch has both names)
    threshold as threshold,
)
from ._functional.attention import (
    _canonical_mask as _canonical_mask,
    _in_projection as _in_projection,
    _in_projection_packed as _in_projection_packed,
    _mha_shape_check as _mha_shape_check,
    _none_or_dtype as _none_or_dtype,
    multi_head_attention_forward as multi_head_attention_forward,
)
from ._functional.dropout import (
    alpha_dropout as alpha_dropout,
    dropout as dropout,
    dropout1d as dropout1d,
    dropout2d as dropout2d,
    dropout3d as dropout3d,
    feature_alpha_dropout as feature_alpha_dropout,
)
from ._functional.loss import (
    binary_cross_entropy as binary_cross_entropy,
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
    cosine_embedding_loss as cosine_embedding_loss,
    cross_entropy as cross_entropy,
    ctc_loss as ctc_loss,
    gaussian_nll_loss as gaussian_nll_loss,
    hinge_embedding_loss as hinge_embedding_loss,
    huber_loss as huber_loss,
    kl_div as kl_div,
    l1_loss as l1_loss,
    margin_ranking_loss as margin_ranking_loss,
    mse_loss as mse_loss,
    multi_margin_loss as multi_margin_loss,
    multilabel_margin_loss as multilabel_margin_loss,
    multilabel_soft_margin_loss as multilabel_soft_margin_loss,
    nll_loss as nll_loss,
    poisson_nll_loss as poisson_nll_loss,
    smooth_l1_loss as smooth_l1_loss,
    soft_margin_loss as soft_margin_loss,
    triplet_margin_loss as triplet_margin_loss,
    triplet_margin_with_distance_loss as triplet_margin_with_distance_loss,
)
from ._functional.normalization import (
    _verify_batch_size as _verify_batch_size,
    _verify_spatial_size as _verify_spatial_size,
    batch_norm as batch_norm,
    group_norm as group_norm,
    instance_norm as instance_norm,
    layer_norm as layer_norm,
    local_response_norm as local_response_norm,
    normalize as normalize,
    rms_norm as rms_norm,
)
from ._functional.pooling import (
    _unpool_output_size as _unpool_output_size,
    adaptive_avg_pool1d as adaptive_avg_pool1d,
    adaptive_avg_pool2d as adaptive_avg_pool2d,
    adaptive_avg_pool3d as adaptive_avg_pool3d,
    adaptive_max_pool1d as adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices as adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d as adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices as adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d as adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices as adaptive_max_pool3d_with_indices,
    fractional_max_pool2d as fractional_max_pool2d,
    fractional_max_pool2d_with_indices as fractional_max_pool2d_with_indices,
    fractional_max_pool3d as fractional_max_pool3d,
    fractional_max_pool3d_with_indices as fractional_max_pool3d_with_indices,
    lp_pool1d as lp_pool1d,
    lp_pool2d as lp_pool2d,
    lp_pool3d as lp_pool3d,
    max_pool1d as max_pool1d,
    max_pool1d_with_indices as max_pool1d_with_indices,
    max_pool2d as max_pool2d,
    max_pool2d_with_indices as max_pool2d_with_indices,
    max_pool3d as max_pool3d,
    max_pool3d_with_indices as max_pool3d_with_indices,
    max_unpool1d as max_unpool1d,
    max_unpool2d as max_unpool2d,
    max_unpool3d as max_unpool3d,
)
from ._functional.sparse import (
    embedding as embedding,
    embedding_bag as embedding_bag,
    linear_cross_entropy as linear_cross_entropy,
)
from ._functional.vision import (
    GRID_SAMPLE_INTERPOLATION_MODES as GRID_SAMPLE_INTERPOLATION_MODES,
    GRID_SAMPLE_PADDING_MODES as GRID_SAMPLE_PADDING_MODES,
    affine_grid as affine_grid,
    fold as fold,
    grid_sample as grid_sample,
    interpolate as interpolate,
    pad as pad,
    unfold as unfold,
    upsample as upsample,
    upsample_bilinear as upsample_bilinear,
    upsample_nearest as upsample_nearest,
)

# Functions that are operators themselves, by the operator's name where it is another one.
_OPERATORS = {
    name: name
    for name in (
        "avg_pool1d",
        "avg_pool2d",
        "avg_pool3d",
        "bilinear",
        "celu_",
        "channel_shuffle",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_tbc",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "cosine_similarity",
        "elu_",
        "gelu",
        "hardshrink",
        "hardtanh_",
        "leaky_relu_",
        "linear",
        "native_channel_shuffle",
        "one_hot",
        "pairwise_distance",
        "pdist",
        "pixel_shuffle",
        "pixel_unshuffle",
        "prelu",
        "relu_",
        "rrelu_",
        "scaled_dot_product_attention",
        "selu_",
        "softplus",
        "softshrink",
        "threshold_",
    )
} | {"logsigmoid": "log_sigmoid", "grouped_mm": "_grouped_mm"}


def __getattr__(name: str) -> Any:
    operator = _OPERATORS.get(name)
    if operator is None:
        raise AttributeError(f"module 'torch.nn.functional' has no attribute {name!r}")
    function = getattr(_f, operator)
    # The next look-up finds it without coming here.
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    return sorted({*globals(), *_OPERATORS})


def assert_int_or_pair(arg: Any, arg_name: str, message: str) -> None:
    """Raise AssertionError with ``message`` unless ``arg`` is a number or has two entries."""
    if not (isinstance(arg, int) or len(arg) == 2):
        raise AssertionError(message.format(arg_name))


# Operators are among the names, and found when they are asked for.
__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    name for name in __dir__() if not name.startswith("_") and name not in ("Any", "annotations")
]
