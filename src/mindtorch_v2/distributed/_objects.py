"""Calls over anything that can be pickled: its bytes travel as tensors of uint8, after their lengths."""

from __future__ import annotations

import io
import pickle
from typing import Any

import mindtorch_v2 as torch

from .._tensor import Tensor
from ._collectives import (
    _check_not_self_rank,
    _validate_output_list_for_rank,
    all_gather,
    broadcast,
    gather,
    recv,
    scatter,
    send,
)
from ._groups import (
    _canonicalize_group_rank,
    _get_pg_default_device,
    _group_or_default_group,
    _rank_not_in_group,
    _warn_not_in_group,
)


def _object_to_tensor(obj: Any, device: Any = None, group: Any = None) -> tuple[Tensor, Tensor]:
    """An object's bytes, and how many they are, where the group's tensors are."""
    where = device or _get_pg_default_device(group)
    written = io.BytesIO()
    pickle.Pickler(written).dump(obj)
    data = torch.frombuffer(bytearray(written.getvalue()), dtype=torch.uint8)
    return data.to(where), torch.tensor([data.numel()], device=where)


def _tensor_to_object(tensor: Tensor, tensor_size: Any, group: Any = None) -> Any:
    """The object of so many bytes."""
    return pickle.loads(tensor.cpu().numpy().tobytes()[: int(tensor_size)])


def _sizes(size: Tensor, group: Any) -> list[int]:
    sizes = [torch.zeros_like(size) for _ in range(group.size())]
    all_gather(sizes, size, group=group)
    return [int(one) for one in sizes]


def _padded(data: Tensor, length: int) -> Tensor:
    made = data.new_zeros(length)
    made[: data.numel()] = data
    return made


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Put every rank's object into the list."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather_object")
    group = _group_or_default_group(group)
    data, size = _object_to_tensor(obj, group=group)
    sizes = _sizes(size, group)
    taken = [data.new_empty(max(sizes)) for _ in sizes]
    all_gather(taken, _padded(data, max(sizes)), group=group)
    for index, one in enumerate(sizes):
        object_list[index] = _tensor_to_object(taken[index], one)
    return None


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Put every rank's object into the list that rank `dst` (0 unless said) alone gives."""
    group = _group_or_default_group(group)
    if _rank_not_in_group(group):
        return _warn_not_in_group("gather_object")
    root = _canonicalize_group_rank(group, 0 if dst is None and group_dst is None else dst, group_dst)
    _validate_output_list_for_rank(group.rank(), root, object_gather_list)
    data, size = _object_to_tensor(obj, group=group)
    sizes = _sizes(size, group)
    here = group.rank() == root
    taken = [data.new_empty(max(sizes)) for _ in sizes] if here else None
    gather(_padded(data, max(sizes)), taken, group_dst=root, group=group)
    if taken is not None and object_gather_list is not None:
        for index, one in enumerate(sizes):
            object_gather_list[index] = _tensor_to_object(taken[index], one)
    return None


def _joined(objects: list[Any], device: Any, group: Any) -> tuple[Tensor, Tensor]:
    pairs = [_object_to_tensor(obj, device, group) for obj in objects]
    return torch.cat([data for data, _ in pairs]), torch.cat([size for _, size in pairs])


def _take_apart(objects: list[Any], data: Tensor, sizes: Tensor) -> None:
    start = 0
    for index, size in enumerate(sizes.tolist()):
        objects[index] = _tensor_to_object(data[start : start + size], size)
        start += size


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send a list of objects to another rank."""
    group = _group_or_default_group(group)
    if _rank_not_in_group(group):
        return _warn_not_in_group("send_object_list")
    root = _canonicalize_group_rank(group, dst, group_dst)
    _check_not_self_rank(group, root, "destination")
    data, sizes = _joined(object_list, device, group)
    send(sizes, group_dst=root, group=group)
    return send(data, group_dst=root, group=group)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receive a list of as many objects from another rank, or from any; the rank that sent them."""
    group = _group_or_default_group(group)
    if _rank_not_in_group(group):
        _warn_not_in_group("recv_object_list")
        return -1
    where = device or _get_pg_default_device(group)
    sizes = torch.empty(len(object_list), dtype=torch.long, device=where)
    source = recv(sizes, src, group=group, group_src=group_src)
    data = torch.empty(int(sizes.sum()), dtype=torch.uint8, device=where)
    recv(data, source, group=group)
    _take_apart(object_list, data, sizes)
    return source


def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None
) -> None:
    """Every rank gets the objects of rank `src` (0 unless said), in a list of as many."""
    group = _group_or_default_group(group)
    if _rank_not_in_group(group):
        return _warn_not_in_group("broadcast_object_list")
    root = _canonicalize_group_rank(group, 0 if src is None and group_src is None else src, group_src)
    here = group.rank() == root
    if here:
        data, sizes = _joined(object_list, device, group)
    else:
        data, sizes = _joined([None] * len(object_list), device, group)
    broadcast(sizes, group_src=root, group=group)
    if not here:
        data = data.new_empty(int(sizes.sum()))
    broadcast(data, group_src=root, group=group)
    if not here:
        _take_apart(object_list, data, sizes)
    return None


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Put into the output's first place this rank's object of the list that rank `src` (0 unless said) gives."""
    group = _group_or_default_group(group)
    if _rank_not_in_group(group):
        return _warn_not_in_group("scatter_object_list")
    root = _canonicalize_group_rank(group, 0 if src is None and group_src is None else src, group_src)
    if not isinstance(scatter_object_output_list, list) or len(scatter_object_output_list) < 1:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    here = group.rank() == root
    if here and scatter_object_input_list is None:
        raise ValueError("source rank must provide non-None scatter_object_input_list")
    pairs = [_object_to_tensor(obj, group=group) for obj in scatter_object_input_list or ()] if here else []
    where = _get_pg_default_device(group)
    longest = torch.tensor([max((data.numel() for data, _ in pairs), default=0)], device=where)
    broadcast(longest, group_src=root, group=group)
    data, size = longest.new_empty(int(longest), dtype=torch.uint8), torch.zeros_like(longest)
    scatter(data, [_padded(one, int(longest)) for one, _ in pairs] if here else None, group_src=root, group=group)
    scatter(size, [one for _, one in pairs] if here else None, group_src=root, group=group)
    scatter_object_output_list[0] = _tensor_to_object(data, size)
    return None
