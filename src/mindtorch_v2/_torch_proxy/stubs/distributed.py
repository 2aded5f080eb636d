"""`torch.distributed` in a process whose process group is never initialised."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from mindtorch_v2._torch_proxy.placeholders import ImportOnly

_BECAUSE = "mindtorch_v2 runs in one process"
_DEFAULT_BACKENDS = {"cpu": "gloo", "cuda": "nccl", "npu": "hccl", "xpu": "xccl"}


class Backend(metaclass=ImportOnly):
    """Import only: a way to exchange tensors between processes. Its names of known ones can be looked at."""

    _because = _BECAUSE
    _error = NotImplementedError

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"
    backend_list: ClassVar[list[str]] = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI]
    default_device_backend_map: ClassVar[dict[str, str]] = dict(_DEFAULT_BACKENDS)


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


class _ReduceOperators:
    """The former names of `ReduceOp`'s members."""

    def __getattr__(self, name: str) -> Any:
        from torch.distributed import ReduceOp

        return getattr(ReduceOp, name)


reduce_op = _ReduceOperators()
Backend.__module__ = "torch.distributed"
FullyShardedDataParallel.__module__ = "torch.distributed.fsdp"


class GroupMember:
    """Membership in a group: there is none."""

    WORLD = None
    NON_GROUP_MEMBER = -100


class group:
    """The default group: there is none."""

    WORLD = None


def _not_initialised() -> NoReturn:
    raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")


def get_rank(group: Any = None) -> int:
    """Raises ValueError: no process group has been initialised."""
    _not_initialised()


def get_world_size(group: Any = None) -> int:
    """Raises ValueError: no process group has been initialised."""
    _not_initialised()


def get_backend(group: Any = None) -> str:
    """Raises ValueError: no process group has been initialised."""
    _not_initialised()


def get_backend_config(group: Any = None) -> str:
    """Raises ValueError: no process group has been initialised."""
    _not_initialised()


def get_process_group_ranks(group: Any) -> list[int]:
    """Raises ValueError: no process group has been initialised."""
    _not_initialised()


def get_global_rank(group: Any, group_rank: int) -> int:
    """Raises ValueError: no process group has been initialised."""
    _not_initialised()


def get_group_rank(group: Any, global_rank: int) -> int:
    """Raises ValueError: no process group has been initialised."""
    _not_initialised()


def get_default_backend_for_device(device: Any) -> str:
    """The name of the backend that programs use for a device type.

    Raises:
        ValueError: for an unknown device type.
    """
    kind = device if isinstance(device, str) else device.type
    if kind not in _DEFAULT_BACKENDS:
        raise ValueError(f"Default backend not registered for device : {device}")
    return _DEFAULT_BACKENDS[kind]
