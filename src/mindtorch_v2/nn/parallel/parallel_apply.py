"""Several modules on their own inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..modules.module import Module

__all__ = ["parallel_apply"]


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """What each module gives for its input (a tuple is its arguments), one after the other: there is one device.

    AssertionError when the lengths differ.
    """
    if len(modules) != len(inputs):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}")
    keywords = kwargs_tup if kwargs_tup is not None else [{}] * len(modules)
    for other, words in ((keywords, "kwargs_tup"), (devices, "devices")):
        if other is not None and len(other) != len(modules):
            raise AssertionError(
                f"The number of modules {len(modules)} is not equal to the number of {words} {len(other)}"
            )
    return [
        module(*(value if isinstance(value, (list, tuple)) else (value,)), **own)
        for module, value, own in zip(modules, inputs, keywords, strict=True)
    ]
