"""Conversions of Tensor: dtype, device, numpy, Python numbers and lists."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from ... import _payload
from ..._autograd import wiring as _wiring  # noqa: F401 (connects the extension)
from ..._device import device as _device, placed
from ..._dispatch import backends, below, native, ops
from ..._dispatch.convert import as_dtype
from ..._dtype import DTYPES, dtype as _dtype_class, known_to_numpy
from ..._layout import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    memory_format as _memory_format,
    preserve_format,
)
from ..._pending import exposed, settled
from ..._rules.geometry import prefers_channels_last
from ..._sparse_payload import SparsePayload
from ..._state import TLS
from ..._tensor import Tensor
from ..._warnings import warn_once
from .signatures import checked


class MetaReadError(NotImplementedError, TypeError):
    """Values of a tensor on the meta device were asked for.

    PyTorch raises a RuntimeError, a NotImplementedError (which is one) or a TypeError, so this is all of them.
    """


def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor in another dtype or on another device; itself when it is already there.

    `to(dtype)`, `to(device, dtype)`, `to(other)`; keywords non_blocking, copy, memory_format.
    """
    if len(args) == 1 and args[0].__class__ is _dtype_class and not kwargs:
        return convert(self, args[0], None)
    kind, where, copy, layout, non_blocking = parse_to(args, kwargs)
    return convert(self, kind, where, copy, layout, non_blocking)


def convert(
    self: Tensor,
    kind: Any,
    where: Any,
    copy: bool = False,
    layout: _memory_format | None = None,
    non_blocking: bool = False,
) -> Tensor:
    """`to` with its arguments sorted out."""
    if kind is None:
        kind = self._dtype
    elif where is None and layout is None and not copy:
        return self if kind is self._dtype else ops._to_copy(self, dtype=kind)
    here = self.device
    if where is not None and TLS.pipeline is not None:  # a request for the device is a request for the elements
        settled(self)
    # There is one meta device, whatever its index.
    same_device = where is None or (
        where.type == here.type and (where.index in (None, here.index) or here.type == "meta")
    )
    if (
        same_device
        and kind is self._dtype
        and not copy
        and (layout is None or layout is preserve_format or layout is _suggested_format(self))
    ):
        return self
    if same_device:
        return ops._to_copy(self, dtype=kind, memory_format=layout)
    if here.type == "meta" and TLS.observer is None:
        backends.backend_of(where)
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    if non_blocking and where.type == "cpu" and here.type == "npu":
        return _to_pinned(self, kind, layout)
    return ops._to_copy(self, dtype=kind, device=where, non_blocking=non_blocking, memory_format=layout)


def _to_pinned(self: Tensor, kind: Any, layout: _memory_format | None) -> Tensor:
    """A copy in pinned memory of the host, which is not waited for: as PyTorch's, it holds the elements once the stream has passed."""
    like = ops.empty_like(
        self.detach(), dtype=kind, device=_device("cpu"), pin_memory=True, memory_format=layout or preserve_format
    )
    return ops.copy_(like, self, True)


def _suggested_format(self: Tensor) -> _memory_format:
    """The format that the strides speak for; contiguous where they speak for none."""
    if isinstance(self._payload, SparsePayload):
        return contiguous_format
    if not prefers_channels_last(self._payload.shape, _payload.stride_of(self._payload)):
        return contiguous_format
    return channels_last if self._payload.ndim == 4 else channels_last_3d


_SIGNATURES_OF_TO = (
    "(torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, "
    "torch.memory_format memory_format = None)",
    "(torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)",
    "(Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)",
)


def _refused(args: tuple, kwargs: dict) -> TypeError:
    from ..._dispatch.refusals import combination

    return TypeError(combination("to", _SIGNATURES_OF_TO, args, kwargs))


def parse_to(args: tuple, kwargs: dict) -> tuple:
    """(dtype, device, copy, memory_format, non_blocking) of a call of `to`. TypeError for what `to` does not take."""
    named = dict(kwargs)
    kind = kwargs.pop("dtype", None)
    where = kwargs.pop("device", None)
    other = kwargs.pop("other", None)
    copy = kwargs.pop("copy", False)
    non_blocking = kwargs.pop("non_blocking", None)
    layout = kwargs.pop("memory_format", None)
    if kwargs:
        raise _refused(args, named)
    rest = list(args)
    if rest:
        first = rest.pop(0)
        if isinstance(first, Tensor):
            other = first
        elif isinstance(first, type | _dtype_class):
            kind = first
        elif (
            first is None
            or isinstance(first, (str, _device))
            or (isinstance(first, int) and not isinstance(first, bool))
        ):
            where = first
            if rest and (rest[0] is None or isinstance(rest[0], type | _dtype_class)):
                kind = rest.pop(0)
        else:
            raise _refused(args, named)
    if kind is not None:
        kind = as_dtype(kind)
        if kind is None:
            raise _refused(args, named)
    if not all(value is None or isinstance(value, bool) for value in rest[:2]):
        raise _refused(args, named)
    if rest:
        non_blocking = rest.pop(0)
    if rest:
        copy = rest.pop(0)
    if rest:
        layout = rest.pop(0)
    if other is not None:
        kind, where = other._dtype, other.device
    if not (
        (non_blocking is None or isinstance(non_blocking, bool))
        and isinstance(copy, bool)
        and (layout is None or isinstance(layout, _memory_format))
        and (where is None or isinstance(where, (str, int, _device)))
    ):
        raise _refused(args, named)
    if where is not None:
        where = placed(where)
    return kind, where, copy, layout, bool(non_blocking)


def _caster(name: str) -> Any:
    kind = DTYPES[name]

    def cast(self: Tensor, memory_format: _memory_format | None = None) -> Tensor:
        return convert(self, kind, None, layout=memory_format)

    cast.__doc__ = f"The tensor as {name}."
    return cast


def _mover(kind: str) -> Any:
    def move(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
        if isinstance(device, int):
            device = f"{kind}:{device}"
        return convert(self, None, placed(device or kind), layout=memory_format, non_blocking=non_blocking)

    move.__doc__ = f"The tensor on a device of type {kind}."
    return move


def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor on the CPU."""
    return convert(self, None, _device("cpu"), layout=memory_format)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype and on the device of `other`."""
    if not isinstance(other, Tensor):
        raise TypeError(f"type_as(): argument 'other' (position 1) must be Tensor, not {type(other).__name__}")
    return convert(self, other._dtype, other.device)


def numpy(self: Tensor, *, force: bool = False) -> ndarray:
    """The values as an ndarray that shares the tensor's memory.

    force: detach, and copy to the CPU, where that is needed. RuntimeError when the tensor requires grad in grad mode, TypeError for dtypes that numpy lacks.
    """
    if force:
        self = self.detach().cpu()
    if self._node is not None and TLS.grad_enabled and self.requires_grad:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    data = _host_array(self, "numpy()")
    exposed(self)
    if data.dtype.num >= 256 or self._dtype.np is None:  # 256 and above: types of other packages
        raise TypeError(f"Got unsupported ScalarType {self._dtype.cpp}")
    return data.view()  # an object of its own: the user may give it another shape


def _host_array(self: Tensor, what: str) -> ndarray:
    if TLS.exporting is not None:
        TLS.exporting.read(self, what)
    data = settled(self)
    if data.__class__ is ndarray:
        return data
    if isinstance(data, SparsePayload):
        if what == "numpy()":
            raise TypeError(f"can't convert {data.name} layout tensor to numpy. Use Tensor.to_dense() first.")
        if what not in ("item()", "__bool__()"):
            raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")
        return settled(self.to_dense()).reshape(())
    if self.device.type == "meta":
        known = None if TLS.observer is None else TLS.observer.values(self)
        if known is not None:
            return known
        if TLS.observer is not None:
            raise MetaReadError(
                f"Tensor.{what}: the program asks for values that a plan does not know. It knows what is computed from constants and from "
                "small integral tensors that are not on meta."
            )
        if what == "numpy()":
            raise MetaReadError(
                "can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
            )
        if what == "tolist()":
            raise MetaReadError("Cannot copy out of meta tensor; no data!")
        if what == "__bool__()":
            raise MetaReadError("Tensor.item() cannot be called on meta tensors (for Tensor.__bool__)")
        raise MetaReadError(f"Tensor.{what} cannot be called on meta tensors")
    if what != "numpy()":
        return backends.backend_of(self.device).to_host(data)
    raise TypeError(
        f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
    )


def __array__(self: Tensor, dtype: Any = None, copy: bool | None = None) -> ndarray:
    """numpy's way to ask for an array."""
    array = self.numpy()
    if dtype is not None and array.dtype != np.dtype(dtype):
        if copy is False:
            raise ValueError("Unable to avoid copy while creating an array as requested.")
        return array.astype(dtype)
    return array.copy() if copy else array


def item(self: Tensor) -> Any:
    """The value of a tensor of one element as a Python number. RuntimeError for more elements, and on the meta device."""
    data = self._payload
    if data.size != 1:
        raise RuntimeError(f"a Tensor with {data.size} elements cannot be converted to Scalar")
    if data.__class__ is _payload.WrapperPayload and (read := below.read(self)) is not NotImplemented:
        return read
    data = _host_array(self, "item()")
    value = data.item()
    return value if value.__class__ in _NATIVE else known_to_numpy(data).item()


_NATIVE = (float, int, bool, complex)


def tolist(self: Tensor) -> Any:
    """The values as nested lists of Python numbers; a number for a 0-dim tensor."""
    return known_to_numpy(_host_array(self, "tolist()")).tolist()


def __bool__(self: Tensor) -> bool:
    size = self._payload.size
    if size != 1:
        if size == 0:
            raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
    if self._payload.__class__ is not _payload.WrapperPayload:
        _host_array(self, "__bool__()")
    return bool(item(self))


def is_nonzero(self: Tensor) -> bool:
    """Whether the one element is not zero. RuntimeError for more elements, and on the meta device."""
    return bool(self)


def _number(convert_to: Any) -> Any:
    def number(self: Tensor) -> Any:
        if self._payload.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        if TLS.grad_enabled and self.requires_grad:
            warn_once(
                "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\nConsider using tensor.detach() first."
            )
        value = item(self)
        if value.__class__ is complex and convert_to is not complex:
            target = "int64_t" if convert_to is int else "double"
            if value.imag:
                raise RuntimeError(f"value cannot be converted to type {target} without overflow")
            value = value.real
        return convert_to(value)

    return number


def __invert__(self: Tensor) -> Tensor:
    if self._dtype.category > 1:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return ops.bitwise_not(self)


def __index__(self: Tensor) -> int:
    if self._dtype.category > 1 or self._payload.size != 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(item(self))


CASTS = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "int": "int32",
    "long": "int64",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
    "bool": "bool",
    "chalf": "complex32",
    "cfloat": "complex64",
    "cdouble": "complex128",
}


def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """What `load_state_dict` puts in the place of this tensor, where modules swap parameters: a fresh tensor."""
    return other.detach() if assign else self.copy_(other).detach()


def new_tensor(
    self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **_: Any
) -> Tensor:
    """A tensor with the given data, by default in this one's dtype and on its device."""
    from ..functions.construct import dtype_argument, tensor

    kind = dtype_argument("new_tensor", dtype) or self._dtype
    return tensor(data, dtype=kind, device=device or self.device, requires_grad=requires_grad)


def new(self: Tensor, *args: Any, device: Any = None, **kwargs: Any) -> Tensor:
    """The legacy constructor, in this tensor's dtype."""
    from ..functions.construct import legacy_tensor

    if self.is_sparse:
        from ..functions.sparse import legacy_sparse_tensor

        return legacy_sparse_tensor(self._dtype, args, device or self.device)
    return legacy_tensor(self._dtype, *args, device=device, like=self, **kwargs)


def __dlpack__(
    self: Tensor,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[Any, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """numpy's DLPack capsule over the tensor's memory, or with `copy` over one of its own.

    BufferError for a tensor on the meta device, TypeError and AssertionError for a stream, which the CPU has none of.
    """
    if stream is not None and type(stream) is not int:
        raise TypeError("stream must be ``int`` or ``none``")
    if stream is not None and self.device.type == "cpu":
        raise AssertionError("stream should be None on cpu.")
    if self.device.type == "meta":
        raise BufferError("Cannot pack tensors on meta")
    from ..functions.exchange import exported

    return exported(self, max_version=max_version, dl_device=dl_device, copy=copy)


def __dlpack_device__(self: Tensor) -> tuple:
    """DLPack's (device type, index). ValueError for a tensor on the meta device."""
    if self.device.type == "meta":
        raise ValueError("Unknown device type meta for Dlpack")
    from ..functions.exchange import DLDeviceType

    return (DLDeviceType.kDLCPU, 0)


MEMBERS: dict[str, Any] = {
    **{name: _caster(kind) for name, kind in CASTS.items()},
    "to": to,
    "cpu": cpu,
    "cuda": _mover("cuda"),
    "npu": _mover("npu"),
    "xpu": _mover("xpu"),
    "ipu": _mover("ipu"),
    "mtia": _mover("mtia"),
    "mps": _mover("mps"),
    "type_as": type_as,
    "numpy": numpy,
    "__array__": __array__,
    "__array_priority__": 1000,
    "item": item,
    "tolist": tolist,
    "__bool__": __bool__,
    "is_nonzero": is_nonzero,
    "__int__": _number(int),
    "__float__": _number(float),
    "__complex__": _number(complex),
    "__index__": __index__,
    "__invert__": __invert__,
    "module_load": module_load,
    "new_tensor": new_tensor,
    "new": new,
    "__dlpack__": __dlpack__,
    "__dlpack_device__": __dlpack_device__,
    "_to_dtype": lambda self, kind: convert(self, kind, None),
}
ATTACHED = native.members(Tensor, checked(MEMBERS))
native.connect_casts(ops._to_copy, {name: DTYPES[kind] for name, kind in CASTS.items()})
