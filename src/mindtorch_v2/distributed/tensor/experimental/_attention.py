"""`context_parallel`: attention over sequences of which each rank has a part.

Note [Parts of a sequence]
Inside, each rank's queries meet the keys and values of all ranks, which one collective gathers; their gradients are summed by another one. Sequences of `2 * ranks` equal parts are dealt out as
PyTorch deals them: rank r has part r from the front and part r from the end, so that a causal mask leaves all ranks equally much. Keys lie in the order of ranks then, and the mask says which of
them a query may see.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional as F
from mindtorch_v2.overrides import TorchFunctionMode

from ..._functional_collectives import all_gather_single
from ...device_mesh import DeviceMesh

__all__ = ["context_parallel", "context_parallel_unshard", "set_rotate_method"]

_SEQUENCE = 2  # the dimension of queries, keys and values


def _order(length: int, ranks: int) -> torch.Tensor:
    """The places of a sequence in the order in which ranks have them."""
    places = torch.arange(length)
    if length % (2 * ranks):
        return places
    parts = places.chunk(2 * ranks)
    return torch.cat([part for rank in range(ranks) for part in (parts[rank], parts[-1 - rank])])


def _own(mesh: DeviceMesh, length: int) -> torch.Tensor:
    ranks = mesh.size()
    if length % ranks:
        raise ValueError(f"a sequence of {length} is not divided among {ranks} ranks of equally many places")
    return _order(length, ranks).chunk(ranks)[mesh.get_local_rank()]


class _Attention(TorchFunctionMode):
    """Inside, `scaled_dot_product_attention` sees all ranks' keys and values."""

    def __init__(self, mesh: DeviceMesh) -> None:
        super().__init__()
        self.mesh = mesh

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if func is not F.scaled_dot_product_attention:
            return func(*args, **(kwargs or {}))
        return self._attend(*args, **(kwargs or {}))

    def _attend(
        self, query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False, **more: Any
    ) -> Any:  # fmt: skip
        if attn_mask is not None:
            raise NotImplementedError("context_parallel: attention with a mask of its own; is_causal is supported")
        keys, values = (all_gather_single(one.contiguous(), _SEQUENCE, self.mesh.get_group()) for one in (key, value))
        if is_causal:
            length = keys.shape[_SEQUENCE]
            own, every = _own(self.mesh, length), _order(length, self.mesh.size())
            attn_mask = (own.unsqueeze(1) >= every).to(query.device)
        return _plain(query, keys, values, attn_mask, dropout_p, False, **more)


_plain = F.scaled_dot_product_attention


@contextmanager
def context_parallel(
    mesh: DeviceMesh,
    *,
    buffers: list[torch.Tensor] | None = None,
    buffer_seq_dims: list[int] | None = None,
    no_restore_buffers: set[torch.Tensor] | None = None,
) -> Iterator[None]:
    """Inside, buffers have this rank's part of their sequences, and attention over parts is that over whole sequences. See Note [Parts of a sequence].

    Args:
        mesh: of one dimension, whose ranks have the parts.
        buffers: what depends on the sequence: inputs, labels, embeddings of places. They are changed in place, and are as before afterwards, but for `no_restore_buffers`.
        buffer_seq_dims: the dimension of the sequence of each.

    Raises:
        ValueError: for other numbers of buffers and dimensions, and sequences that do not divide among the ranks.
    """
    buffers, dims = list(buffers or ()), list(buffer_seq_dims or ())
    lost = list(no_restore_buffers or ())
    if len(buffers) != len(dims):
        raise ValueError("`seq_dims` must have the same number of elements as `buffers`.")
    if any(all(one is not buffer for buffer in buffers) for one in lost):
        raise ValueError("`no_restore_buffers` must be a subset of `buffers`.")
    with torch.no_grad():
        before = [None if any(one is buffer for one in lost) else buffer.clone() for buffer in buffers]
        for buffer, dim in zip(buffers, dims):
            _become(buffer, buffer.index_select(dim, _own(mesh, buffer.shape[dim]).to(buffer.device)))
    try:
        with _Attention(mesh):
            yield
    finally:
        with torch.no_grad():
            for buffer, whole in zip(buffers, before):
                if whole is not None:
                    _become(buffer, whole)


def _become(buffer: torch.Tensor, values: torch.Tensor) -> None:
    buffer.resize_(values.shape)
    buffer.copy_(values)


def context_parallel_unshard(
    mesh: DeviceMesh, buffers: list[torch.Tensor], seq_dims: list[int], load_balancer: Any = None
) -> list[torch.Tensor]:
    """The whole sequences of results that each rank has a part of. NotImplementedError for a balancer of one's own."""
    if load_balancer is not None:
        raise NotImplementedError("context_parallel_unshard: balancers of one's own")
    made = []
    with torch.no_grad():
        for buffer, dim in zip(buffers, seq_dims):
            whole = all_gather_single(buffer.contiguous(), dim, mesh.get_group())
            back = _order(whole.shape[dim], mesh.size()).argsort()
            made.append(whole.index_select(dim, back.to(whole.device)))
    return made


def set_rotate_method(rotate_method: str) -> None:
    """How keys and values come to the other ranks: "allgather" or "alltoall", which are the same here. NotImplementedError for another word."""
    if rotate_method not in ("allgather", "alltoall"):
        raise NotImplementedError(f"Context Parallel does not support using {rotate_method} for kv shards rotation")
