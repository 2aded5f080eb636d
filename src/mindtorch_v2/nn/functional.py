"""Functions of neural networks: what ``torch.nn.functional`` has.

Those that do argument work in Python live in ``_functional/``; the others are operators, taken from the generated
functions when they are asked for.
"""

from __future__ import annotations

from typing import Any

from .._generated import functions as _f

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


__all__ = [name for name in __dir__() if not name.startswith("_") and name not in ("Any", "annotations")]
