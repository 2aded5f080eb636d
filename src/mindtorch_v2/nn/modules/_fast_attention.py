"""When layers of transformers run as one operator: in evaluation, where nothing asks for a gradient.

What the operators give differs from what the layers give where all keys are masked, and an encoder with a padding mask then gives zeros for padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mindtorch_v2 as torch

from ..._dispatch.overrides import is_taken_over
from ..._tensor import Tensor

_enabled = True


def get_fastpath_enabled() -> bool:
    """Whether layers of transformers may run as one operator."""
    return _enabled


def set_fastpath_enabled(value: bool) -> None:
    """Let layers of transformers run as one operator, or not."""
    global _enabled
    _enabled = value


def why_not(reasons: Sequence[tuple[Any, str]], tensors: Sequence[Any]) -> str:
    """The first reason that applies, or what of the tensors forbids the operator; nothing where it may run."""
    if not _enabled:
        return "torch.backends.mha.get_fastpath_enabled() was not True"
    for applies, reason in reasons:
        if applies:
            return reason
    if torch.is_autocast_enabled():
        return "autocast is enabled"
    if is_taken_over(tuple(tensors)):
        return "some Tensor argument has_torch_function"
    if tensors[0].device.type not in ("cpu", "npu"):
        return "src device is neither one of ['cpu', 'npu']"
    if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
        return (
            "grad is enabled and at least one of query or the input/output projection weights or biases requires_grad"
        )
    return ""


def of_attention(module: Any, query: Tensor, key: Tensor, value: Tensor, masks: tuple, floating: bool) -> str:
    """What keeps attention from the operator. AssertionError for a nested tensor then."""
    if module.training and not (query.is_nested or key.is_nested or value.is_nested):  # most often
        return "training is enabled"
    projection = module.in_proj_weight
    wrong = next((t for t in (module.in_proj_bias, projection) if t is not None and t.dtype is not query.dtype), None)
    name = "self.in_proj_weight" if wrong is projection else "self.in_proj_bias"
    reasons = (
        (floating, "floating-point masks are not supported for fast path."),
        (query.dim() != 3, f"input not batched; expected query.dim() of 3 but got {query.dim()}"),
        (
            query is not key or key is not value,
            "non-self attention was used (query, key, and value are not the same Tensor)",
        ),
        (projection is None or module.in_proj_bias is None, "in_proj_weight was None"),
        (
            wrong is not None,
            f"dtypes of query ({query.dtype}) and {name} ({wrong is not None and wrong.dtype}) don't match",
        ),
        (module.training, "training is enabled"),
        (module.num_heads % 2, "self.num_heads is not even"),
        (not module.batch_first, "batch_first was not True"),
        (module.bias_k is not None, "self.bias_k was not None"),
        (module.bias_v is not None, "self.bias_v was not None"),
        (module.add_zero_attn, "add_zero_attn was enabled"),
        (not module._qkv_same_embed_dim, "_qkv_same_embed_dim was not True"),
        (
            query.is_nested and any(mask is not None for mask in masks),
            "supplying both src_key_padding_mask and src_mask at the same time is not supported with NestedTensor input",
        ),
    )
    out = module.out_proj
    why = why_not(reasons, (query, projection, module.in_proj_bias, out.weight, out.bias))
    if why and (query.is_nested or key.is_nested or value.is_nested):
        raise AssertionError(
            f"MultiheadAttention does not support NestedTensor outside of its fast path. The fast path was not hit because {why}"
        )
    return why


def tensors_of(layer: Any, src: Tensor) -> tuple:
    """What the operator of an encoder's layer computes with."""
    attention = layer.self_attn
    return (
        src,
        attention.in_proj_weight,
        attention.in_proj_bias,
        attention.out_proj.weight,
        attention.out_proj.bias,
        layer.norm1.weight,
        layer.norm1.bias,
        layer.norm2.weight,
        layer.norm2.bias,
        layer.linear1.weight,
        layer.linear1.bias,
        layer.linear2.weight,
        layer.linear2.bias,
    )


def encoded(layer: Any, src: Tensor, src_mask: Tensor | None, padding: Tensor | None) -> Tensor | None:
    """The result of an encoder's layer by one operator, or None where it may not run."""
    if layer.training or src.dim() != 3:  # most often
        return None
    attention = layer.self_attn
    tensors = tensors_of(layer, src)
    reasons = (
        (not attention.batch_first, "self_attn.batch_first was not True"),
        (any(t is None for t in tensors), "self_attn was passed bias=False"),
        (not attention._qkv_same_embed_dim, "self_attn._qkv_same_embed_dim was not True"),
        (not layer.activation_relu_or_gelu, "activation_relu_or_gelu was not True"),
        (layer.norm1.eps != layer.norm2.eps, "norm1.eps is not equal to norm2.eps"),
        (
            src.is_nested and (src_mask is not None or padding is not None),
            "masks are not supported with NestedTensor input",
        ),
        (attention.num_heads % 2, "num_head is odd"),
        (
            any(m._forward_hooks or m._forward_pre_hooks for m in layer.modules()),
            "forward hooks are attached to the model",
        ),
    )
    if why_not(reasons, tensors):
        return None
    mask, kind = attention.merge_masks(src_mask, padding, src)
    return torch._transformer_encoder_layer_fwd(
        src,
        attention.embed_dim,
        attention.num_heads,
        *tensors[1:5],
        layer.activation_relu_or_gelu == 2,
        layer.norm_first,
        layer.norm1.eps,
        *tensors[5:],
        mask,
        kind,
    )


def rows_of(encoder: Any, src: Tensor, mask: Tensor | None, padding: Tensor | None) -> Any:
    """What an encoder's layers see of `src` in place of padding: a nested tensor, or None where they see all."""
    if padding is None or mask is not None or src.dim() != 3 or not getattr(encoder, "use_nested_tensor", False):
        return None
    from ...nested import _nested_tensor_from_mask, _nested_tensor_from_mask_left_aligned

    layer = encoder.layers[0]
    present = padding.logical_not()
    gaps = getattr(encoder, "mask_check", True) and not _nested_tensor_from_mask_left_aligned(src, present)
    reasons = (
        (layer.training, "self.layers[0] was in training mode"),
        (gaps, "mask_check enabled, and src and src_key_padding_mask was not left aligned"),
        (src.is_nested, "NestedTensor input is not supported"),
    )
    if why_not(reasons, tensors_of(layer, src)):
        return None
    return _nested_tensor_from_mask(src, present, mask_check=False)
