"""Python's protocols on Tensor: printing, hashing, copying, pickling, iteration, numpy's dispatch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ... import _device, _dtype, _payload
from ..._autograd import wiring as _wiring  # noqa: F401 (connects the extension)
from ..._dispatch import native, ops
from ..._dispatch.overrides import default_torch_function
from ..._printing import tensor_repr
from ..._serialization import rebuild
from ..._storage import MetaStorage
from ..._tensor import Tensor, alias_as
from .signatures import checked


def __repr__(self: Tensor, *, tensor_contents: str | None = None) -> str:
    return tensor_repr(self, tensor_contents=tensor_contents)


def __format__(self: Tensor, spec: str) -> str:
    if self._payload.ndim == 0 and self.device.type != "meta" and type(self) is Tensor:
        return format(self.item(), spec)
    return object.__format__(self, spec)


def __hash__(self: Tensor) -> int:
    return id(self)


def __len__(self: Tensor) -> int:
    if self._payload.ndim == 0:
        raise TypeError("len() of a 0-d tensor")
    return self._payload.shape[0]


def __iter__(self: Tensor) -> Iterator[Tensor]:
    if self.dim() == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(ops.unbind(self, 0))


def __contains__(self: Tensor, element: Any) -> bool:
    if isinstance(element, (Tensor, int, float, complex, bool)):
        return bool((element == self).any().item())
    raise RuntimeError(
        "Tensor.__contains__ only supports Tensor or scalar, but you passed in a " + str(type(element)) + "."
    )


def __reversed__(self: Tensor) -> Tensor:
    return self if self.dim() == 0 else ops.flip(self, (0,))


def __deepcopy__(self: Tensor, memo: dict) -> Tensor:
    return rebuild.deepcopy_tensor(self, memo)


def __reduce_ex__(self: Tensor, protocol: int) -> tuple:
    return rebuild.reduce_tensor(self)


def __setstate__(self: Tensor, state: Any) -> None:
    self.__dict__.update(state)


def __dir__(self: Tensor) -> list[str]:
    return sorted(set(object.__dir__(self)))


def as_subclass(self: Tensor, cls: type) -> Any:
    """The same tensor, with its history, as an instance of a subclass."""
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not issubclass(cls, Tensor):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your class inherits from Tensor."
        )
    made = alias_as(cls, self)
    made._node = self._node
    made._base = self._base
    if self._nr:
        made._nr = self._nr
    if self._epoch:
        made._epoch = self._epoch
    return made


def _make_subclass(cls: type, data: Tensor, require_grad: bool = False, **kwargs: Any) -> Any:
    """An instance of a subclass over a tensor's payload."""
    return alias_as(cls, data, require_grad)


def _make_wrapper_subclass(
    cls: type,
    size: Any,
    strides: Any = None,
    storage_offset: int | None = None,
    memory_format: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    dispatch_sizes_strides_policy: str | None = None,
    **kwargs: Any,
) -> Any:
    """An instance of a subclass that shows a shape, dtype and device and has no elements: its `__torch_dispatch__` knows where they are."""
    shape = tuple(size)
    stride = _payload.contiguous_strides(shape) if strides is None else tuple(strides)
    kind = _dtype.get_default_dtype() if dtype is None else dtype
    where = _device.CPU if device is None else _device.placed(device)
    made = object.__new__(cls)
    made._payload = _payload.WrapperPayload(
        shape, stride, kind, storage_offset or 0, MetaStorage(_payload.extent(shape, stride) * kind.itemsize), where
    )
    made._dtype = kind
    made._node = made._base = made._rare = None
    if requires_grad:
        made.requires_grad_(True)
    return made


def __array_wrap__(self: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Tensor:
    from ..functions.construct import from_numpy

    return from_numpy(np.asarray(array))


def __torch_function__(cls: type, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
    """Subclasses override this to take over operations; the inherited one gives the plain result as the subclass."""
    return default_torch_function(cls, func, types, args, kwargs)


MEMBERS: dict[str, Any] = {
    "__repr__": __repr__,
    "__str__": lambda self: repr(self),
    "__format__": __format__,
    "__hash__": __hash__,
    "__len__": __len__,
    "__iter__": __iter__,
    "__contains__": __contains__,
    "__reversed__": __reversed__,
    "__deepcopy__": __deepcopy__,
    "__reduce_ex__": __reduce_ex__,
    "__setstate__": __setstate__,
    "__dir__": __dir__,
    "as_subclass": as_subclass,
    "_make_subclass": staticmethod(_make_subclass),
    "_make_wrapper_subclass": staticmethod(_make_wrapper_subclass),
    "__array_wrap__": __array_wrap__,
    "__torch_function__": classmethod(__torch_function__),
}
ATTACHED = native.members(Tensor, checked(MEMBERS))
