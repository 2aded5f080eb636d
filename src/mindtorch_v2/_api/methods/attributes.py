"""Attributes of Tensor that say what it is: layout, device flags, storage, names."""

from __future__ import annotations

from math import prod
from typing import Any

from numpy import ndarray

from ... import _payload
from ..._autograd import wiring as _wiring
from ..._autograd.node import AccumulateGrad
from ..._determinism import SETTINGS as _determinism, largest
from ..._device import placed
from ..._dispatch import backends, native
from ..._dispatch.sparse import unavailable
from ..._layout import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    memory_format as _memory_format,
    preserve_format,
    strided,
)
from ..._memory import refusal
from ..._pending import exposed, settled
from ..._pinned import is_pinned as _is_pinned
from ..._rules.geometry import channels_last_strides, prefers_channels_last
from ..._sparse_payload import CompressedPayload, CooPayload, CsrPayload, SparsePayload
from ..._state import TLS
from ..._storage import UntypedStorage, address, storage_of, strided_view, view_of_root
from ..._tensor import Tensor, bump_version, wrap
from ..._typed_storage import LEGACY_STORAGES, TypedStorage, legacy_name
from ..functions import types
from .signatures import checked


def _flag(device_type: str) -> property:
    return property(lambda self: self.device.type == device_type)


def layout(self: Tensor) -> Any:
    """How the elements are held."""
    data = self._payload
    return data.layout if isinstance(data, SparsePayload) else strided


def is_contiguous(self: Tensor, memory_format: _memory_format = contiguous_format) -> bool:
    """Whether the elements lie in memory without gaps in the order of `memory_format`."""
    data = self._payload
    if memory_format is contiguous_format and data.__class__ is ndarray:
        return data.flags.c_contiguous
    if isinstance(data, SparsePayload):
        if isinstance(data, CompressedPayload):
            raise RuntimeError(f"Sparse {data.key.upper()} tensors do not have is_contiguous")
        return False
    shape = data.shape
    stride = _payload.stride_of(data)
    order = range(len(shape) - 1, -1, -1)
    if memory_format is channels_last:
        if len(shape) != 4:
            return False
        order = (1, 3, 2, 0)
    elif memory_format is channels_last_3d:
        if len(shape) != 5:
            return False
        order = (1, 4, 3, 2, 0)
    elif memory_format is preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    if 0 in shape:
        return True
    expected = 1
    for dim in order:
        if shape[dim] != 1:
            if stride[dim] != expected:
                return False
            expected *= shape[dim]
    return True


def data_ptr(self: Tensor) -> int:
    """The address of the first element; 0 on the meta device and for tensors without elements."""
    data = exposed(self)
    if isinstance(data, SparsePayload):
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")
    if data.__class__ is ndarray:
        return address(data) if data.size else 0
    base = data.storage.data_ptr()
    return base + data.offset * data.dtype.itemsize if base and data.size else 0


def untyped_storage(self: Tensor) -> Any:
    """The bytes behind this tensor and its views: one object for as long as somebody holds it."""
    return storage_of(exposed(self))


def _storage_object(self: Tensor) -> TypedStorage:
    return TypedStorage(wrap_storage=untyped_storage(self), dtype=self._dtype, _internal=True)


def storage_type(self: Tensor) -> type:
    """The class of `Tensor.storage()` by the name of long ago: `FloatStorage`. KeyError for dtypes that came later."""
    return LEGACY_STORAGES[legacy_name(self._dtype) or self._dtype.name]


def _typed_storage(self: Tensor) -> TypedStorage:
    return _storage_object(self)


def is_floating_point(self: Tensor) -> bool:
    """Whether the dtype is a floating one."""
    return self._dtype.is_floating_point


def is_complex(self: Tensor) -> bool:
    """Whether the dtype is a complex one."""
    return self._dtype.is_complex


def is_signed(self: Tensor) -> bool:
    """Whether the dtype has negative values."""
    return self._dtype.is_signed


def get_device(self: Tensor) -> int:
    """The index of the device; -1 on the CPU."""
    return -1 if self.device.index is None else self.device.index


def _same(self: Tensor) -> Tensor:
    return self


def _nothing(self: Tensor) -> None:
    """Weak references see a tensor as long as it lives, so that nothing is to be mended."""


def _false(self: Tensor) -> bool:
    return False


def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Whether the storage lies in memory that is pinned for copies to a device."""
    if isinstance(self._payload, SparsePayload):
        return False
    return self.device.type == "cpu" and _is_pinned(settled(self))


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """The tensor in pinned memory: itself, or a copy without history. RuntimeError for a tensor that is not on the CPU."""
    if device is not None:
        placed(device)
    if self.device.type != "cpu":
        raise RuntimeError(f"cannot pin '{types.type_name(self)}' only dense CPU tensors can be pinned")
    if _is_pinned(settled(self)):
        return self
    from ..._backends.npu.pinned import pin_array

    return wrap(pin_array(settled(self)), self._dtype)


def record_stream(self: Tensor, stream: Any) -> None:
    """Keep the memory from being used again before the work that is on another stream now has passed. RuntimeError without a device."""
    if self.device.type != "npu":
        raise RuntimeError(f"record_stream: a tensor on {self.device} has no memory that streams share")
    settled(self).storage.record_stream(stream)


def share_memory_(self: Tensor) -> Tensor:
    """Move the storage to memory that other processes can map. RuntimeError for a tensor that is not on the CPU."""
    if self.device.type != "cpu":
        raise RuntimeError("_share_fd_: only available on CPU")
    storage = storage_of(exposed(self))
    if not storage.is_shared():
        shared = type(storage)._new_shared(storage.nbytes())
        shared.copy_(storage)
        self.set_(shared, self.storage_offset(), self.size(), self.stride())
    return self


def is_shared(self: Tensor) -> bool:
    """Whether the storage lies in memory that other processes can map."""
    return storage_of(exposed(self)).is_shared()


_SIGNATURES_OF_SET = (
    "()",
    "(torch.Storage source)",
    "(torch.Storage source, int storage_offset, tuple of ints size, tuple of ints stride = None)",
    "(Tensor source)",
    "(Tensor source, int storage_offset, tuple of ints size, tuple of ints stride = None)",
)


def set_(self: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None) -> Tensor:
    """Look at the storage of `source` (a tensor or a storage) from now on.

    RuntimeError when the geometry does not fit in it, when it is on another device, and for a leaf that requires grad.
    """
    numbers = (size, () if stride is None else stride)
    if not (
        (source is None or isinstance(source, (Tensor, TypedStorage, UntypedStorage)))
        and hasattr(type(storage_offset), "__index__")
        and (size is None or all(isinstance(n, (tuple, list)) and all(map(_is_index, n)) for n in numbers))
    ):
        from ..._dispatch.refusals import combination

        given = (source, storage_offset or None, size, stride)
        most = max((n for n, value in enumerate(given, 1) if value is not None), default=0)
        raise TypeError(combination("set_", _SIGNATURES_OF_SET, given[:most], {}))
    if self.requires_grad and self.is_leaf and TLS.grad_enabled:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    if source is not None and source.device.type != self.device.type:
        raise RuntimeError(
            f'Attempted to set the storage of a tensor on device "{self.device}" to a storage on different device '
            f'"{source.device}".  This is no longer allowed; the devices must match.'
        )
    if isinstance(source, Tensor) and source._dtype is not self._dtype:
        raise RuntimeError(
            f"Could not set tensor of type {source._dtype.ctype} to a tensor of type {self._dtype.ctype}"
        )
    if isinstance(source, TypedStorage) and source.dtype is not self._dtype:
        raise RuntimeError(
            f"Expected a Storage of type {self._dtype.ctype} or an UntypedStorage, but got type {source.dtype.cpp} for argument 1 'storage'"
        )
    exposed(self)
    if source is None:
        self._payload = backends.empty((0,), None, self._dtype, self.device)
    elif isinstance(source, Tensor) and size is None:
        self._payload = exposed(source)
    else:
        untyped = source.untyped_storage() if isinstance(source, Tensor) else source.untyped()
        if size is None:
            size = (untyped.nbytes() // self._dtype.itemsize,)
        same = tuple(size) == self.shape and (stride is None or tuple(stride) == self.stride())
        needed = (storage_offset + _payload.extent(tuple(size), _strides(size, stride))) * self._dtype.itemsize
        if not same and storage_offset >= 0 and needed > untyped.nbytes() and self.device.type == "cpu":
            untyped.grow(needed)
        if isinstance(self._payload, _payload.DevicePayload):
            self._payload = self._payload.__class__(
                tuple(size), _strides(size, stride), self._dtype, storage_offset, untyped
            )
        else:
            self._payload = view_of_root(
                untyped._root, tuple(size), _strides(size, stride), storage_offset, self._dtype.np
            )
    bump_version(self)
    if self._node.__class__ is AccumulateGrad:  # what was computed of the former elements is no history of these
        self._node = AccumulateGrad(self)
    return self


def _is_index(value: Any) -> bool:
    return hasattr(type(value), "__index__")


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both look at the same storage in the same geometry."""
    return (
        self.untyped_storage() == tensor.untyped_storage()
        and self.storage_offset() == tensor.storage_offset()
        and self.shape == tensor.shape
        and self.stride() == tensor.stride()
    )


def _strides(size: Any, stride: Any) -> tuple:
    return _payload.contiguous_strides(tuple(size)) if stride is None else tuple(stride)


def resize_(self: Tensor, *size: Any, memory_format: _memory_format | None = None) -> Tensor:
    """Change the shape in place; elements that are new are uninitialised, those that the storage holds are kept."""
    shape = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else tuple(size)
    if isinstance(self._payload, SparsePayload):
        if self.is_sparse:
            raise unavailable("resize_", "coo")
        from ..._backends.cpu.sparse.shape import resize_csr_

        with _wiring.no_grad():
            return resize_csr_(self, shape)
    if self.requires_grad and not TLS.inference:
        raise RuntimeError("cannot resize variables that require grad")
    strides = _resized_strides(shape, memory_format)
    if shape == tuple(self._payload.shape):
        if memory_format is None:  # whatever its strides are
            return self
    else:
        bump_version(self)
    count = prod(shape)
    data = exposed(self)
    if data.__class__ is not ndarray:
        self._payload = backends.empty(shape, None, self._dtype, self.device)
        return self
    available = storage_of(data).nbytes() // self._dtype.itemsize - self.storage_offset()
    if count <= available:
        self._payload = strided_view(data, shape, strides, 0)
    else:
        offset, storage, kind = self.storage_offset(), storage_of(data), data.dtype
        held = storage.nbytes() // kind.itemsize
        del data  # so that a storage that nobody else looks into is seen to be one
        try:
            storage.grow((offset + count) * kind.itemsize, self)
        except (MemoryError, ValueError) as error:
            raise refusal(error, shape, kind.itemsize) or error from None
        if _determinism.wanted and _determinism.fill:
            storage._root[held * kind.itemsize :].view(kind)[...] = largest(self._dtype)
        self._payload = view_of_root(storage._root, shape, strides, offset, kind)
    return self


def _resized_strides(shape: tuple, memory_format: _memory_format | None) -> tuple:
    """The strides that `resize_` gives. RuntimeError for sizes that no tensor has, and formats of other dimensions."""
    if min(shape, default=0) < 0 or prod(shape) >= 2**63:
        raise RuntimeError("numel: integer multiplication overflow")
    if memory_format is preserve_format:
        raise RuntimeError("Unsupported memory format Preserve")
    for name, asked, dims in (("", channels_last, 4), ("_3d", channels_last_3d, 5)):
        if memory_format is asked:
            if len(shape) != dims:
                raise RuntimeError(f"required rank {dims} tensor to use channels_last{name} format")
            return channels_last_strides(shape)
    return _payload.contiguous_strides(shape)


def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: _memory_format | None = None) -> Tensor:
    """`resize_` to the shape of another tensor."""
    if the_template._payload.__class__ is CooPayload:
        return self.sparse_resize_(the_template.shape, the_template._payload.sparse_dim, the_template.dense_dim())
    if memory_format is preserve_format:
        last = prefers_channels_last(the_template.shape, the_template.stride())
        memory_format = (channels_last if the_template.dim() == 4 else channels_last_3d) if last else contiguous_format
    return resize_(self, tuple(the_template.shape), memory_format=memory_format)


def dim_order(self: Tensor) -> tuple:
    """The dimensions from the outermost in memory to the innermost."""
    stride = self.stride()
    return tuple(sorted(range(len(stride)), key=lambda d: (-stride[d], d)))


MEMBERS: dict[str, Any] = {
    "layout": property(layout),
    "is_cpu": _flag("cpu"),
    "is_meta": _flag("meta"),
    "is_cuda": property(
        lambda self: self.device.type == placed("cuda").type,
        doc="Whether the tensor is on a device of type cuda, or on one that stands for it.",
    ),
    "is_npu": _flag("npu"),
    "is_xpu": _flag("xpu"),
    "is_mps": _flag("mps"),
    "is_xla": _flag("xla"),
    "is_hpu": _flag("hpu"),
    "is_mtia": _flag("mtia"),
    "is_ipu": _flag("ipu"),
    "is_maia": _flag("maia"),
    "is_vulkan": _flag("vulkan"),
    "is_sparse": property(lambda self: self._payload.__class__ is CooPayload),
    "is_sparse_csr": property(lambda self: self._payload.__class__ is CsrPayload),
    "is_mkldnn": property(lambda self: False),
    "is_quantized": property(lambda self: False),
    "is_nested": property(lambda self: False),
    "names": property(lambda self: (None,) * self._payload.ndim),
    "has_names": _false,
    "volatile": property(lambda self: False),
    "storage_type": storage_type,
    "is_contiguous": is_contiguous,
    "data_ptr": data_ptr,
    "untyped_storage": untyped_storage,
    "storage": property(_storage_object),
    "_typed_storage": _typed_storage,
    "is_floating_point": is_floating_point,
    "is_complex": is_complex,
    "is_signed": is_signed,
    "get_device": get_device,
    "is_conj": _false,
    "is_neg": _false,
    "_is_zerotensor": _false,
    "_fix_weakref": _nothing,
    "resolve_conj": _same,
    "resolve_neg": _same,
    "is_pinned": is_pinned,
    "pin_memory": pin_memory,
    "record_stream": record_stream,
    "share_memory_": share_memory_,
    "is_shared": is_shared,
    "is_distributed": _false,
    "set_": set_,
    "is_set_to": is_set_to,
    "resize_": resize_,
    "resize_as_": resize_as_,
    "dim_order": dim_order,
    "type": types.tensor_type,
    "_cdata": property(id),
}
ATTACHED = native.members(Tensor, checked(MEMBERS))
