"""What copies a state before a thread writes it: `async_save(..., async_stager=...)`."""

from __future__ import annotations

import copy
import threading
from concurrent.futures import Future
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


def _copied(state_dict: dict[str, Any]) -> dict[str, Any]:
    def one(value: Any) -> Any:
        return value.detach().clone() if isinstance(value, torch.Tensor) else copy.deepcopy(value)

    return tree_map(one, state_dict)


class DefaultStager(AsyncStager):
    """Copies tensors, DTensors among them, and all other values. AssertionError for copies that do not block, without an accelerator."""

    def __init__(self, config: StagingOptions | None = None) -> None:
        self._config = StagingOptions() if config is None else config
        if self._config.use_non_blocking_copy and not torch.accelerator.is_available():
            raise AssertionError("Non-blocking copy requires that the current accelerator is available.")
        self._staging: Future | None = None
        self._closed = False

    def stage(self, state_dict: dict[str, Any], **kwargs: Any) -> Any:
        """The copy, or a future of it. RuntimeError for a future of one that is closed."""
        if not self._config.use_async_staging:
            return _copied(state_dict)
        if self._closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        before, made = self._staging, Future[dict[str, Any]]()

        def work() -> None:
            if before is not None:
                before.exception()  # one copy after the other
            try:
                made.set_result(_copied(state_dict))
            except Exception as error:  # noqa: BLE001 (raised where the copy is asked for)
                made.set_exception(error)

        # A thread for each copy: one that waits for the next would be missing in a forked child.
        threading.Thread(target=work, name="staging", daemon=False).start()
        self._staging = made
        return made

    def synchronize_staging(self) -> None:
        """Return when the copy is complete."""
        if self._staging is not None:
            self._staging.result()

    def close(self) -> None:
        """Wait for the last copy."""
        self._closed = True
        if self._staging is not None:
            self._staging.exception()


class BlockingAsyncStager(AsyncStager):
    """Copies at once. cache_staged_state_dict, type_check: as PyTorch has them; every copy is a new one."""

    _synchronize_after_execute = False

    def __init__(self, cache_staged_state_dict: bool = False, type_check: bool = False) -> None:
        self.cache_staged_state_dict, self.type_check = cache_staged_state_dict, type_check

    def stage(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        """The copy."""
        return _copied(state_dict)
