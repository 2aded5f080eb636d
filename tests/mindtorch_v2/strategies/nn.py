"""Layers: convolution, pooling, resampling, normalisation, losses, attention."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from .cases import strategy
from .generic import complete
from .operands import broadcast, draw_dtype, draw_index, draw_operand, draw_shape
from .picking import Picker
from .table import Row


def spatial_ndim(row: Row) -> int:
    """The number of spatial dimensions, from the operator's name or from the sizes of its lists."""
    found = re.search(r"([123])d", row.name)
    if found:
        return int(found[1])
    sizes = [
        int(p.type.split("[")[1][0])
        for p in row.parameters
        if re.search(r"int\[[123]\]", p.type.replace("SymInt", "int"))
    ]
    return sizes[0] if sizes else 2


def _image(pick: Picker, ndim: int, low: int = 3, batch: bool | None = None) -> tuple[int, ...]:
    sizes = [pick.integer(low, low + 1) for _ in range(ndim)]
    lead = (
        [pick.integer(1, 2), pick.integer(1, 2)]
        if batch or batch is None and not pick.chance(4)
        else [pick.integer(1, 2)]
    )
    return (*lead, *sizes)


def _floats(pick: Picker) -> str:
    if pick.wrong(8):
        return draw_dtype(pick)
    return "float64" if pick.gradient else pick.choice(("float32", "float64", "float32", "bfloat16"))


@strategy("conv", "conv.conv1d_padding", "conv.conv2d_padding", "conv.conv3d_padding", "conv.convolution_flags")
def conv(pick: Picker, row: Row) -> dict[str, Any]:
    """Images, a weight, perhaps a bias; strides, paddings, dilations and groups."""
    ndim = spatial_ndim(row)
    transposed = "transpose" in row.name
    groups = pick.integer(1, 2)
    inside, outside = groups * pick.integer(1, 2), groups
    dtype = _floats(pick)
    kernel = [pick.integer(1, 2) for _ in range(ndim)]
    shape = (pick.integer(1, 2), inside, *(pick.integer(3, 4) for _ in range(ndim)))
    if pick.chance(5) and not (pick.valid and row.parameter("transposed")):  # which takes batches only
        shape = shape[1:]
    if pick.wrong(8):
        shape = (*shape[:-1], 0)
    weight = (inside, outside // groups, *kernel) if transposed else (outside, inside // groups, *kernel)
    if pick.wrong(8):
        weight = (weight[0], weight[1] + 1, *kernel)
    arguments: dict[str, Any] = {
        "input": draw_operand(pick, shape, dtype),
        "weight": draw_operand(pick, weight, draw_dtype(pick) if pick.wrong() else dtype),
        "bias": draw_operand(pick, (outside,), dtype) if pick.boolean() else None,
    }
    options: dict[str, Any] = {
        "stride": [pick.integer(1, 2)] * ndim,
        "padding": [pick.integer(0, 1)] * ndim,
        "dilation": [1] * ndim,
        "output_padding": [0] * ndim,
        "groups": groups,
        "transposed": False,
        "benchmark": False,
        "deterministic": False,
        "cudnn_enabled": False,
        "allow_tf32": False,
    }
    if row.parameter("padding") is not None and row.parameter("padding").base == "str":
        options["padding"] = pick.choice(("valid", "same"))
        options["stride"] = [1] * ndim
    for name, value in options.items():
        if row.parameter(name) is not None:
            arguments[name] = value
    return {name: value for name, value in arguments.items() if row.parameter(name) is not None}


@strategy("conv_backward")
def conv_backward(pick: Picker, row: Row) -> dict[str, Any]:
    """The gradient of a convolution of two dimensions with one stride."""
    dtype = "float64" if pick.gradient else pick.choice(("float32", "float64"))
    n, c, o, k = 1, pick.integer(1, 2), pick.integer(1, 2), pick.integer(1, 2)
    return complete(
        pick,
        row,
        {
            row.parameters[0].name: draw_operand(pick, (n, o, 4 - k, 4 - k), dtype),
            "input": draw_operand(pick, (n, c, 3, 3), dtype),
            "weight": draw_operand(pick, (o, c, k, k), dtype),
            "bias_sizes": [o],
            "stride": [1, 1],
            "padding": [0, 0],
            "dilation": [1, 1],
            "transposed": False,
            "output_padding": [0, 0],
            "groups": 1,
            "output_mask": [True, True, True],
        },
    )


@strategy("pool", "max_pool", "conv.max_pool1d", "conv.max_pool2d", "conv.max_pool3d", "conv.avg_pool1d")
def pool(pick: Picker, row: Row) -> dict[str, Any]:
    """Images, and windows that fit them."""
    ndim = spatial_ndim(row)
    made = draw_operand(pick, _image(pick, ndim), _floats(pick), "distinct")
    if pick.wrong(8):
        made = draw_operand(pick, made.shape[-ndim:], made.dtype)
    kernel = [pick.integer(1, 2) for _ in range(ndim)]
    options: dict[str, Any] = {
        "kernel_size": [9] * ndim if pick.wrong() else kernel,
        "stride": [pick.integer(1, 2)] * ndim if pick.boolean() else [],
        "padding": [2] * ndim if pick.wrong() else [0] * ndim,
        "dilation": [1] * ndim,
        "ceil_mode": pick.boolean(),
        "count_include_pad": pick.boolean(),
        "divisor_override": None,
        "norm_type": 2,
    }
    return {row.parameters[0].name: made, **{n: v for n, v in options.items() if row.parameter(n) is not None}}


@strategy(
    "adaptive_pool",
    "conv.adaptive_max_pool1d",
    "conv.adaptive_avg_pool1d",
    "conv.adaptive_avg_pool2d",
    "conv.adaptive_avg_pool3d",
)
def adaptive_pool(pick: Picker, row: Row) -> dict[str, Any]:
    """Images and the size that comes out."""
    ndim = spatial_ndim(row)
    made = draw_operand(pick, _image(pick, ndim), _floats(pick), "distinct")
    return {"self": made, "output_size": [pick.integer(1, 3) for _ in range(ndim)]}


@strategy(
    "upsample",
    "conv.upsample_nearest1d_vec",
    "conv.upsample_nearest2d_vec",
    "conv.upsample_nearest3d_vec",
    "conv.upsample_nearest_exact1d_vec",
    "conv.upsample_nearest_exact2d_vec",
    "conv.upsample_nearest_exact3d_vec",
    "conv.upsample_linear1d_vec",
    "conv.upsample_bilinear2d_vec",
    "conv.upsample_bicubic2d_vec",
    "conv.upsample_trilinear3d_vec",
    "conv.upsample_bilinear2d_aa_vec",
    "conv.upsample_bicubic2d_aa_vec",
    "conv.upsample_lanczos2d_aa_vec",
)
def upsample(pick: Picker, row: Row) -> dict[str, Any]:
    """Images and the size that comes out, or factors."""
    ndim = spatial_ndim(row)
    made = draw_operand(pick, _image(pick, ndim, 2, batch=True), _floats(pick))
    arguments: dict[str, Any] = {row.parameters[0].name: made}
    if row.parameter("output_size") is not None:
        # Where the result is one column wide, PyTorch's windows that grow repeat its first row.
        lengths = [pick.integer(1, 4) for _ in range(ndim)]
        arguments["output_size"] = [lengths[0], max(2, lengths[1])] if "_aa" in row.name else lengths
    if row.parameter("scale_factors") is not None:
        if pick.boolean() and row.parameter("output_size").optional:
            arguments["output_size"] = None
            arguments["scale_factors"] = [pick.choice((2.0, 1.5))] * ndim
        else:
            arguments["scale_factors"] = None
    if row.parameter("align_corners") is not None:
        arguments["align_corners"] = pick.boolean()
    return arguments


@strategy("im2col")
def im2col(pick: Picker, row: Row) -> dict[str, Any]:
    """Images and windows."""
    made = draw_operand(pick, _image(pick, 2, 3), _floats(pick))
    return {
        "self": made,
        "kernel_size": [pick.integer(1, 2), 2],
        "dilation": [1, 1],
        "padding": [pick.integer(0, 1)] * 2,
        "stride": [1, pick.integer(1, 2)],
    }


@strategy("col2im")
def col2im(pick: Picker, row: Row) -> dict[str, Any]:
    """Columns of windows of 2 x 2, and the image that they come from."""
    n, c = pick.integer(1, 2), pick.integer(1, 2)
    made = draw_operand(pick, (n, 4 * c + (1 if pick.wrong(8) else 0), 6), _floats(pick))
    return {
        "self": made,
        "output_size": [3, 4],
        "kernel_size": [2, 2],
        "dilation": [1, 1],
        "padding": [0, 0],
        "stride": [1, 1],
    }


@strategy("layer_norm", "native_layer_norm", "rms_norm")
def layer_norm(pick: Picker, row: Row) -> dict[str, Any]:
    """A tensor, its last dimensions, and perhaps a weight and a bias of these."""
    shape = draw_shape(pick, 1, 3)
    count = pick.integer(1, len(shape))
    inner = list(shape[len(shape) - count :])
    dtype = _floats(pick)
    arguments: dict[str, Any] = {row.parameters[0].name: draw_operand(pick, shape, dtype), "normalized_shape": inner}
    if pick.wrong(8):
        arguments["normalized_shape"] = [*inner, 2]
    for name in ("weight", "bias"):
        if row.parameter(name) is not None:
            arguments[name] = draw_operand(pick, inner, dtype) if pick.boolean() else None
    if row.parameter("eps") is not None and not row.parameter("eps").has_default:
        arguments["eps"] = 1e-5
    return arguments


@strategy("nn.group_norm")
def group_norm(pick: Picker, row: Row) -> dict[str, Any]:
    """Images, and groups that divide the channels."""
    groups = pick.integer(1, 2)
    channels = 2 * groups + (1 if pick.wrong(8) else 0)
    dtype = _floats(pick)
    made = draw_operand(pick, (pick.integer(1, 2), channels, 3), dtype)
    arguments: dict[str, Any] = {row.parameters[0].name: made, "num_groups": groups}
    for name in ("weight", "bias"):
        arguments[name] = draw_operand(pick, (channels,), dtype) if pick.boolean() else None
    return arguments


@strategy("native_group_norm")
def native_group_norm(pick: Picker, row: Row) -> dict[str, Any]:
    """As group_norm, with the sizes spelled out."""
    dtype = "float64" if pick.gradient else "float32"
    n, c, s = pick.integer(1, 2), 4, 3
    return {
        "input": draw_operand(pick, (n, c, s), dtype),
        "weight": draw_operand(pick, (c,), dtype) if pick.boolean() else None,
        "bias": None,
        "N": n,
        "C": c,
        "HxW": s,
        "group": 2,
        "eps": 1e-5,
    }


@strategy(
    "native_batch_norm",
    "nn.batch_norm",
    "nn.instance_norm",
    "nn.native_batch_norm_legit",
    "nn.native_batch_norm_no_stats",
    "nn.native_batch_norm_no_training",
    "nn.native_batch_norm_functional",
    "nn.batch_norm_with_update",
    "nn.batch_norm_with_update_functional",
    "nn.batch_norm_no_update",
)
def batch_norm(pick: Picker, row: Row) -> dict[str, Any]:
    """Images, statistics and parameters per channel."""
    c = pick.integer(1, 3)
    dtype = "float64" if pick.gradient else pick.choice(("float32", "float64"))
    # Without statistics PyTorch normalises by none where it is not in training.
    training = row.parameter("running_mean") is None or pick.boolean()
    kept = not training or row.parameter("running_mean") is not None and pick.boolean()
    kept = kept or row.parameter("running_mean") is not None and not row.parameter("running_mean").optional
    kept = kept or row.base_name.endswith("no_update")
    parameters = pick.boolean()
    # PyTorch's internal names of the operator read past the end of weights that are too short.
    wrong = not row.base_name.startswith("_") and pick.wrong(8)
    arguments: dict[str, Any] = {
        "input": draw_operand(
            pick, (2, c, *((3,) if "instance" in row.name else draw_shape(pick, 0, 1))), dtype, "distinct"
        ),
        "weight": draw_operand(pick, (c + wrong,), dtype) if parameters else None,
        "bias": draw_operand(pick, (c,), dtype) if parameters else None,
        "running_mean": draw_operand(pick, (c,), dtype) if kept else None,
        "running_var": draw_operand(pick, (c,), dtype, "positive") if kept else None,
        "training": training,
        "use_input_stats": training,
        "momentum": 0.1,
        "eps": 1e-5,
        "cudnn_enabled": False,
    }
    return {name: value for name, value in arguments.items() if row.parameter(name) is not None}


@strategy(
    "pointwise_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_backward",
    "bce_with_logits",
    "loss.l1_loss",
    "loss.kl_div",
    "loss.margin_ranking_loss",
    "loss.hinge_embedding_loss",
    "loss.triplet_margin_loss",
    "loss.poisson_nll_loss",
)
def pointwise_loss(pick: Picker, row: Row) -> dict[str, Any]:
    """A prediction, a target of its shape, and a reduction."""
    shape = draw_shape(pick)
    dtype = _floats(pick)
    kind = "probability" if row.rule.startswith("binary_cross_entropy") else "any"
    arguments: dict[str, Any] = {}
    for parameter in row.tensors:
        if parameter.optional and pick.boolean():
            continue
        own = broadcast(pick, shape) if parameter.optional else (*shape, 2) if arguments and pick.wrong(8) else shape
        arguments[parameter.name] = draw_operand(pick, own, dtype, "positive" if parameter.optional else kind)
    if row.parameter("reduction") is not None:
        arguments["reduction"] = pick.choice((1, 0, 2))
    for parameter in row.parameters:
        if parameter.base == "bool" and not parameter.has_default:
            arguments[parameter.name] = pick.boolean()
        elif parameter.base == "float" and not parameter.has_default:
            arguments[parameter.name] = 1e-8 if parameter.name == "eps" else pick.choice((1.0, 0.5))
    return arguments


@strategy("loss.cosine_embedding_loss")
def cosine_embedding(pick: Picker, row: Row) -> dict[str, Any]:
    """Two batches of vectors, and whether they belong together."""
    shape = draw_shape(pick, 2, 2)
    dtype = _floats(pick)
    target = draw_operand(pick, shape[:1], "float64" if pick.gradient else pick.choice(("float32", "int64")))
    return {
        "input1": draw_operand(pick, shape, dtype),
        "input2": draw_operand(pick, shape, dtype),
        "target": replace(target, values=tuple(1 if i % 2 else -1 for i, _ in enumerate(target.values))),
        "margin": pick.choice((0.0, 0.5)),
        "reduction": pick.choice((1, 0, 2)),
    }


@strategy("loss.multilabel_margin_loss")
def labels(pick: Picker, row: Row) -> dict[str, Any]:
    """Scores of classes, and the right ones up to the first -1, for one sample or several."""
    shape = draw_shape(pick, 0, 2)
    classes = shape[-1] if shape else 1
    target = draw_index(pick, (*shape, 2) if pick.wrong(8) else shape, classes)
    values = tuple(-1 if i % 4 == 2 else value for i, value in enumerate(target.values))
    return {
        "self": draw_operand(pick, shape, _floats(pick)),
        "target": replace(target, values=values),
        "reduction": pick.choice((1, 0, 2)),
    }


@strategy("loss.multi_margin_loss", "loss.cross_entropy_loss")
def classes(pick: Picker, row: Row) -> dict[str, Any]:
    """Scores of classes, and the right ones."""
    n, c = pick.integer(1, 3), pick.integer(2, 3)
    dtype = _floats(pick)
    arguments: dict[str, Any] = {
        "self": draw_operand(pick, (n, c), dtype),
        "target": draw_index(pick, (n + (1 if pick.wrong(8) else 0),), c),
        "weight": draw_operand(pick, (c,), dtype, "positive") if pick.boolean() else None,
        "reduction": pick.choice((1, 0, 2)),
    }
    if row.rule == "loss.cross_entropy_loss":
        if pick.chance(3):
            arguments["target"] = draw_operand(pick, (n, c), dtype, "probability")
        arguments["label_smoothing"] = pick.choice((0.0, 0.25))
    return arguments


@strategy("nll_loss_forward", "nll_loss2d_forward", "loss.nll_loss", "loss.nll_loss_nd", "loss.nll_loss2d")
def nll_loss(pick: Picker, row: Row) -> dict[str, Any]:
    """Log-probabilities, classes, and perhaps weights of the classes."""
    n, c = pick.integer(1, 3), pick.integer(2, 3)
    rest = (2, 2) if "2d" in row.name or "2d" in row.rule else ()
    dtype = _floats(pick)
    return {
        "self": draw_operand(pick, (n, c, *rest), dtype),
        "target": draw_index(pick, (n + (1 if pick.wrong(8) else 0), *rest), c),
        "weight": draw_operand(pick, (c,), dtype, "positive") if pick.boolean() else None,
        "reduction": pick.choice((1, 0, 2)),
        "ignore_index": pick.choice((-100, 0)),
    }


@strategy("ctc_loss", "loss.ctc_loss", "loss.ctc_loss_tensor")
def ctc_loss(pick: Picker, row: Row) -> dict[str, Any]:
    """Log-probabilities over time, targets without blanks, and lengths."""
    dtype = "float64" if pick.gradient else pick.choice(("float32", "float64"))
    n = pick.integer(1, 2)
    targets = draw_operand(pick, (n, 2), "int64", "positive")
    targets = replace(targets, values=tuple(1 + v % 2 for v in targets.values))
    given: dict[str, Any] = {
        "blank": 0,
        "log_probs": draw_operand(pick, (5, n, 3), dtype, "negative"),
        "targets": targets,
    }
    for name, value in (("input_lengths", 5), ("target_lengths", 2)):
        parameter = row.parameter(name)
        given[name] = draw_operand(pick, (n,), "int64") if parameter.is_tensor else [value] * n
        if parameter.is_tensor:
            given[name] = replace(given[name], values=(value,) * len(given[name].values))
    if row.parameter("reduction") is not None:
        given["reduction"] = pick.choice((1, 0, 2))
    return given


@strategy("attention.scaled_dot_product_attention", "attention.attention_math", "flash_attention")
def attention(pick: Picker, row: Row) -> dict[str, Any]:
    """Queries, keys and values, perhaps a mask."""
    batch = (pick.integer(1, 2), pick.integer(1, 2)) if row.rule == "flash_attention" else draw_shape(pick, 0, 2)
    length, source, width = pick.integer(1, 3), pick.integer(1, 3), pick.integer(1, 3)
    dtype = _floats(pick)
    arguments: dict[str, Any] = {
        "query": draw_operand(pick, (*batch, length, width), dtype),
        "key": draw_operand(pick, (*batch, source, width + (1 if pick.wrong(8) else 0)), dtype),
        "value": draw_operand(pick, (*batch, source, width), dtype),
    }
    how = pick.choice(("plain", "causal", "mask"))
    masks = (dtype,) if row.rule == "attention.attention_math" else (dtype, "bool")  # which has been told apart before
    if how == "causal":
        arguments["is_causal"] = True
    elif how == "mask":
        arguments["attn_mask"] = draw_operand(pick, (length, source), pick.choice(masks))
    return arguments


@strategy("flash_attention_backward")
def flash_attention_backward(pick: Picker, row: Row) -> dict[str, Any]:
    """The gradient of attention for one batch."""
    dtype = "float64" if pick.gradient else "float32"
    shape = (1, pick.integer(1, 2), pick.integer(1, 3), 2)
    names = ("grad_out", "query", "key", "value", "out")
    return {
        **{name: draw_operand(pick, shape, dtype) for name in names},
        "logsumexp": draw_operand(pick, shape[:3], "float64" if pick.gradient else "float32"),
        "dropout_p": 0.0,
        "is_causal": pick.boolean(),
    }


@strategy("lstm_layer", "lstm_layer_backward")
def lstm_layer(pick: Picker, row: Row) -> dict[str, Any]:
    """A layer of an LSTM over a few steps, and for its derivative what it gave."""
    dtype = _floats(pick)
    steps, batch, features, width = pick.integer(1, 3), pick.integer(1, 2), pick.integer(1, 3), pick.integer(1, 2)
    state, output = (batch, width), (steps, batch, width)
    weights = [(4 * width, features), (4 * width, width), (4 * width,), (4 * width,)]
    forward = row.rule == "lstm_layer"
    names = [f"weight{i}" for i in (range(4) if forward else range(1, 5))]
    shapes = {"input": (steps, batch, features), **dict(zip(names, weights, strict=True)), "hx_": state}
    if forward:
        shapes["cx_"] = (batch, width + (1 if pick.wrong(8) else 0))
    else:
        shapes |= {"cx_tmp": state, "output": output, "hy_": state, "cy_": state, "grad_output": output}
        shapes["workspace"] = (steps * batch * width * 5,)
        shapes |= {"grad_hy": state, "grad_cy": state}
    return {
        **{name: draw_operand(pick, shape, dtype) for name, shape in shapes.items()},
        **{"reverse": pick.boolean(), "batch_sizes": [], "mode": 2, "hidden_size": width, "num_layers": 1},
        **{"has_biases": True, "bidirectional": False, "batch_first": False, "train": True},
    }


@strategy("assertions.assert_async")
def assertion(pick: Picker, row: Row) -> dict[str, Any]:
    """One element that is not zero: what the values say, the meta device does not know."""
    given: dict[str, Any] = {"self": draw_operand(pick, (), "float32", "positive")}
    return given if row.parameter("assert_msg") is None else {**given, "assert_msg": "it must hold"}


@strategy("weight_norm", "nn.weight_norm")
def weight_norm(pick: Picker, row: Row) -> dict[str, Any]:
    """A weight, and its lengths along one dimension."""
    dtype = "float64" if pick.gradient else pick.choice(("float32", "float64"))
    return {"v": draw_operand(pick, (3, 2), dtype), "g": draw_operand(pick, (3, 1), dtype, "positive"), "dim": 0}


@strategy("fractional_max_pool")
def fractional_max_pool(pick: Picker, row: Row) -> dict[str, Any]:
    """Images, windows of 2, and samples that place them."""
    ndim = 2 if "2d" in row.base_name else 3
    channels = 1 if pick.gradient else 2  # finite differences look at every element
    lead = [1 if pick.gradient else pick.integer(1, 2), channels] if pick.boolean() else [channels]
    dtype = _floats(pick)
    sizes = [5 if pick.gradient else pick.integer(5, 6) for _ in range(ndim)]
    counts = [9 if pick.wrong(10) else pick.integer(1, 3) for _ in range(ndim)]
    return {
        "self": draw_operand(pick, (*lead, *sizes), dtype, "distinct"),
        "kernel_size": [2] * ndim,
        "output_size": counts,
        "random_samples": draw_operand(pick, (lead[0] if len(lead) == 2 else 1, channels, ndim), dtype, "probability"),
    }
