"""Names of the extension of torch that stand for operators, and what parses arguments of `Module.to`."""

from __future__ import annotations

from typing import Any

import mindtorch_v2

__all__ = ["_VariableFunctionsClass", "_parse_to"]


class _Functions(type):
    def __getattr__(cls, name: str) -> Any:
        return getattr(mindtorch_v2, name)


class _VariableFunctionsClass(metaclass=_Functions):
    """What PyTorch's pickles take functions of torch from, as its attributes."""

    def __new__(cls) -> Any:
        raise TypeError(f"cannot create '{cls.__qualname__}' instances")


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Read the arguments of `Tensor.to` as `(device, dtype, non_blocking, memory_format)`.

    Raises:
        TypeError: for an argument that is none of them.
    """
    memory_format = kwargs.pop("memory_format", None)
    names = ("tensor", "device", "dtype", "non_blocking", "copy")
    unknown = [name for name in kwargs if name not in names]
    if unknown:
        raise TypeError(f"to() got an unexpected keyword argument '{unknown[0]}'")
    device, dtype = kwargs.get("device"), kwargs.get("dtype")
    non_blocking = kwargs.get("non_blocking", False)
    rest = list(args)
    if "tensor" in kwargs:
        rest.insert(0, kwargs["tensor"])
    if rest and isinstance(rest[0], mindtorch_v2.Tensor):
        tensor = rest.pop(0)
        device, dtype = tensor.device, tensor.dtype
    elif (
        rest
        and (rest[0] is None or isinstance(rest[0], mindtorch_v2.device | str | int))
        and not isinstance(rest[0], bool)
    ):
        device = rest.pop(0)
        if rest and (rest[0] is None or isinstance(rest[0], mindtorch_v2.dtype)):
            dtype = rest.pop(0)
    elif rest and isinstance(rest[0], mindtorch_v2.dtype):
        dtype = rest.pop(0)
    if rest and isinstance(rest[0], bool):
        non_blocking = rest.pop(0)
        if rest and isinstance(rest[0], bool):
            rest.pop(0)  # copy, which modules have no use for
    if rest:
        raise TypeError(f"to() received an invalid combination of arguments: {rest[0]!r} was not expected")
    return None if device is None else mindtorch_v2.device(device), dtype, non_blocking, memory_format
