"""Derivatives that are operators of their own: a gradient and what the forward operator had, whose geometries belong together."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .cases import strategy
from .generic import complete
from .operands import Operand, contiguous, draw_index, draw_operand
from .picking import Picker
from .pointwise import pointwise
from .table import Row
from .view import zeros_of_view


def _dtype(pick: Picker) -> str:
    return "float64" if pick.gradient else pick.choice(("float32", "float64"))


def _ndim(row: Row) -> int:
    return int(re.search(r"([123])d", row.name)[1])


def _pad(pick: Picker, row: Row) -> dict[str, Any]:
    """The gradient of a padding of the last dimensions."""
    ndim, dtype = _ndim(row), _dtype(pick)
    lead = [1, 2] if pick.boolean() else [2]
    large = 0 if pick.gradient else 1  # finite differences look at every element
    sizes = [pick.integer(2 + large, 3 + large) for _ in range(ndim)]
    amounts = [pick.integer(0, 1 + large) for _ in range(2 * ndim)]
    padded = [n + amounts[2 * (ndim - 1 - d)] + amounts[2 * (ndim - 1 - d) + 1] for d, n in enumerate(sizes)]
    if pick.wrong(8):
        padded[-1] += 1
    return {
        "grad_output": draw_operand(pick, (*lead, *padded), dtype),
        "self": draw_operand(pick, (*lead, *sizes), dtype),
        "padding": amounts,
    }


def _pool(pick: Picker, row: Row) -> dict[str, Any]:
    """The gradient of pooling by windows of 2 that do not overlap."""
    ndim, dtype = _ndim(row), _dtype(pick)
    lead = [1, 2] if pick.boolean() else [2]
    pooled = [pick.integer(1, 2) for _ in range(ndim)]
    arguments: dict[str, Any] = {
        "grad_output": draw_operand(pick, (*lead, *pooled), dtype),
        "self": draw_operand(pick, (*lead, *(2 * n for n in pooled)), dtype),
    }
    options: dict[str, Any] = {
        "kernel_size": [2] * ndim,
        "stride": [2] * ndim,
        "padding": [0] * ndim,
        "dilation": [1] * ndim,
        "ceil_mode": False,
        "count_include_pad": True,
        "divisor_override": None,
    }
    arguments |= {name: value for name, value in options.items() if row.parameter(name) is not None}
    if row.parameter("indices") is not None:
        arguments["indices"] = draw_index(pick, (*lead, *pooled), 2**ndim)
    return arguments


def _upsample(pick: Picker, row: Row) -> dict[str, Any]:
    """The gradient of resampling to another size."""
    ndim, dtype = _ndim(row), _dtype(pick)
    inside = [pick.integer(1, 2), pick.integer(1, 2), *(pick.integer(2, 3) for _ in range(ndim))]
    outside = [pick.integer(1, 4) for _ in range(ndim)]
    made = draw_operand(pick, (*inside[:2], *outside), dtype)
    arguments: dict[str, Any] = {"grad_output": made, "output_size": outside, "input_size": inside}
    if row.parameter("align_corners") is not None:
        arguments["align_corners"] = pick.boolean()
    return arguments


def _nll(pick: Picker, row: Row) -> dict[str, Any]:
    """The gradient of the loss of the right classes."""
    n, c, dtype = pick.integer(1, 3), 3, _dtype(pick)
    rest = (2, 2) if "2d" in row.name else ()
    reduction = pick.choice((1, 0, 2))
    return {
        "grad_output": draw_operand(pick, () if reduction else (n, *rest), dtype),
        "self": draw_operand(pick, (n, c, *rest), dtype),
        "target": draw_index(pick, (n, *rest), c),
        "weight": draw_operand(pick, (c,), dtype, "positive") if pick.boolean() else None,
        "reduction": reduction,
        "ignore_index": -100,
        "total_weight": draw_operand(pick, (), dtype, "positive"),
    }


def _ctc(pick: Picker, row: Row) -> dict[str, Any]:
    """The gradient of connectionist temporal classification, for targets of two labels."""
    n, dtype = pick.integer(1, 2), _dtype(pick)
    return {
        "grad": draw_operand(pick, (n,), dtype),
        "log_probs": draw_operand(pick, (5, n, 3), dtype, "negative"),
        "targets": draw_index(pick, (n, 2), 1),
        "input_lengths": [5] * n,
        "target_lengths": [2] * n,
        "neg_log_likelihood": draw_operand(pick, (n,), dtype, "positive"),
        "log_alpha": draw_operand(pick, (n, 5, 5), dtype, "negative"),
        "blank": 2,
    }


def _cdist(pick: Picker, row: Row) -> dict[str, Any]:
    """The gradient of distances."""
    n, m, k, dtype = pick.integer(1, 3), pick.integer(1, 3), pick.integer(1, 3), _dtype(pick)
    return {
        "grad": draw_operand(pick, (n, m), dtype),
        "x1": draw_operand(pick, (n, k), dtype),
        "x2": draw_operand(pick, (m, k), dtype),
        "p": pick.choice((2.0, 1.0, 3.0)),
        "cdist": draw_operand(pick, (n, m), dtype, "positive"),
    }


def _glu(pick: Picker, row: Row) -> dict[str, Any]:
    """The gradient of a gate."""
    n, m, dtype = pick.integer(1, 3), pick.integer(1, 3), _dtype(pick)
    return {
        "grad_output": draw_operand(pick, (n, m), dtype),
        "self": draw_operand(pick, (n, 2 * m), dtype),
        "dim": pick.choice((1, -1)),
    }


def _renorm(pick: Picker, row: Row) -> dict[str, Any]:
    """A table whose rows are shortened in place."""
    return {
        "self": draw_operand(pick, (4, pick.integer(1, 3)), _dtype(pick)),
        "indices": draw_index(pick, (pick.integer(1, 3),), 4),
        "max_norm": 1.0,
        "norm_type": 2.0,
    }


SAME: dict[str, Callable[[Picker, Row], dict[str, Any]]] = {
    r"(reflection|replication)_pad\dd_backward": _pad,
    r"_?(adaptive_)?(max|avg)_pool\dd.*_backward": _pool,
    r"nll_loss.*_backward": _nll,
    r"_ctc_loss_backward": _ctc,
    r"_cdist_backward": _cdist,
    r"glu_backward": _glu,
    r"embedding_renorm_": _renorm,
}
"""Gradients that look like `self`, by operator name."""


@strategy(
    "same",
    "pad_nd_backward",
    "pool_backward",
    "nll_loss_backward",
    "embedding_renorm",
    "ctc_loss_backward",
    "cdist_backward",
    "glu_backward",
)
def same(pick: Picker, row: Row) -> dict[str, Any]:
    """Whatever results in a tensor like self."""
    for pattern, draw in SAME.items():
        if re.fullmatch(pattern, row.base_name):
            return draw(pick, row)
    return pointwise(pick, row)


@strategy("view_backward", "masked_scatter_backward", "upsample_backward")
def zeros_of(pick: Picker, row: Row) -> dict[str, Any]:
    """Gradients of parts and of resampled images."""
    return _upsample(pick, row) if "upsample" in row.name else zeros_of_view(pick, row)


@strategy("norm_backward")
def norm_backward(pick: Picker, row: Row) -> dict[str, Any]:
    """Gradients of layer, group and batch normalisation."""
    dtype = _dtype(pick)
    n, c, s = pick.integer(1, 2), 4, 3
    shape = (n, c, s)

    def tensor(*own: int) -> Any:
        return draw_operand(pick, own, dtype, "positive")

    def statistics(groups: list[list[float]], *own: int) -> tuple[Any, Any]:
        """Means and reciprocal deviations of groups of elements."""
        means = [sum(group) / len(group) for group in groups]
        spread = [(sum((v - m) ** 2 for v in group) / len(group) + 1e-5) ** -0.5 for m, group in zip(means, groups)]
        return Operand(tuple(means), dtype, own, contiguous(own)), Operand(tuple(spread), dtype, own, contiguous(own))

    made = draw_operand(pick, shape, dtype, "distinct")  # contiguous: the operators are internal
    values = made.values
    arguments: dict[str, Any] = {
        "grad_out": tensor(*shape),
        "input": made,
        "output_mask": [True, True, pick.boolean()],
    }
    if row.base_name == "native_layer_norm_backward":
        mean, rstd = statistics([values[i : i + s] for i in range(0, len(values), s)], n, c, 1)
        arguments |= {"normalized_shape": [s], "mean": mean, "rstd": rstd, "weight": tensor(s), "bias": tensor(s)}
    elif row.base_name == "native_group_norm_backward":
        half = c * s // 2
        mean, rstd = statistics([values[i : i + half] for i in range(0, len(values), half)], n, 2)
        arguments |= {"mean": mean, "rstd": rstd, "weight": tensor(c), "N": n, "C": c, "HxW": s, "group": 2}
    elif row.base_name == "native_batch_norm_backward":
        channels = [[values[(i * c + k) * s + j] for i in range(n) for j in range(s)] for k in range(c)]
        mean, rstd = statistics(channels, c)
        arguments |= {"weight": tensor(c), "running_mean": tensor(c), "running_var": tensor(c)}
        arguments |= {"save_mean": mean, "save_invstd": rstd, "train": pick.boolean(), "eps": 1e-5}
    else:
        return complete(pick, row)
    return arguments
