"""Settings of `torch.backends`: kept, and without effect."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

_sdp = {"flash": True, "math": True, "mem_efficient": True, "cudnn": True}


class _MatmulSettings:
    """What programs set for products on CUDA devices."""

    def __init__(self) -> None:
        self.allow_tf32 = False
        self.allow_fp16_reduced_precision_reduction = True
        self.allow_bf16_reduced_precision_reduction = True
        self.allow_fp16_accumulation = False
        self.fp32_precision = "none"


matmul = _MatmulSettings()


def disable_global_flags() -> None:
    """Nothing to freeze."""


@contextlib.contextmanager
def __allow_nonbracketed_mutation() -> Iterator[None]:
    """Nothing is frozen, so nothing is to be allowed."""
    yield


def flags_frozen() -> bool:
    """False."""
    return False


def set_flags(
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _benchmark_limit: int | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str = "none",
) -> tuple[Any, ...]:
    """Set the settings of `torch.backends.cudnn` that are given; return the former ones."""
    from torch.backends import cudnn

    names = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")
    values = (_enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32)
    former = tuple(getattr(cudnn, name) for name in names)
    for name, value in zip(names, values, strict=True):
        if value is not None:
            setattr(cudnn, name, value)
    return former


@contextlib.contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> Iterator[None]:
    """Settings of `torch.backends.cudnn` for a block."""
    former = set_flags(enabled, benchmark, benchmark_limit, deterministic, allow_tf32)
    try:
        yield
    finally:
        set_flags(*former)


def flash_sdp_enabled() -> bool:
    """Whether flash attention is allowed."""
    return _sdp["flash"]


def enable_flash_sdp(enabled: bool) -> None:
    """Allow flash attention or not; the CPU has one implementation anyway."""
    _sdp["flash"] = bool(enabled)


def math_sdp_enabled() -> bool:
    """Whether plain attention is allowed."""
    return _sdp["math"]


def enable_math_sdp(enabled: bool) -> None:
    """Allow plain attention or not; the CPU has one implementation anyway."""
    _sdp["math"] = bool(enabled)


def mem_efficient_sdp_enabled() -> bool:
    """Whether memory-efficient attention is allowed."""
    return _sdp["mem_efficient"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Allow memory-efficient attention or not; the CPU has one implementation anyway."""
    _sdp["mem_efficient"] = bool(enabled)


def cudnn_sdp_enabled() -> bool:
    """Whether cuDNN attention is allowed."""
    return _sdp["cudnn"]


def enable_cudnn_sdp(enabled: bool) -> None:
    """Allow cuDNN attention or not; the CPU has one implementation anyway."""
    _sdp["cudnn"] = bool(enabled)


@contextlib.contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[None]:
    """Allow kinds of attention for a block."""
    former = dict(_sdp)
    _sdp.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield
    finally:
        _sdp.update(former)
