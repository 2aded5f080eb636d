"""Bags of embeddings, and their gradients by other operators."""

from __future__ import annotations

from typing import Any

from mindtorch_v2._generated import functions as F
from mindtorch_v2._tensor import Tensor


def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    include_last_offset: bool,
    padding_idx: int | None = None,
) -> Any:
    """Sums, means or maxima of rows of `weight`, bag by bag. RuntimeError for a padding that is no row."""
    if padding_idx is None:
        padding_idx = -1
    else:
        rows = weight.shape[0]
        if not -rows <= padding_idx < rows:
            raise RuntimeError(
                f"padding_idx must be within the number of embeddings, -{rows} through {rows - 1}, but got {padding_idx}"
            )
        padding_idx %= rows
    operator = F._embedding_bag if weight.requires_grad else F._embedding_bag_forward_only
    if per_sample_weights is not None and per_sample_weights.requires_grad:
        operator = F._embedding_bag
    return operator(
        weight,
        indices.contiguous(),
        offsets.contiguous(),
        scale_grad_by_freq,
        mode,
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )


def _bags_of(indices: Tensor, offsets: Tensor, offset2bag: Tensor) -> Tensor:
    """The bag of each index, counted where the forward operator left it away."""
    if offset2bag.numel() or not indices.numel():
        return offset2bag
    places = F.arange(indices.shape[0], dtype=offsets.dtype, device=offsets.device)
    return F.searchsorted(offsets, places, right=True) - 1


def embedding_bag_backward(
    grad: Tensor,
    indices: Tensor,
    offsets: Tensor,
    offset2bag: Tensor,
    bag_size: Tensor,
    maximum_indices: Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    padding_idx: int,
) -> Tensor:
    """The gradient of the table; with `sparse` a row of it for each index."""
    owner = _bags_of(indices, offsets, offset2bag)
    if sparse:
        return F._embedding_bag_sparse_backward(
            grad,
            indices,
            offsets,
            owner,
            bag_size,
            num_weights,
            scale_grad_by_freq,
            mode,
            per_sample_weights,
            padding_idx,
        )
    return F._embedding_bag_dense_backward(
        grad,
        indices,
        owner,
        bag_size,
        maximum_indices,
        num_weights,
        scale_grad_by_freq,
        mode,
        per_sample_weights,
        padding_idx,
    )


def embedding_bag_sparse_backward(
    grad: Tensor,
    indices: Tensor,
    offsets: Tensor,
    offset2bag: Tensor,
    bag_size: Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: Tensor | None,
    padding_idx: int,
) -> Tensor:
    """The gradient of the table as a row for each index: its bag's, shared (means) or weighed (factors)."""
    rows = F.index_select(grad, 0, offset2bag)
    if mode == 1:
        share = 1 / bag_size.to(rows.dtype)
        rows = rows * F.index_select(share, 0, offset2bag).unsqueeze(1)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    return F.embedding_sparse_backward(rows, indices, num_weights, padding_idx, scale_grad_by_freq)


def embedding_bag_per_sample_weights_backward(
    grad: Tensor, weight: Tensor, indices: Tensor, offsets: Tensor, offset2bag: Tensor, mode: int, padding_idx: int
) -> Tensor:
    """The gradient of the factors of the indices: the bag's gradient times the row, summed. Padding gets none."""
    if mode != 0:
        raise RuntimeError("embedding_bag_backward: per_sample_weights only supported for mode='sum'")
    owner = _bags_of(indices, offsets, offset2bag)
    shares = F.sum(F.index_select(grad, 0, owner) * F.index_select(weight, 0, indices), [1])
    return shares if padding_idx < 0 else F.masked_fill(shares, indices == padding_idx, 0)
