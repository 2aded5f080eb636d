"""Saved tensors that may be changed in place: a write first puts a copy where the tensor is saved.

Note [Copies of what is saved]
A tensor is known by its memory: (storage, offset, dtype, shape, strides, device) and the version at which it was saved. What a node saves is a handle;
as long as one lives, `originals` has the tensor for it, and a write to the memory moves it, as a copy, to `cloned`.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from .._autograd.modes import saved_tensors_hooks
from .._tensor import Tensor, counter, version
from ..utils._python_dispatch import TorchDispatchMode


class _Handle:
    """What a node holds in place of a tensor."""

    __slots__ = ("__weakref__",)


def _memory_of(tensor: Tensor) -> tuple:
    return (tensor.untyped_storage()._cdata, tensor.device)


def _key(tensor: Tensor) -> tuple:
    """What two aliases of the same elements at the same version have in common."""
    where = (tensor.storage_offset(), tensor._dtype, tuple(tensor.shape), tensor.stride())
    return (id(counter(tensor)), *where, version(tensor))


class _AllowMutationOnSavedContext:
    """What is saved, and which of it was copied."""

    def __init__(self) -> None:
        self.cloned: WeakKeyDictionary = WeakKeyDictionary()
        self.original: WeakKeyDictionary = WeakKeyDictionary()
        self.tid_to_weakhandle: WeakValueDictionary = WeakValueDictionary()
        self.sid_to_tid: defaultdict = defaultdict(set)

    def clear(self) -> None:
        """Forget everything."""
        for table in (self.cloned, self.original, self.tid_to_weakhandle, self.sid_to_tid):
            table.clear()


class _Saving(saved_tensors_hooks):
    def __init__(self, context: _AllowMutationOnSavedContext):
        def pack(tensor: Tensor) -> _Handle:
            key = _key(tensor)
            context.sid_to_tid[_memory_of(tensor)].add(key)
            handle = context.tid_to_weakhandle.get(key)
            if handle is None:
                handle = context.tid_to_weakhandle[key] = _Handle()
                context.original[handle] = tensor
            return handle

        def unpack(handle: _Handle) -> Tensor:
            if handle in context.cloned:
                return context.cloned[handle]
            if handle in context.original:
                return context.original[handle]
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' contextin which the graph was originally recorded."
            )

        super().__init__(pack, unpack)


class _CopyBeforeWriting(TorchDispatchMode):
    def __init__(self, context: _AllowMutationOnSavedContext):
        self.context = context

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        """The operator's result; what it writes to is copied first where it is saved."""
        given = dict(kwargs or {})
        schema = func._schema
        for argument, value in zip(schema.arguments, args):
            if argument.alias_info is not None and argument.alias_info.is_write:
                self._rescue(value)
        out = given.get("out")
        for value in out if isinstance(out, (tuple, list)) else (out,):
            self._rescue(value)
        return func(*args, **given)

    def _rescue(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            return
        context = self.context
        for key in context.sid_to_tid.pop(_memory_of(value), ()):
            handle = context.tid_to_weakhandle.get(key)
            if handle is None or handle in context.cloned or handle not in context.original:
                continue
            context.cloned[handle] = context.original.pop(handle).clone()


_active = False


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_AllowMutationOnSavedContext]:
    """Inside, tensors that are saved for the backward pass may be changed in place, and the pass sees what they were. It must run inside, too.

    RuntimeError when such blocks are nested.
    """
    global _active
    if _active:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = _AllowMutationOnSavedContext()
    with _Saving(context), _CopyBeforeWriting(context):
        _active = True
        try:
            yield context
        finally:
            _active = False
            context.clear()
