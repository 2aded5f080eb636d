"""Hooks that average a bucket: as it is, or in a dtype of half the size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from ....futures import Future
from ... import distributed_c10d as dist

Hook = Callable[[Any, Any], Future[Any]]


def _group(process_group: Any) -> Any:
    return process_group if process_group is not None else dist._get_default_group()


def _averaged(process_group: Any, tensor: Any) -> Future[Any]:
    group = _group(process_group)
    tensor.div_(group.size())
    return group.allreduce([tensor]).get_future().then(lambda done: done.value()[0])


def allreduce_hook(process_group: Any, bucket: Any) -> Future[Any]:
    """A future of the bucket's average over a group, all ranks where it is None."""
    return _averaged(process_group, bucket.buffer())


def _compressed(dtype: Any, process_group: Any, bucket: Any) -> Future[Any]:
    buffer = bucket.buffer()

    def back(done: Future[Any]) -> Any:
        buffer.copy_(done.value())
        return buffer

    return _averaged(process_group, buffer.to(dtype)).then(back)


def fp16_compress_hook(process_group: Any, bucket: Any) -> Future[Any]:
    """`allreduce_hook` of float16 numbers."""
    return _compressed(torch.float16, process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: Any) -> Future[Any]:
    """`allreduce_hook` of bfloat16 numbers."""
    return _compressed(torch.bfloat16, process_group, bucket)


def _wrapper(dtype: Any, hook: Hook) -> Hook:
    def wrapped(state: Any, bucket: Any) -> Future[Any]:
        before = bucket.buffer()
        bucket.set_buffer(before.to(dtype))

        def back(done: Future[Any]) -> Any:
            value = done.value()
            before.copy_(value[0] if isinstance(value, (list, tuple)) else value)
            return before

        return hook(state, bucket).then(back)

    return wrapped


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that gives another one float16 numbers."""
    return _wrapper(torch.float16, hook)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that gives another one bfloat16 numbers."""
    return _wrapper(torch.bfloat16, hook)
