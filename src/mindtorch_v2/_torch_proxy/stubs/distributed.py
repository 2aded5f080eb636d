"""`torch.distributed` in a process whose process group is never initialised."""

from __future__ import annotations

from typing import Any, NoReturn

_DEFAULT_BACKENDS = {"cpu": "gloo", "cuda": "nccl", "npu": "hccl", "xpu": "xccl"}


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
