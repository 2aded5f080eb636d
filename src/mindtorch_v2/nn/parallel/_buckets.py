"""Gradients of several processes, averaged in buckets while backward goes on.

Note [Buckets]
Parameters are put into buckets in the reverse of their order, which is about the order in which backward reaches them. A bucket whose gradients are all there begins its all_reduce at once, but
never before the one in front of it, so that all ranks begin them in the same order. At the end of backward they are waited for, and averages are written where the gradients are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import mindtorch_v2 as torch

from ..._autograd.engine import queue_callback

_FIRST = 1 << 20  # bytes of the first bucket, so that something is on its way early


class GradBucket:
    """Some gradients, flat, as hooks see them."""

    def __init__(self, index: int, params: list[Any]) -> None:
        self._index = index
        self._params = params
        self._last = False
        self._flat: Any = None
        self.waiting = 0
        self.result: Any = None  # of the hook: a future

    def index(self) -> int:
        """Its number, in the order of backward."""
        return self._index

    def is_last(self) -> bool:
        """Whether no other one follows."""
        return self._last

    def parameters(self) -> list[Any]:
        """Whose gradients they are."""
        return list(self._params)

    def buffer(self) -> Any:
        """The gradients, one after the other, in one dimension."""
        return self._flat

    def set_buffer(self, tensor: Any) -> None:
        """Put others in their place."""
        self._flat = tensor

    def gradients(self) -> list[Any]:
        """Views of the buffer, one for each parameter."""
        parts = self._flat.split([param.numel() for param in self._params])
        return [part.view(param.shape) for part, param in zip(parts, self._params)]

    def fill(self) -> None:
        """Copy the gradients into the buffer; zeros where there is none."""
        with torch.no_grad():
            flat = [
                torch.zeros_like(param).reshape(-1) if param.grad is None else param.grad.reshape(-1)
                for param in self._params
            ]
            self._flat = torch.cat([part.to(self._params[0].dtype) for part in flat])


Hook = Callable[[Any, GradBucket], Any]


def buckets_of(params: list[Any], limit: int) -> list[GradBucket]:
    """Buckets of at most about `limit` bytes, of one dtype each; see Note [Buckets]."""
    made: list[GradBucket] = []
    room: dict[Any, int] = {}
    open_buckets: dict[Any, GradBucket] = {}
    for param in reversed(params):
        size = param.numel() * param.element_size()
        bucket = open_buckets.get(param.dtype)
        if bucket is None or room[param.dtype] <= 0:
            bucket = open_buckets[param.dtype] = GradBucket(len(made), [])
            room[param.dtype] = min(limit, _FIRST) if not made else limit
            made.append(bucket)
        bucket._params.append(param)
        room[param.dtype] -= size
    if made:
        made[-1]._last = True
    return made


class Reducer:
    """Averages gradients of parameters over a group. hook: what exchanges a bucket; it gives a future of the averages."""

    def __init__(self, params: list[Any], group: Any, limit: int, find_unused: bool) -> None:
        self._group, self._find_unused = group, find_unused
        self._buckets = buckets_of(params, limit)
        self._where = {id(param): bucket for bucket in self._buckets for param in bucket._params}
        self._params = params
        self._ready: set[int] = set()
        self._next = 0
        self._expected = self._queued = False
        self._used: set[int] = set()
        self.hook: tuple[Hook, Any] | None = None
        self.divisor = group.size()
        for param in params:
            param.register_post_accumulate_grad_hook(self._arrived)

    def begin(self, outputs: Iterable[Any]) -> None:
        """Expect a backward pass from outputs. RuntimeError if that before left gradients out.

        Without `find_unused` every parameter has to get one.
        """
        if self._expected and self._ready:
            missing = [str(index) for index, param in enumerate(self._params) if id(param) not in self._ready]
            raise RuntimeError(
                "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that your module has parameters that were "
                "not used in producing loss. You can enable unused parameter detection by passing the keyword argument `find_unused_parameters=True` to "
                "`torch.nn.parallel.DistributedDataParallel`, and by making sure all `forward` function outputs participate in calculating loss. Parameter indices which "
                f"did not receive grad for rank {self._group.rank()}: {' '.join(missing)}"
            )
        self._expected, self._queued = True, False
        self._ready.clear()
        self._next = 0
        for bucket in self._buckets:
            bucket.waiting, bucket.result = len(bucket._params), None
        self._used = reached(outputs) if self._find_unused else {id(param) for param in self._params}

    prepare_for_backward = begin

    def _rebuild_buckets(self) -> bool:
        """Whether buckets have been made anew, in the order in which gradients came: never."""
        return False

    def _arrived(self, param: Any) -> None:
        if not self._expected:
            return
        if not self._queued:
            self._queued = True
            queue_callback(self._finish)
            for other in self._params:
                if id(other) not in self._used:
                    self._mark(other)
        self._mark(param)

    def _mark(self, param: Any) -> None:
        if id(param) in self._ready:
            return
        self._ready.add(id(param))
        self._where[id(param)].waiting -= 1
        while self._next < len(self._buckets) and not self._buckets[self._next].waiting:
            bucket = self._buckets[self._next]
            self._next += 1
            bucket.fill()
            bucket.result = self._exchange(bucket)

    def _exchange(self, bucket: GradBucket) -> Any:
        """Begin to average a bucket: a future."""
        if self.hook is not None:
            return self.hook[0](self.hook[1], bucket)
        return average(self._group, bucket, self.divisor)

    def shadow(self) -> None:
        """Take part in a backward pass of the other ranks, with gradients of zero."""
        results = []
        for bucket in self._buckets:
            bucket.set_buffer(torch.cat([torch.zeros_like(param).reshape(-1) for param in bucket._params]))
            results.append(self._exchange(bucket))
        if self._find_unused:
            self._group.allreduce([torch.zeros(len(self._params), dtype=torch.int32)]).wait()
        for result in results:
            result.wait()

    def _finish(self) -> None:
        """At the end of backward: what is averaged goes where the gradients are."""
        if self._next < len(self._buckets):
            return  # `begin` says so, when the next pass comes
        used = self._used_anywhere()
        with torch.no_grad():
            for bucket in self._buckets:
                done = bucket.result.wait()
                bucket.set_buffer(done[0] if isinstance(done, (list, tuple)) else done)
                for param, part in zip(bucket._params, bucket.gradients()):
                    if id(param) not in used:
                        continue
                    if param.grad is None:
                        param.grad = torch.zeros_like(param)
                    param.grad.copy_(part)
        self._expected = False

    def _used_anywhere(self) -> set[int]:
        if not self._find_unused:
            return self._used
        flags = torch.tensor([int(id(param) in self._used) for param in self._params], dtype=torch.int32)
        self._group.allreduce([flags]).wait()
        return {id(param) for param, count in zip(self._params, flags.tolist()) if count}


def average(group: Any, bucket: GradBucket, divisor: int) -> Any:
    """A future of a bucket's sums over the ranks, divided by `divisor`."""
    flat = bucket.buffer()
    flat.div_(divisor)
    return group.allreduce([flat]).get_future()


def reached(outputs: Iterable[Any]) -> set[int]:
    """The ids of the leaves that the outputs' history reaches."""
    found: set[int] = set()
    seen: set[int] = set()
    waiting = [output.grad_fn for output in outputs if output.grad_fn is not None]
    held = list(waiting)  # nodes may be made as they are asked for
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if hasattr(node, "variable"):
            found.add(id(node.variable))
        following = [next_node for next_node, _ in node.next_functions if next_node is not None]
        held.extend(following)
        waiting.extend(following)
    return found
