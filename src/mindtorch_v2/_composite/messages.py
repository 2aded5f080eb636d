"""Messages between two ranks of a process group as functions. What they give is waited for by `wait_tensor`; a group that is destroyed waits for the rest.

Sending gives a tensor without elements, which stands for the message; receiving gives back the tensor that is written. Both sides may begin before either waits.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from typing import Any

from mindtorch_v2._above import above
from mindtorch_v2._tensor import Tensor

_begun: dict[int, tuple[weakref.ref[Tensor], list[Any]]] = {}
"""By the identity of a tensor: the messages that it stands for."""


def _forget(begun: dict, key: int, _: Any) -> None:
    begun.pop(key, None)


def _stand(tensor: Tensor, work: Any) -> Tensor:
    """Have a tensor stand for a message."""
    key = id(tensor)
    if key not in _begun:
        _begun[key] = weakref.ref(tensor, functools.partial(_forget, _begun, key)), []
    _begun[key][1].append(work)
    return tensor


def waited(tensor: Tensor) -> Tensor:
    """The tensor, once the messages have come that it stands for."""
    _, works = _begun.pop(id(tensor), (None, ()))
    for work in works:
        work.wait()
    return tensor


def isend(tensor: Tensor, dst: int, tag: int, group_name: str) -> Tensor:
    """Begin to send a tensor to a rank of the group."""
    work = above("process_group")("isend", group_name).send([tensor.detach()], dst, tag)
    return _stand(tensor.new_empty(0), work)


def irecv(tensor: Tensor, src: int, tag: int, group_name: str) -> Tensor:
    """Begin to receive a tensor from a rank of the group."""
    return _stand(tensor, above("process_group")("irecv", group_name).recv([tensor], src, tag))


_KINDS = {"isend": isend, "irecv": irecv}


def batch_p2p_ops(
    op_list: Sequence[str],
    peer_list: Sequence[int],
    tag_list: Sequence[int],
    tensors: Sequence[Tensor],
    group_name: str,
) -> list[Tensor]:
    """Begin several messages. RuntimeError for what is neither isend nor irecv, and for lists of different lengths."""
    lengths = {len(one) for one in (op_list, peer_list, tag_list, tensors)}
    if len(lengths) != 1:
        raise RuntimeError(f"batch_p2p_ops: the lists have different lengths: {sorted(lengths)}")
    for op in op_list:
        if op not in _KINDS:
            raise RuntimeError(f"Unsupported async op {op}")
    return [
        _KINDS[op](tensor, peer, tag, group_name)
        for op, peer, tag, tensor in zip(op_list, peer_list, tag_list, tensors)
    ]
