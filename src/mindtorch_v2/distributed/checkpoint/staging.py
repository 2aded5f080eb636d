"""What copies a state before a thread writes it: `async_save(..., async_stager=...)`."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import mindtorch_v2 as torch

from ...utils._pytree import tree_map

__all__ = ["AsyncStager", "BlockingAsyncStager", "DefaultStager", "StagingOptions"]


@runtime_checkable
class AsyncStager(Protocol):
    """Copies a state dict, so that the program may change its own while the copy is written."""

    _synchronize_after_execute: bool = True

    @property
    def should_synchronize_after_execute(self) -> bool:
        """Whether `async_save` calls `synchronize_staging` itself."""
        return self._synchronize_after_execute

    def stage(self, state_dict: dict[str, Any]) -> Any:
        """The copy, or a future of it."""
        raise NotImplementedError(f"{self.__class__.__name__} must implement stage method")

    def synchronize_staging(self) -> None:
        """Return when the copy is complete."""

    def close(self) -> None:
        """Free what it has."""


@dataclass
class StagingOptions:
    """How a state is copied. Memory of CPUs is copied alike whatever is said of pinned and shared memory and of copies that do not block.

    use_async_staging: a thread copies, and `stage` gives a future.
    """

    use_pinned_memory: bool = True
    use_shared_memory: bool = True
    use_async_staging: bool = True
    use_non_blocking_copy: bool = True


def _copy(state_dict: dict[str, Any]) -> dict[str, Any]:
    def one(value: Any) -> Any:
        return value.detach().clone() if isinstance(value, torch.Tensor) else value

    return tree_map(one, state_dict)


class DefaultStager(AsyncStager):
    """Copies tensors, DTensors among them. AssertionError for copies that do not block, without an accelerator."""

    def __init__(self, config: StagingOptions | None = None) -> None:
        self._config = StagingOptions() if config is None else config
        if self._config.use_non_blocking_copy and not torch.accelerator.is_available():
            raise AssertionError("Non-blocking copy requires that the current accelerator is available.")
        self._pool = ThreadPoolExecutor(max_workers=1) if self._config.use_async_staging else None
        self._staging: Future | None = None

    def stage(self, state_dict: dict[str, Any], **kwargs: Any) -> Any:
        """The copy, or a future of it."""
        if self._pool is None:
            return _copy(state_dict)
        self._staging = self._pool.submit(_copy, state_dict)
        return self._staging

    def synchronize_staging(self) -> None:
        """Return when the copy is complete."""
        if self._staging is not None:
            self._staging.result()

    def close(self) -> None:
        """End the thread."""
        if self._pool is not None:
            self._pool.shutdown(wait=True)


class BlockingAsyncStager(AsyncStager):
    """Copies at once. cache_staged_state_dict, type_check: as PyTorch has them; every copy is a new one."""

    _synchronize_after_execute = False

    def __init__(self, cache_staged_state_dict: bool = False, type_check: bool = False) -> None:
        self.cache_staged_state_dict, self.type_check = cache_staged_state_dict, type_check

    def stage(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        """The copy."""
        return _copy(state_dict)
