"""Checkpoints that keep the results of chosen operators: policies, and the contexts that `checkpoint(context_fn=...)` takes."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import mindtorch_v2 as mt

from .. import ops
from ..ops import OpOverload
from ._python_dispatch import TorchDispatchMode
from ._pytree import tree_map_only

_aten: Any = ops.aten  # pyright: ignore[reportAttributeAccessIssue]
SAC_IGNORED_OPS: set[Any] = {
    getattr(_aten, name).default
    for name in "detach dim is_contiguous numel size storage_offset stride sym_numel sym_size sym_storage_offset sym_stride".split()
} | {_aten.is_contiguous.memory_format}
"""Operators that a policy is not asked about: they say what a tensor is like, or cost nothing."""


class CheckpointPolicy(enum.Enum):
    """What becomes of an operator's result: kept for the backward pass, or computed again. Where PREFER stands, something else may decide otherwise."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_SAVED = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)


class SelectiveCheckpointContext:
    """What a policy is told: whether the results are computed again, and the result where there is one."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


class _Mode(TorchDispatchMode):
    def __init__(self, policy: Callable[..., Any], kept: dict[Any, list[Any]]) -> None:
        super().__init__()
        self.policy = policy
        self.kept = kept

    def saves(self, is_recompute: bool, func: Any, args: tuple, kwargs: dict) -> bool:
        answer = self.policy(SelectiveCheckpointContext(is_recompute=is_recompute), func, *args, **kwargs)
        if isinstance(answer, bool):
            return answer
        if answer not in CheckpointPolicy:
            raise RuntimeError(f"a policy answers by CheckpointPolicy or bool, not {answer!r}")
        return answer in _SAVED


class _Keeping(_Mode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = dict(kwargs or {})
        result = func(*args, **given)
        if func not in SAC_IGNORED_OPS and self.saves(False, func, args, given):
            self.kept[func].append(tree_map_only(mt.Tensor, lambda t: (t.detach(), t._version), result))
        return result


class _Giving(_Mode):
    def __init__(self, policy: Callable[..., Any], kept: dict[Any, list[Any]], mutable: bool) -> None:
        super().__init__(policy, kept)
        self.mutable = mutable

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = dict(kwargs or {})
        if func in SAC_IGNORED_OPS or not self.saves(True, func, args, given):
            return func(*args, **given)
        if not self.kept[func]:
            raise RuntimeError(f"{func} encountered during backward, but not found in storage")
        return self._given(self.kept[func].pop(0))

    def _given(self, value: Any) -> Any:
        if (
            isinstance(value, tuple)
            and len(value) == 2
            and isinstance(value[0], mt.Tensor)
            and isinstance(value[1], int)
        ):
            tensor, version = value
            if tensor._version != version and not self.mutable:
                raise RuntimeError(
                    "Tensor cached during selective activation checkpoint has been mutated; allow_cache_entry_mutation=True lets it be"
                )
            return tensor
        return type(value)(map(self._given, value)) if isinstance(value, (tuple, list)) else value


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Callable[..., Any] | Sequence[Any], allow_cache_entry_mutation: bool = False
) -> tuple[TorchDispatchMode, TorchDispatchMode]:
    """The contexts of the first pass and of computing again, for `context_fn` of `checkpoint`.

    Args:
        policy_fn_or_list: `policy(context, operator, *args, **kwargs)` that gives a CheckpointPolicy, or a list of operators whose results are kept.
        allow_cache_entry_mutation: do not raise when a kept result was changed in place.
    """
    if isinstance(policy_fn_or_list, list):
        chosen = policy_fn_or_list
        for op in chosen:
            if not isinstance(op, OpOverload):
                raise ValueError(f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}.")

        def policy(context: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
            return CheckpointPolicy.MUST_SAVE if op in chosen else CheckpointPolicy.PREFER_RECOMPUTE

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    kept: dict[Any, list[Any]] = defaultdict(list)
    return _Keeping(policy, kept), _Giving(policy, kept, allow_cache_entry_mutation)
