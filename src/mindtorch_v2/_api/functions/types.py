"""Legacy type names: `torch.FloatTensor`, `tensor.type()`."""

from __future__ import annotations

from typing import Any

from ... import _dtype
from ..._device import placed
from ..._dtype import DTYPES
from ..._tensor import Tensor
from ..._type_names import LEGACY, type_name


class _LegacyType(type):
    """Class of `torch.FloatTensor`: tensors of its dtype on the CPU are its instances, and calling it makes one."""

    dtype: _dtype.dtype

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and type_name(instance) == f"torch.{cls.__name__}"

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        from .construct import legacy_tensor

        return legacy_tensor(cls.dtype, *args, **kwargs)

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


class _Final:
    """What legacy types are made of: they are no classes to derive from."""

    def __init_subclass__(cls) -> None:
        base = cls.__mro__[1]
        if base is not _Final:
            raise TypeError(f"type 'torch.{base.__name__}' is not an acceptable base type")


LEGACY_TYPES: dict[str, type] = {
    legacy: _LegacyType(
        legacy,
        (_Final,),
        {"dtype": DTYPES[name], "__module__": "torch", "is_cuda": False, "is_xpu": False, "is_sparse": False},
    )
    for legacy, name in LEGACY.items()
}


_tensor_classes = {cls for name, cls in LEGACY_TYPES.items() if not name.startswith("Complex")}


def tensor_type(self: Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    """The legacy type name without arguments; else the tensor in another dtype, given as a dtype or a legacy type (name)."""
    if dtype is None:
        return type_name(self)
    if dtype is Tensor:  # the default type
        return self.to(_dtype.get_default_dtype())
    kind = as_dtype(dtype)
    return self.to(kind) if isinstance(dtype, _dtype.dtype) else self.to(_place(dtype), kind)


def _place(value: Any) -> str:
    """The type of device that a legacy type or its name has."""
    parts = value.split(".") if isinstance(value, str) else ()
    return "cpu" if len(parts) != 3 else placed(parts[1]).type


def as_dtype(value: Any) -> _dtype.dtype:
    """A dtype from a dtype, a legacy type or its name. ValueError for an unknown name."""
    if isinstance(value, _dtype.dtype):
        return value
    if isinstance(value, _LegacyType):
        return value.dtype
    if isinstance(value, str):
        legacy = value.rpartition(".")[2]
        if value.startswith("torch.") and legacy in LEGACY:
            if value.count(".") == 2 and value.split(".")[1] != "cpu":
                if _place(value) != "npu":
                    raise RuntimeError(f"{value}: only types of CPUs and NPUs can be made here")
            return DTYPES[LEGACY[legacy]]
    if not isinstance(value, str | type):
        raise TypeError("dtype must be a type, str, or dtype object")
    raise ValueError(f"invalid type: '{value.__name__ if isinstance(value, type) else value}'")
