"""How tensors are taken apart for pickles and copies, and put together again.

The `_rebuild_*` functions bear PyTorch's names and take PyTorch's arguments, for files name them. What they are given may come from a hostile
file: every number is checked before memory is looked at.
"""

from __future__ import annotations

import contextlib
import copy
import copyreg
import functools
import threading
import warnings
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import _dtype, _layout, _payload, _tensor
from .._above import above
from .._api.functions import sparse
from .._backends.meta.creation import empty as _meta_empty
from .._pending import settled
from .._sparse_payload import CooPayload, CscPayload, CsrPayload, SparsePayload
from .._storage import UntypedStorage, check_bounds, storage_of, view_of_root
from .._tensor import Tensor
from .._typed_storage import TypedStorage, legacy_name
from .shown import shown

__all__ = ["deepcopy_tensor", "reduce_tensor"]


# ------------------------------------------------------------------------------------------------------------------- pieces


def payload_of_storage(
    storage: UntypedStorage, dtype: _dtype.dtype, shape: tuple[int, ...], stride: tuple[int, ...], offset: int
) -> Any:
    """The payload that looks into `storage` with these numbers (in elements). RuntimeError when it would leave the storage.

    A storage of a device with payloads of its own makes them itself, by a method `view_payload(dtype, shape, stride, offset)`.
    """
    if storage.device.type == "meta":
        check_bounds(storage.nbytes(), dtype.itemsize, shape, stride, offset * dtype.itemsize)
        return _payload.MetaPayload(shape, stride, dtype, offset, storage)
    if storage.device.type == "cpu":
        if dtype.np is None:
            raise NotImplementedError(_dtype.unsupported(dtype))
        return view_of_root(storage._root, shape, stride, offset, dtype.np)
    return storage.view_payload(dtype, shape, stride, offset)


@functools.cache
def _internal_names() -> frozenset[str]:
    """The attributes by which the library itself keeps a tensor; no pickle may carry or set them."""
    names = {name for name in vars(Tensor) if name.startswith("_")}
    return frozenset(names | set(Tensor.__slots__))


def _get_obj_state(obj: Any) -> Any:
    """What a user has set on `obj`: a dict, or a pair of it and the values of the slots of its class."""
    internal = _internal_names()
    attributes = dict(obj.__dict__)
    slots = {
        name: getattr(obj, name)
        for name in copyreg._slotnames(type(obj))
        if name not in internal and hasattr(obj, name)
    }
    return (attributes, slots) if slots else attributes


def _set_obj_state(obj: Any, state: Any) -> Any:
    """Give `obj` what `_get_obj_state` returned. RuntimeError for a state of another form or with a reserved name."""
    parts = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    for part in parts:
        if not part:
            continue
        if not isinstance(part, dict):
            raise RuntimeError(f"Invalid serialized state: {type(part).__name__}")
        for name, value in part.items():
            if not isinstance(name, str) or name in _internal_names() or (name[:2] == "__" == name[-2:]):
                raise RuntimeError(f"Invalid serialized state: {shown(name)!r} cannot be set on a tensor")
            setattr(obj, name, value)
    return obj


def _int_tuple(name: str, numbers: Any) -> tuple[int, ...]:
    if not isinstance(numbers, (tuple, list)) or not all(type(n) is int for n in numbers):
        raise RuntimeError(f"a tensor's {name} must be a tuple of ints, but got {type(numbers).__name__}")
    return tuple(numbers)


# ------------------------------------------------------------------------------------------------------------------ rebuild

UNREAD: set[UntypedStorage] = set()
"""Storages whose bytes are still to be read from a file, so that nothing can be computed from them."""


def _rebuild_tensor(storage: TypedStorage, storage_offset: int, size: Any, stride: Any) -> Tensor:
    """A tensor that looks into a typed storage. RuntimeError when size, stride and offset lead out of it."""
    if not isinstance(storage, TypedStorage):
        raise RuntimeError(f"a tensor is rebuilt from a storage, but got {type(storage).__name__}")
    return _from_storage(storage.untyped(), storage.dtype, storage_offset, size, stride)


def _from_storage(storage: UntypedStorage, dtype: _dtype.dtype, offset: Any, size: Any, stride: Any) -> Tensor:
    if type(offset) is not int:
        raise RuntimeError(f"a tensor's storage offset must be an int, but got {type(offset).__name__}")
    payload = payload_of_storage(storage, dtype, _int_tuple("size", size), _int_tuple("stride", stride), offset)
    return _tensor.wrap(payload, dtype)


def _rebuild_tensor_v2(
    storage: TypedStorage,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    metadata: Any = None,
) -> Tensor:
    """A tensor with its `requires_grad`; `metadata` says whether the stored values are to be conjugated or negated."""
    tensor = _finish(_rebuild_tensor(storage, storage_offset, size, stride), storage, metadata)
    return _with_gradient(tensor, requires_grad, backward_hooks)


def _rebuild_tensor_v3(
    storage: UntypedStorage,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    dtype: _dtype.dtype,
    metadata: Any = None,
) -> Tensor:
    """As `_rebuild_tensor_v2`, for dtypes without a storage class of their own."""
    if not isinstance(dtype, _dtype.dtype):
        raise RuntimeError(f"a tensor's dtype must be a torch.dtype, but got {type(dtype).__name__}")
    if not isinstance(storage, (UntypedStorage, TypedStorage)):
        raise RuntimeError(f"a tensor is rebuilt from a storage, but got {type(storage).__name__}")
    tensor = _finish(_from_storage(storage.untyped(), dtype, storage_offset, size, stride), storage, metadata)
    return _with_gradient(tensor, requires_grad, backward_hooks)


def _finish(tensor: Tensor, storage: TypedStorage | UntypedStorage, metadata: Any) -> Tensor:
    # There are no lazy bits here, so what they stand for is done at once.
    if not metadata or isinstance(tensor._payload, _payload.MetaPayload):
        return tensor
    if storage.untyped() in UNREAD:
        _READING.again = True
        return tensor
    values = tensor._payload
    if not isinstance(metadata, dict) or values.nbytes > storage_of(values).nbytes():
        # The copy of an expanded view could take any amount of memory.
        raise RuntimeError(
            f"cannot apply {shown(metadata)} to a tensor of {values.nbytes} bytes that shares a smaller storage"
        )
    if metadata.get("conj"):
        values = np.conj(values)
    if metadata.get("neg"):
        values = np.negative(values)
    return _tensor.wrap(values, tensor._dtype)


def _with_gradient(tensor: Tensor, requires_grad: bool, hooks: Any) -> Tensor:
    _refuse_hooks(hooks)
    if requires_grad:
        tensor.requires_grad_(True)
    return tensor


def _refuse_hooks(hooks: Any) -> None:
    # `save` never writes hooks, so such a file was made by hand.
    if hooks:
        raise RuntimeError("a file cannot carry backward hooks")


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Tensor:
    """A Parameter around `data`."""
    if not isinstance(data, Tensor):
        raise RuntimeError(f"a parameter is rebuilt from a tensor, but got {type(data).__name__}")
    _refuse_hooks(backward_hooks)
    return above("parameter")(data, bool(requires_grad))


def _rebuild_parameter_with_state(data: Tensor, requires_grad: bool, backward_hooks: Any, state: Any) -> Tensor:
    """A Parameter with the attributes that a user has set on it."""
    return _set_obj_state(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _rebuild_meta_tensor_no_storage(dtype: _dtype.dtype, size: Any, stride: Any, requires_grad: bool) -> Tensor:
    """A tensor of the meta device."""
    if not isinstance(dtype, _dtype.dtype):
        raise RuntimeError(f"a tensor's dtype must be a torch.dtype, but got {type(dtype).__name__}")
    shape, strides = _int_tuple("size", size), _int_tuple("stride", stride)
    if len(shape) != len(strides) or min((*shape, *strides), default=0) < 0:
        raise RuntimeError(f"a tensor cannot have size {list(shape)} and stride {list(strides)}")
    return _with_gradient(_tensor.wrap(_meta_empty(shape, strides, dtype), dtype), requires_grad, None)


def _rebuild_device_tensor_from_cpu_tensor(data: Tensor, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    """A tensor on `device` with the values of a CPU tensor."""
    return _with_gradient(data.to(device=device, dtype=dtype), requires_grad, None)


def _rebuild_device_tensor_from_numpy(data: np.ndarray, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    """A tensor on `device` with the values of an array."""
    tensor = _tensor.wrap(np.asarray(data), _dtype.from_numpy_dtype(data.dtype))
    return _with_gradient(tensor.to(device=device, dtype=dtype), requires_grad, None)


def _rebuild_from_type_v2(func: Any, new_type: type, args: tuple, state: Any) -> Any:
    """What `func(*args)` gives, as an instance of the tensor class `new_type`, with a user's attributes."""
    if not (isinstance(new_type, type) and issubclass(new_type, Tensor)):
        raise RuntimeError(f"a tensor cannot be rebuilt as {shown(new_type)}")
    made = func(*args)
    if not isinstance(made, Tensor):
        raise RuntimeError(f"{shown(func)} does not rebuild a tensor")
    if type(made) is not new_type:
        made = made.as_subclass(new_type)
    set_state = getattr(new_type, "__setstate__", None)
    if set_state is not None and set_state is not getattr(Tensor, "__setstate__", None):
        made.__setstate__(state)
        return made
    return _set_obj_state(made, state)


class _Reading(threading.local):
    """What a thread knows of the file that it reads.

    made: its sparse tensors, whose members may not be there yet when they are made; None outside of files. again: whether a tensor depends on elements that were not there yet, so
    that the pickle has to be read once more when they are.
    """

    made: list[Tensor] | None = None
    again: bool = False


_READING = _Reading()


def _rebuild_sparse_tensor(layout: Any, data: Any) -> Tensor:
    """A sparse tensor of its members and shape. Whether they go together is asked once the file is read: see `sparse_tensors_checked`."""
    if not isinstance(layout, _layout.layout):
        raise RuntimeError(f"a sparse tensor's layout must be a torch.layout, but got {type(layout).__name__}")
    if not isinstance(data, (tuple, list)) or len(data) not in (3, 4):
        raise RuntimeError(f"a sparse tensor is rebuilt from its members and size, but got {type(data).__name__}")
    is_coo = layout is CooPayload.layout
    if not is_coo and layout not in (CsrPayload.layout, CscPayload.layout):
        raise NotImplementedError(f"rebuilding sparse tensor for layout {layout}")
    *members, size = data[:3] if is_coo else data
    if len(members) != (2 if is_coo else 3):
        raise RuntimeError("a sparse tensor is rebuilt from its members and size, and some are missing")
    for member in members:
        if not isinstance(member, Tensor) or isinstance(member._payload, SparsePayload):
            raise RuntimeError(f"a sparse tensor is made of dense tensors, but got {type(member).__name__}")
    shape = _int_tuple("size", tuple(size) if isinstance(size, _tensor.Size) else size)
    if is_coo:
        made = sparse.sparse_coo_tensor(
            *members, shape, check_invariants=False, is_coalesced=bool(data[3:] and data[3])
        )
    else:
        made = sparse.sparse_compressed_tensor(*members, shape, layout=layout, check_invariants=False)
    if _READING.made is None:
        _check_sparse([made])
    else:
        _READING.made.append(made)
    return made


def elements_were_missing() -> bool:
    """Whether something that was rebuilt since this was asked last is not what it should be, for want of elements."""
    missing, _READING.again = _READING.again, False
    return missing


def _rebuild_nested_tensor(buffer: Tensor, sizes: Tensor, strides: Tensor, storage_offsets: Tensor) -> Tensor:
    """A nested tensor of what lies in a buffer: sizes and strides are [parts, dimensions], storage_offsets [parts], all of int64.

    RuntimeError where they lead out of the buffer's storage.
    """
    numbers = sizes, strides, storage_offsets
    for given in (buffer, *numbers):
        if type(given) is not Tensor or isinstance(given._payload, (SparsePayload, _payload.MetaPayload)):
            raise RuntimeError(f"a nested tensor is rebuilt from dense tensors, but got {type(given).__name__}")
    if any(storage_of(given._payload) in UNREAD for given in (buffer, *numbers)):
        _READING.again = True
        return buffer
    for given in numbers:
        if given._dtype is not _dtype.DTYPES["int64"] or given._payload.nbytes > storage_of(given._payload).nbytes():
            raise RuntimeError("the sizes of a nested tensor are not those of a tensor of int64 in memory of its own")
    if not (sizes.dim() == 2 and sizes.shape == strides.shape and storage_offsets.shape == sizes.shape[:1]):
        raise RuntimeError("the sizes, strides and offsets of a nested tensor do not go together")
    storage = storage_of(buffer._payload)
    parts = [
        _from_storage(storage, buffer._dtype, int(offset), size, stride)
        for size, stride, offset in zip(sizes.tolist(), strides.tolist(), storage_offsets.tolist(), strict=True)
    ]
    return above("nested_tensor")._of(parts, buffer)


@contextlib.contextmanager
def sparse_tensors_checked() -> Iterator[None]:
    """While a file is read. RuntimeError, once it is, for a sparse tensor whose members do not go together, if such checks are switched on."""
    outer, _READING.made = _READING.made, []
    try:
        yield
        _check_sparse(_READING.made)
    finally:
        _READING.made = outer


def _check_sparse(made: list[Tensor]) -> None:
    if not sparse.checks_enabled():
        return
    for tensor in made:
        data: Any = tensor._payload
        if isinstance(data, CooPayload):
            sparse.check_coo(data.indices, data.values, data.shape, data.coalesced, True)
        else:
            sparse.check_lines(*data.members(), data.shape, data.of_rows, True)


def _get_layout(name: str) -> _layout.layout:
    """`torch.strided` by its name. KeyError for another text."""
    return _layout.LAYOUTS[name.removeprefix("torch.")]


REBUILD_FUNCTIONS = (
    _rebuild_tensor,
    _rebuild_tensor_v2,
    _rebuild_tensor_v3,
    _rebuild_parameter,
    _rebuild_parameter_with_state,
    _rebuild_meta_tensor_no_storage,
    _rebuild_device_tensor_from_cpu_tensor,
    _rebuild_device_tensor_from_numpy,
    _rebuild_sparse_tensor,
    _rebuild_nested_tensor,
)
"""What makes tensors from the pieces in a file, `_rebuild_from_type_v2` apart."""


# ----------------------------------------------------------------------------------------------------------- taking apart


def reduce_tensor(t: Tensor, protocol: int = 2) -> tuple[Any, ...]:
    """`Tensor.__reduce_ex__`: the storage stays whole, so that views which are saved together go on to share it."""
    _warn_of_hooks(t)
    func, args = _reduce_plain(t)
    state = _get_obj_state(t)
    if type(t) is Tensor and not state:
        return func, args
    return _rebuild_from_type_v2, (func, type(t), args, state)


def reduce_nested(parts: list[Tensor], like: Tensor) -> tuple[Any, tuple[Any, ...]]:
    """A nested tensor as a buffer with its parts in a row, and where they lie."""
    flat = [settled(part.detach().contiguous()).reshape(-1) for part in parts]
    buffer = np.concatenate(flat) if flat else settled(like)
    ends = np.cumsum([0, *(part.size for part in flat)], dtype=np.int64)
    contiguous = [_payload.contiguous_strides(tuple(part.shape)) for part in parts]
    rows = [
        np.array(numbers, np.int64).reshape(len(parts), parts[0].dim() if parts else 0)
        for numbers in ([tuple(part.shape) for part in parts], contiguous)
    ]
    numbers = [_tensor.wrap(row, _dtype.DTYPES["int64"]) for row in (*rows, ends[:-1].copy())]
    return _rebuild_nested_tensor, (_tensor.wrap(buffer, like._dtype), *numbers)


def _reduce_plain(t: Tensor) -> tuple[Any, tuple[Any, ...]]:
    payload, dtype = settled(t), t._dtype
    if isinstance(payload, SparsePayload):
        size = _tensor.Size(payload.shape)
        known = (payload.coalesced,) if isinstance(payload, CooPayload) else ()
        return _rebuild_sparse_tensor, (payload.layout, (*payload.members(), size, *known))
    shape, stride = tuple(payload.shape), _payload.stride_of(payload)
    if isinstance(payload, _payload.MetaPayload):
        return _rebuild_meta_tensor_no_storage, (dtype, shape, stride, t.requires_grad)
    untyped = storage_of(payload)
    numbers = (_payload.offset_of(payload), shape, stride, t.requires_grad, OrderedDict())
    if legacy_name(dtype) is None:
        return _rebuild_tensor_v3, (untyped, *numbers, dtype)
    return _rebuild_tensor_v2, (TypedStorage(wrap_storage=untyped, dtype=dtype), *numbers)


def _warn_of_hooks(t: Tensor) -> None:
    extras = getattr(t._node, "extras", None)
    tables = (extras and extras.tensor_hooks) or {}
    for hook in tables.get(t._nr, {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the function "
                "with @torch.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=3,
            )


def deepcopy_tensor(t: Tensor, memo: dict[int, Any]) -> Tensor:
    """`Tensor.__deepcopy__`: copies of tensors that shared a storage share one. RuntimeError unless `t` is a leaf."""
    if not t.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  "
            "If you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, "
            "see https://github.com/pytorch/pytorch/pull/103001"
        )
    if id(t) in memo:
        return memo[id(t)]
    payload = settled(t)
    if isinstance(payload, SparsePayload):
        made = t.detach().clone()
    else:
        made = _copied(t, payload, memo)
    if type(t) is not Tensor:
        made = _tensor.alias_as(type(t), made)
    if t.requires_grad:
        made.requires_grad_(True)
    memo[id(t)] = made
    if t.grad is not None:
        made.grad = copy.deepcopy(t.grad, memo)
    return _set_obj_state(made, copy.deepcopy(_get_obj_state(t), memo))


def _copied(t: Tensor, payload: Any, memo: dict[int, Any]) -> Tensor:
    storage = copy.deepcopy(storage_of(payload), memo)
    copied = payload_of_storage(
        storage, t._dtype, tuple(payload.shape), _payload.stride_of(payload), _payload.offset_of(payload)
    )
    return _tensor.wrap(copied, t._dtype)
