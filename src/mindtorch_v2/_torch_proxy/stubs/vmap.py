"""The mode that programs enter around `torch.vmap` to index tensors with tensors."""

from __future__ import annotations

from collections.abc import Callable

from mindtorch_v2._torch_proxy.placeholders import NoOpContext


class TransformGetItemToIndex(NoOpContext):
    """Nothing to do: indexing by a 0-dim tensor is indexing by a tensor under `vmap`, without this mode."""


def _get_name(func: Callable) -> str:
    """What a function is called in messages."""
    return getattr(func, "__name__", None) or repr(func)
