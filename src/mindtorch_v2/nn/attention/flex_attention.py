"""Flexible attention: the names are there to be imported and tested against, calls say that it is not implemented."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import mindtorch_v2 as torch

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "create_nested_block_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

_DEFAULT_SPARSE_BLOCK_SIZE = 128

_mask_mod_signature = Callable[..., Any]
_score_mod_signature = Callable[..., Any]


def _missing(name: str) -> NoReturn:
    raise NotImplementedError(
        f"torch.nn.attention.flex_attention.{name} is not implemented: use "
        "torch.nn.functional.scaled_dot_product_attention with a mask"
    )


class FlexKernelOptions(dict):
    """Options of a kernel that does not exist here."""


class AuxRequest(NamedTuple):
    """Which further results are asked for."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """Further results."""

    lse: Any = None
    max_scores: Any = None


class BlockMask:
    """A mask in blocks. Making one raises NotImplementedError; the class serves ``isinstance``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _missing("BlockMask")


def noop_mask(batch: Any, head: Any, token_q: Any, token_kv: Any) -> Any:
    """A mask function that allows everything."""
    return batch.new_ones(size=(), dtype=torch.bool, device=batch.device)


def _combine(masks: tuple[Callable[..., Any], ...], start: bool) -> Callable[..., Any]:
    if not all(callable(mask) for mask in masks):
        raise RuntimeError(f"All inputs should be callable mask_mods: {masks}")

    def combined(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        result = b.new_full((), start, dtype=torch.bool)
        for mask in masks:
            value = mask(b, h, q_idx, kv_idx)
            result = result & value if start else result | value
        return result

    return combined


def and_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Any]:
    """A mask function that allows what all of ``mask_mods`` allow."""
    return _combine(mask_mods, start=True)


def or_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Any]:
    """A mask function that allows what any of ``mask_mods`` allows."""
    return _combine(mask_mods, start=False)


def create_mask(*args: Any, **kwargs: Any) -> Any:
    """Raises NotImplementedError."""
    _missing("create_mask")


def create_block_mask(*args: Any, **kwargs: Any) -> Any:
    """Raises NotImplementedError."""
    _missing("create_block_mask")


def create_nested_block_mask(*args: Any, **kwargs: Any) -> Any:
    """Raises NotImplementedError."""
    _missing("create_nested_block_mask")


def flex_attention(*args: Any, **kwargs: Any) -> Any:
    """Raises NotImplementedError."""
    _missing("flex_attention")
