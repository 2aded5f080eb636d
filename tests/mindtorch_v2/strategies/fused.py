"""torch_npu's fused operators."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .cases import strategy
from .operands import Operand, draw_dtype, draw_index, draw_operand, draw_shape, plain
from .picking import Picker
from .table import Row


def _floats(pick: Picker) -> str:
    if pick.wrong(8):
        return draw_dtype(pick)
    return "float64" if pick.gradient else pick.choice(("float32", "float16", "float64", "bfloat16"))


def _wide(dtype: str) -> str:
    return "float64" if dtype == "float64" else "float32"


@strategy("npu_rms_norm", "npu_rms_norm_backward", "npu_add_rms_norm")
def norm(pick: Picker, row: Row) -> dict[str, Any]:
    """A tensor and weights of its last dimensions; for the derivative the gradient and the roots, for the sum a second tensor."""
    shape = draw_shape(pick, 1, 3)
    count = pick.integer(1, len(shape))
    dtype = _floats(pick)
    inner = shape[len(shape) - count :]
    names = [p.name for p in row.parameters if p.is_tensor and p.name not in ("gamma", "rstd")]
    arguments: dict[str, Any] = {name: draw_operand(pick, shape, dtype) for name in names}
    arguments["gamma"] = draw_operand(pick, (*inner, 2) if pick.wrong(8) else inner, dtype)
    if row.parameter("rstd") is not None:
        lines = (*shape[: len(shape) - count], *(1,) * count)
        arguments["rstd"] = draw_operand(pick, lines, _wide(dtype), "positive")
    return arguments


@strategy("npu_rotary_mul", "npu_rotary_mul_backward")
def rotary(pick: Picker, row: Row) -> dict[str, Any]:
    """A tensor [.., .., .., even] and two that broadcast to it."""
    shape = (
        pick.integer(1, 2),
        pick.integer(1, 3),
        pick.integer(1, 2),
        2 * pick.integer(1, 2) + (1 if pick.wrong(8) else 0),
    )
    narrow = tuple(1 if d < 3 and pick.boolean() else n for d, n in enumerate(shape))
    dtype = _floats(pick)
    names = ["self", "grad"] if row.parameter("grad") is not None else ["self"]
    arguments: dict[str, Any] = {name: draw_operand(pick, shape, dtype) for name in names}
    arguments |= {name: draw_operand(pick, narrow, dtype) for name in ("r1", "r2")}
    arguments["rotary_mode"] = "quarter" if pick.wrong(8) else pick.choice(("half", "interleave"))
    return arguments


@strategy("npu_swiglu", "npu_swiglu_backward")
def swiglu(pick: Picker, row: Row) -> dict[str, Any]:
    """A tensor with an even dimension."""
    shape = list(draw_shape(pick, 1, 3))
    dim = pick.integer(0, len(shape) - 1)
    shape[dim] = 2 * pick.integer(1, 2) + (1 if pick.wrong(8) else 0)
    dtype = _floats(pick)
    arguments: dict[str, Any] = {
        "self": draw_operand(pick, shape, dtype),
        "dim": dim - len(shape) if pick.boolean() else dim,
    }
    if row.parameter("grad_output") is not None:
        arguments["grad_output"] = draw_operand(pick, [*shape[:dim], shape[dim] // 2, *shape[dim + 1 :]], dtype)
    return arguments


# Attention


def _laid_out(layout: str, batch: int, heads: int, length: int, width: int) -> tuple[int, ...]:
    return {
        "BSH": (batch, length, heads * width),
        "SBH": (length, batch, heads * width),
        "BSND": (batch, length, heads, width),
        "BNSD": (batch, heads, length, width),
    }[layout]


def _visible(pick: Picker, shape: tuple[int, ...], dtype: str) -> Operand:
    """A mask of 0 and 1 that lets every row see its first key."""
    mask = plain(draw_operand(pick, shape, dtype, "boolean" if dtype == "bool" else "nonnegative"))
    values = tuple(0 if i % shape[-1] == 0 else int(bool(v)) for i, v in enumerate(mask.values))
    return replace(mask, values=tuple(bool(v) for v in values) if dtype == "bool" else values)


@strategy(
    "npu_attention",
    "npu_attention_backward",
    "fused.fusion_attention",
    "npu_infer_attention",
    "fused.fused_infer_attention_score",
)
def attention(pick: Picker, row: Row) -> dict[str, Any]:
    """Query, key and value in a layout, with a shift, a mask and dropped scores perhaps."""
    inference = "infer" in row.rule
    layout = pick.choice(("BSH", "BNSD", "BSND") if inference else ("BSH", "BNSD", "BSND", "SBH"))
    batch, groups, heads = pick.integer(1, 2), pick.integer(1, 2), pick.integer(1, 2)
    length, source, width = pick.integer(1, 3), pick.integer(1, 3), pick.integer(1, 2)
    dtype = _floats(pick)
    query = _laid_out(layout, batch, heads * groups, length, width)
    of_key = _laid_out(layout, batch, heads, source, width + (1 if pick.wrong(8) else 0))
    arguments: dict[str, Any] = {
        "query": draw_operand(pick, query, dtype),
        "key": draw_operand(pick, of_key, dtype),
        "value": draw_operand(pick, _laid_out(layout, batch, heads, source, width), dtype),
        "input_layout": layout,
        ("num_heads" if inference else "head_num"): heads * groups,
    }
    shift, mask = ("pse_shift" if inference else "pse"), "atten_mask"
    if pick.chance(3):
        arguments[shift] = draw_operand(pick, (batch, heads * groups, length, source), dtype)
    if pick.boolean():
        arguments[mask] = _visible(pick, (length, source), pick.choice(("bool", "uint8")))
    modes = [2147483647, 2147483647, pick.choice((0, 2)), pick.choice((0, 1)), pick.choice((0, 1))]
    if row.rule.startswith("npu_attention"):
        arguments |= {"scale": 0.5, "keep_prob": 1.0, "modes": modes}
        if pick.chance(3):
            bits = batch * heads * groups * length * source
            arguments |= {"keep_prob": 0.5, "drop_mask": draw_operand(pick, ((bits + 7) // 8,), "uint8")}
    elif inference:
        arguments |= {"num_key_value_heads": heads, "softmax_lse_flag": pick.boolean(), "scale": 0.5}
        if pick.boolean():
            arguments["actual_seq_lengths_kv"] = [source] * batch
    else:
        arguments |= {"scale": 0.5, "sparse_mode": modes[3]}
    if row.rule == "npu_attention_backward":
        sums = (batch, heads * groups, length, 8)
        arguments |= {"grad": draw_operand(pick, query, dtype), "attention": draw_operand(pick, query, dtype)}
        arguments["softmax_max"] = draw_operand(pick, sums, _wide(dtype))
        arguments["softmax_sum"] = draw_operand(pick, sums, _wide(dtype), "above_one")
        arguments |= {name: None for name in (shift, "drop_mask", mask, "prefix") if name not in arguments}
    return arguments


@strategy("npu_attention_varlen", "npu_attention_varlen_backward")
def attention_of_sequences(pick: Picker, row: Row) -> dict[str, Any]:
    """Sequences of several lengths behind each other, with a mask and dropped scores perhaps."""
    groups, heads, width = pick.integer(1, 2), pick.integer(1, 2), pick.integer(1, 2)
    lengths = [(pick.integer(0, 3), pick.integer(1, 3)) for _ in range(pick.integer(1, 3))]
    lengths[0] = (max(lengths[0][0], 1), lengths[0][1])
    dtype, count = _floats(pick), heads * groups
    q_ends = [sum(q for q, _ in lengths[: i + 1]) for i in range(len(lengths))]
    k_ends = [sum(k for _, k in lengths[: i + 1]) for i in range(len(lengths))]
    query, keys = (q_ends[-1], count, width), (k_ends[-1], heads, width)
    if pick.wrong(8):
        q_ends[-1] += 1
    arguments: dict[str, Any] = {
        "query": draw_operand(pick, query, dtype),
        "key": draw_operand(pick, keys, dtype),
        "value": draw_operand(pick, keys, dtype),
        "head_num": count,
        "q_ends": q_ends,
        "k_ends": k_ends,
        "scale": 0.5,
        "keep_prob": 1.0,
        "modes": [2147483647, 2147483647, pick.choice((0, 2)), pick.choice((0, 1)), 1],
    }
    if pick.boolean():
        longest = (max(q for q, _ in lengths), max(k for _, k in lengths))
        arguments["atten_mask"] = _visible(pick, longest, pick.choice(("bool", "uint8")))
    if pick.chance(3):
        bits = count * sum(q * k for q, k in lengths)
        arguments |= {"keep_prob": 0.5, "drop_mask": draw_operand(pick, ((bits + 7) // 8,), "uint8")}
    if row.rule == "npu_attention_varlen_backward":
        sums = (*query[:2], 8)
        arguments |= {"grad": draw_operand(pick, query, dtype), "attention": draw_operand(pick, query, dtype)}
        arguments["softmax_max"] = draw_operand(pick, sums, _wide(dtype))
        arguments["softmax_sum"] = draw_operand(pick, sums, _wide(dtype), "above_one")
        arguments |= {name: None for name in ("drop_mask", "atten_mask", "prefix") if name not in arguments}
    return arguments


# Quantisation


@strategy("npu_dynamic_quant")
def dynamic_quant(pick: Picker, row: Row) -> dict[str, Any]:
    """A tensor, perhaps scales of its channels or of groups of rows."""
    shape = draw_shape(pick, 1 if pick.wrong(8) else 2, 3)
    dtype = _floats(pick)
    arguments: dict[str, Any] = {"input": draw_operand(pick, shape, dtype)}
    how = pick.choice(("plain", "smooth", "groups", "pertensor", "perchannel"))
    if how in ("pertensor", "perchannel"):
        arguments["quant_mode"] = how
    elif how != "plain":
        lead = (2,) if how == "groups" else ()
        arguments["smooth_scales"] = draw_operand(pick, (*lead, shape[-1]), dtype, "positive")
    if how == "groups":
        rows = 1
        for n in shape[:-1]:
            rows *= n
        ends = plain(draw_operand(pick, (2,), "int32"))
        arguments["group_index"] = replace(ends, values=(rows // 2, rows))
    return arguments


@strategy("npu_quant_matmul")
def quant_matmul(pick: Picker, row: Row) -> dict[str, Any]:
    """int8 matrices, scales of columns, a bias and scales of rows perhaps."""
    rows, inner, columns = pick.integer(1, 3), pick.integer(1, 3), pick.integer(1, 3)
    lead = (2,) if pick.boolean() else ()
    kind = pick.choice(("bfloat16", "float16", "int32"))
    arguments: dict[str, Any] = {
        "x1": draw_operand(pick, (*lead, rows, inner), "uint8" if pick.wrong(8) else "int8"),
        "x2": draw_operand(pick, (inner + (1 if pick.wrong(8) else 0), columns), "int8"),
        "scale": draw_operand(pick, (pick.choice((1, columns)),), "float32", "positive"),
        "output_dtype": _dtype(kind),
    }
    if kind == "float16" or (kind == "bfloat16" and pick.boolean()):
        arguments["pertoken_scale"] = draw_operand(pick, (rows,), "float32", "positive")
    if pick.boolean():
        arguments["bias"] = draw_operand(pick, (columns,), "int32")
    return arguments


def _dtype(name: str) -> Any:
    from .operands import Symbol

    return Symbol(name)


# Mixtures of experts


@strategy("npu_grouped_matmul", "fused.grouped_matmul", "fused.grouped_matmul_of_lengths")
def grouped_matmul(pick: Picker, row: Row) -> dict[str, Any]:
    """Pairs of matrices, or groups of rows or of columns of one."""
    kind = pick.choice((-1, 0, 2))
    dtype = "float64" if pick.gradient else pick.choice(("float32", "float16", "bfloat16", "float64"))
    inner, columns, groups = pick.integer(1, 3), pick.integer(1, 3), pick.integer(1, 2)
    lengths = [pick.integer(0, 2) for _ in range(groups)]
    wrong = 1 if pick.wrong(8) else 0
    if kind == -1:
        x = [draw_operand(pick, (1 + n, inner + wrong), dtype) for n in lengths]
        weight = [draw_operand(pick, (inner, columns), dtype) for _ in lengths]
    elif kind == 0:
        x = [draw_operand(pick, (sum(lengths), inner + wrong), dtype)]
        if pick.boolean():
            weight = [draw_operand(pick, (groups, inner, columns), dtype)]
        else:
            weight = [draw_operand(pick, (inner, columns), dtype) for _ in lengths]
    else:
        x = [draw_operand(pick, (inner, sum(lengths) + wrong), dtype)]
        weight = [draw_operand(pick, (sum(lengths), columns), dtype)]
    arguments: dict[str, Any] = {"x": x, "weight": weight, "group_type": kind}
    counts = pick.boolean()
    numbers = lengths if counts else [sum(lengths[: i + 1]) for i in range(groups)]
    arguments["group_list_type"] = int(counts)
    if row.parameter("split_item") is not None:
        arguments["split_item"] = 0 if kind == -1 else 3
    if row.rule == "npu_grouped_matmul":
        arguments["bias"] = []
    listed = row.rule == "fused.grouped_matmul_of_lengths"
    if kind != -1:
        groups_of = plain(draw_operand(pick, (groups,), "int64"))
        arguments["group_list"] = numbers if listed else replace(groups_of, values=tuple(numbers))
    elif not listed:
        arguments["group_list"] = None
    if kind != 2 and pick.boolean():
        shape = (groups, columns) if kind == 0 and len(weight) == 1 and len(weight[0].shape) == 3 else (columns,)
        arguments["bias"] = [draw_operand(pick, shape, "float32" if dtype == "bfloat16" else dtype) for _ in weight]
    return arguments


@strategy("npu_moe_init_routing")
def init_routing(pick: Picker, row: Row) -> dict[str, Any]:
    """Rows, the experts of each, and the numbers of pairs, column after column."""
    rows, count = pick.integer(1, 4), pick.integer(1, 2)
    dtype = _floats(pick)
    numbers = plain(draw_operand(pick, (rows, count), "int32"))
    return {
        "x": draw_operand(pick, (rows, 2), dtype),
        "row_idx": replace(numbers, values=tuple(k % count * rows + k // count for k in range(rows * count))),
        "expert_idx": draw_index(pick, (rows, count), 3, "int64" if pick.wrong(8) else "int32"),
        "active_num": pick.integer(0, rows),
    }


@strategy("npu_moe_token_permute", "npu_moe_token_permute_grad")
def token_permute(pick: Picker, row: Row) -> dict[str, Any]:
    """Tokens and the experts of each; for the derivative what went where."""
    rows, count = pick.integer(1, 4), pick.integer(1, 2)
    shape = (rows, count) if count > 1 or pick.boolean() else (rows,)
    dtype = _floats(pick)
    kept = pick.integer(1, rows * count)
    arguments: dict[str, Any] = {
        "tokens": draw_operand(pick, (rows + (1 if pick.wrong(8) else 0), 2), dtype),
        "indices": draw_index(pick, shape, 3, pick.choice(("int64", "int32"))),
    }
    if row.parameter("grad_permuted_tokens") is None:
        return arguments | {"num_out_tokens": pick.choice((None, 0, kept, -1))}
    where = plain(draw_operand(pick, (rows * count,), "int32"))
    arguments["sorted_indices"] = replace(where, values=tuple(reversed(range(rows * count))))
    arguments["grad_permuted_tokens"] = draw_operand(pick, (kept, 2), dtype)
    return arguments


@strategy("npu_moe_token_unpermute", "npu_moe_token_unpermute_grad")
def token_unpermute(pick: Picker, row: Row) -> dict[str, Any]:
    """Permuted tokens, where each is, and weights perhaps."""
    rows, count = pick.integer(1, 4), pick.integer(1, 2)
    dtype = _floats(pick)
    weighted = count > 1 or pick.boolean()
    where = plain(draw_operand(pick, (rows * count,), "int64" if pick.wrong(8) else "int32"))
    arguments: dict[str, Any] = {
        "permuted_tokens": draw_operand(pick, (pick.integer(1, rows * count), 2), dtype),
        "sorted_indices": replace(where, values=tuple(reversed(range(rows * count)))),
        "probs": draw_operand(pick, (rows, count), dtype) if weighted else None,
    }
    if row.parameter("grad_unpermuted_tokens") is not None:
        arguments["grad_unpermuted_tokens"] = draw_operand(pick, (rows, 2), dtype)
    return arguments


# Dropout


@strategy("npu_dropout", "npu_dropout_backward", "npu_dropout_mask")
def dropout(pick: Picker, row: Row) -> dict[str, Any]:
    """A tensor, a probability, and for the derivative a mask."""
    shape = draw_shape(pick, 1, 2)
    arguments: dict[str, Any] = {
        row.parameters[0].name: draw_operand(pick, shape, _floats(pick)),
        "p": pick.choice((0.5, 0.0, 1.0) if pick.valid else (0.5, 0.0, 1.0, 1.5)),
    }
    if row.parameter("size") is not None:
        arguments |= {"size": list(shape), "seed": 3, "offset": 4}
    if row.parameter("mask") is not None:
        count = 1
        for n in shape:
            count *= n
        arguments["mask"] = draw_operand(pick, ((count + 127) // 128 * 16,), "uint8")
    return arguments
