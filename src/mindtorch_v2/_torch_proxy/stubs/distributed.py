"""`torch.distributed.fsdp` as far as it is classes that programs test against."""

from __future__ import annotations

from typing import Any, NoReturn

from mindtorch_v2._torch_proxy.placeholders import ImportOnly

_BECAUSE = "parameters lie on one process as a whole"


class FullyShardedDataParallel(metaclass=ImportOnly):
    """Import only: a module whose parameters lie on several processes."""

    _because = _BECAUSE
    _error = NotImplementedError

    @staticmethod
    def summon_full_params(module: Any, *args: Any, **kwargs: Any) -> NoReturn:
        """Raises NotImplementedError: there is no such module."""
        raise NotImplementedError(f"FullyShardedDataParallel.summon_full_params: {_BECAUSE}")

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> NoReturn:
        """Raises NotImplementedError: there is no such module."""
        raise NotImplementedError(f"FullyShardedDataParallel.clip_grad_norm_: {_BECAUSE}")


FullyShardedDataParallel.__module__ = "torch.distributed.fsdp"
