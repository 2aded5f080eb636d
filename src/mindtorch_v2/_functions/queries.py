"""Questions about tensors and dtypes, and process-wide settings."""

from __future__ import annotations

from typing import Any

from .. import _dtype
from .._tensor import Tensor


def is_tensor(obj: object) -> bool:
    """Whether an object is a Tensor."""
    return isinstance(obj, Tensor)


def is_storage(obj: object) -> bool:
    """Whether an object is a storage."""
    from .._storage import UntypedStorage
    from .._typed_storage import TypedStorage

    return isinstance(obj, (UntypedStorage, TypedStorage))


def is_floating_point(input: Tensor) -> bool:
    """Whether a tensor's dtype is a floating one."""
    return input._dtype.is_floating_point


def is_complex(input: Tensor) -> bool:
    """Whether a tensor's dtype is a complex one."""
    return input._dtype.is_complex


def is_conj(input: Tensor) -> bool:
    """Whether a tensor is a lazy conjugate: never, conjugates are computed."""
    return False


def is_signed(input: Tensor) -> bool:
    """Whether a tensor's dtype has negative values."""
    return input._dtype.is_signed


def is_inference(input: Tensor) -> bool:
    """Whether a tensor was made in inference mode."""
    return input._inference


def is_nonzero(input: Tensor) -> bool:
    """Whether the one element of a tensor is not zero. RuntimeError for more elements."""
    if input.numel() != 1:
        if input.numel() == 0:
            raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
    return bool(input.item())


def numel(input: Tensor) -> int:
    """The number of elements."""
    return input.numel()


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one shape."""
    return input.shape == other.shape


def get_device(input: Tensor) -> int:
    """The index of the device; -1 on the CPU."""
    return input.get_device()


def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself: conjugates are computed at once."""
    return input


resolve_neg = resolve_conj


def set_default_tensor_type(kind: Any) -> None:
    """Make the dtype of a legacy floating type the default one."""
    from .types import as_dtype

    _dtype.set_default_dtype(as_dtype(kind))


_settings = {
    "deterministic": False,
    "deterministic_warn": False,
    "matmul_precision": "highest",
    "flush_denormal": False,
    "threads": None,
    "interop_threads": 1,
    "warn_always": False,
}


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Record the wish; every CPU kernel here is deterministic anyway."""
    _settings["deterministic"] = bool(mode)
    _settings["deterministic_warn"] = bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """What `use_deterministic_algorithms` recorded."""
    return bool(_settings["deterministic"])


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether the wish was to warn only."""
    return bool(_settings["deterministic_warn"])


def set_float32_matmul_precision(precision: str) -> None:
    """Record the precision; CPU products are always in full float32."""
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"Invalid float32 matmul precision: {precision}")
    _settings["matmul_precision"] = precision


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` recorded."""
    return str(_settings["matmul_precision"])


def set_flush_denormal(mode: bool) -> bool:
    """Whether denormals can be flushed: numpy has no such switch, so False."""
    return False


def get_num_threads() -> int:
    """The number of threads of matrix products: as set, else that of the machine."""
    import os

    if _settings["threads"] is None:
        return int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))
    return int(_settings["threads"])


def set_num_threads(count: int) -> None:
    """Use at most `count` threads in matrix products, where threadpoolctl can reach numpy's BLAS."""
    if count <= 0:
        raise RuntimeError(
            "Expected nthreads > 0, but got false.  (Could this error message be improved?  If so, please report an enhancement request to PyTorch.)"
        )
    _settings["threads"] = count
    try:
        import threadpoolctl
    except ImportError:
        return
    threadpoolctl.threadpool_limits(count)


def get_num_interop_threads() -> int:
    """As set, 1 by default."""
    return int(_settings["interop_threads"])  # type: ignore[arg-type]


def set_num_interop_threads(count: int) -> None:
    """Record the number; there is no inter-operator parallelism."""
    _settings["interop_threads"] = count


def set_warn_always(mode: bool) -> None:
    """Record whether warnings repeat."""
    _settings["warn_always"] = bool(mode)


def is_warn_always_enabled() -> bool:
    """What `set_warn_always` recorded."""
    return bool(_settings["warn_always"])


def typename(obj: object) -> str:
    """The legacy type name of a tensor, or the qualified class name of anything else."""
    if isinstance(obj, Tensor):
        return obj.type()
    kind = type(obj)
    module = "" if kind.__module__ in ("builtins", None) else kind.__module__ + "."
    return module + kind.__qualname__
