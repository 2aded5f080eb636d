"""Batches in parts, and results of parts as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mindtorch_v2 as torch

from ...utils._pytree import tree_flatten, tree_unflatten


class TensorChunkSpec:
    """In which dimension a tensor is divided."""

    def __init__(self, split_dim: int) -> None:
        self.split_dim = split_dim

    def __repr__(self) -> str:
        return f"TensorChunkSpec({self.split_dim})"

    @staticmethod
    def from_tuple(chunk_dims: Sequence[int]) -> tuple[TensorChunkSpec, ...]:
        """One for each dimension."""
        return tuple(TensorChunkSpec(dim) for dim in chunk_dims)

    @staticmethod
    def from_dict(chunk_dims: dict[str, int]) -> dict[str, TensorChunkSpec]:
        """One for each name."""
        return {name: TensorChunkSpec(dim) for name, dim in chunk_dims.items()}


class _Replicate:
    """Each part gets the whole."""


def _divided(value: Any, spec: Any, count: int) -> list[Any]:
    leaves, tree = tree_flatten(value)
    parts = []
    for leaf in leaves:
        if not isinstance(leaf, torch.Tensor) or isinstance(spec, _Replicate):
            parts.append([leaf] * count)
            continue
        dim = 0 if spec is None else spec.split_dim
        if leaf.shape[dim] < count:
            raise RuntimeError(f"a tensor with {leaf.shape[dim]} rows cannot be divided into {count} parts")
        parts.append(list(torch.tensor_split(leaf, count, dim)))
    return [tree_unflatten([part[index] for part in parts], tree) for index in range(count)]


def split_args_kwargs_into_chunks(
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    chunks: int,
    args_chunk_spec: Any = None,
    kwargs_chunk_spec: Any = None,
) -> tuple[list[tuple[Any, ...]], list[dict[str, Any]]]:
    """Arguments in parts: tensors in the dimension that is said (the first), the rest as it is. RuntimeError for too few rows."""
    named = kwargs or {}
    specs = args_chunk_spec or [None] * len(args)
    split = [_divided(value, spec, chunks) for value, spec in zip(args, specs)]
    split_named = {name: _divided(value, (kwargs_chunk_spec or {}).get(name), chunks) for name, value in named.items()}
    return (
        [tuple(part[index] for part in split) for index in range(chunks)],
        [{name: part[index] for name, part in split_named.items()} for index in range(chunks)],
    )


def merge_chunks(chunks: Sequence[Any], chunk_spec: Any = None) -> Any:
    """Results of parts as one: tensors joined (in the first dimension unless said), what is no tensor from the first part."""
    leaves = [tree_flatten(chunk)[0] for chunk in chunks]
    tree = tree_flatten(chunks[0])[1]
    specs = tree_flatten(chunk_spec)[0] if chunk_spec is not None else [None] * len(leaves[0])
    made = []
    for index, spec in enumerate(specs):
        parts = [one[index] for one in leaves]
        if not isinstance(parts[0], torch.Tensor) or isinstance(spec, _Replicate):
            made.append(parts[0])
        elif parts[0].dim() == 0:
            made.append(torch.stack(parts))
        else:
            made.append(torch.cat(parts, spec.split_dim if isinstance(spec, TensorChunkSpec) else 0))
    return tree_unflatten(made, tree)
