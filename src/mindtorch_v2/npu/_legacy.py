"""Former names of tensors and storages on NPUs by their dtype: `torch.npu.FloatTensor`, `torch.npu.FloatStorage`."""

from __future__ import annotations

from typing import Any

from .._dtype import DTYPES
from .._tensor import Tensor
from .._type_names import LEGACY, type_name
from .._typed_storage import TypedStorage


class _NpuTensorType(type):
    """Class of `torch.npu.FloatTensor`: tensors of its dtype on an NPU are its instances, and calling it makes one."""

    dtype: Any

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and type_name(instance) == f"torch.npu.{cls.__name__}"

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        from .._api.functions.construct import legacy_tensor

        return legacy_tensor(cls.dtype, *args, **kwargs).to("npu")

    def __repr__(cls) -> str:
        return f"<class 'torch.npu.{cls.__name__}'>"


class _NpuStorageType(type):
    """Class of `torch.npu.FloatStorage`, of storages likewise."""

    dtype: Any

    def __instancecheck__(cls, instance: object) -> bool:
        return type(instance) is TypedStorage and instance.dtype is cls.dtype and instance.device.type == "npu"

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return TypedStorage(*args, dtype=cls.dtype, device="npu", **kwargs)

    def __repr__(cls) -> str:
        return f"<class 'torch.npu.{cls.__name__}'>"


_MEMBERS = {"__module__": "torch.npu", "is_npu": True, "is_cuda": False, "is_sparse": False}
_OWN = {name: kind for name, kind in LEGACY.items() if not name.startswith("Complex")}

TYPES: dict[str, type] = {
    **{name: _NpuTensorType(name, (), {"dtype": DTYPES[kind], **_MEMBERS}) for name, kind in _OWN.items()},
    **{
        (short := name.replace("Tensor", "Storage")): _NpuStorageType(short, (), {"dtype": DTYPES[kind], **_MEMBERS})
        for name, kind in _OWN.items()
    },
}
"""By name."""
