"""Neural networks: parameters, modules and functions. What ``torch.nn`` has."""

from __future__ import annotations

from typing import Any

from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter  # isort: skip
from . import attention, functional, init, modules, parallel, utils
from .modules import *  # noqa: F403
from .parallel import DataParallel

__all__ = [
    "Buffer",
    "DataParallel",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "attention",
    "factory_kwargs",
    "functional",
    "init",
    "modules",
    "parallel",
    "utils",
]
__all__ += modules.__all__


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """The keywords ``device``, ``dtype`` and ``memory_format`` out of ``kwargs`` and its entry ``factory_kwargs``.

    Raises TypeError for others and for one that is given twice.
    """
    if kwargs is None:
        return {}
    names = {"device", "dtype", "memory_format"}
    unexpected = kwargs.keys() - names - {"factory_kwargs"}
    if unexpected:
        raise TypeError(f"unexpected kwargs {unexpected}")
    found = dict(kwargs.get("factory_kwargs", {}))
    for name in names:
        if name in kwargs:
            if name in found:
                raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
            found[name] = kwargs[name]
    return found
