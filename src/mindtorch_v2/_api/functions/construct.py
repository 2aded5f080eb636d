"""Tensors from Python data, numpy arrays and buffers: `tensor`, `as_tensor`, `asarray`, `from_numpy`, `frombuffer`."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

import numpy as np
from numpy import ndarray

from ... import _dtype
from ..._above import above
from ..._device import chosen_device, default_device, placed as _device
from ..._dispatch import native, ops
from ..._dispatch.convert import _dtype as _convert_dtype
from ..._dispatch.refusals import check_bool, check_by_text, combination
from ..._dtype import DTYPES, dtype as _dtype_class
from ..._memory import MOST_DIMENSIONS
from ..._rules.promotion import promote_types, scalar_dtype
from ..._state import TLS
from ..._storage import UntypedStorage
from ..._tensor import Tensor, wrap
from ..._typed_storage import TypedStorage
from ..._warnings import warn_once


@native.constructor
def from_numpy(ndarray_: ndarray) -> Tensor:
    """A tensor that shares the memory of an array. TypeError for dtypes without a tensor type, ValueError for negative strides."""
    array = ndarray_
    if not isinstance(array, ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    kind = _dtype.from_numpy_dtype(array.dtype)
    if array.dtype.byteorder not in "=|" and not array.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders is currently not supported."
        )
    if any(s < 0 for s in array.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently "
            "supported. (You can probably work around this by making a copy of your array  with array.copy().) "
        )
    if any(s % array.itemsize for s in array.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the memory."
        )
    array = array.view(ndarray)  # an object of its own: the user may give theirs another shape
    if not array.flags.writeable:
        warnings.warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means writing to this tensor "
            "will result in undefined behavior. You may want to copy the array to protect its data or make it writable before converting "
            "it to a tensor. This type of warning will be suppressed for the rest of this program.",
            UserWarning,
            stacklevel=2,
        )
    made = wrap(array, kind)
    if TLS.exporting is not None:
        TLS.exporting.made(made)
    return made


def _infer(data: Any) -> _dtype_class:
    """The dtype of Python data: what those of its numbers, arrays and tensors promote to."""
    if isinstance(data, Tensor):
        return data._dtype
    if isinstance(data, (ndarray, np.generic)):
        return _dtype.from_numpy_dtype(data.dtype)
    if isinstance(data, numbers.Number):
        return _dtype.inferred_complex_dtype() if isinstance(data, complex) else scalar_dtype(data)
    if isinstance(data, (str, bytes)):
        raise TypeError("a string is no number")
    best = None
    widest = _dtype.get_default_dtype().to_complex()
    kinds = set(map(type, data))
    for item in data if len(kinds) > 1 or not kinds <= _NUMBERS else list(data)[:1]:  # long lists of numbers are common
        found = _infer(item)
        best = found if best is None else promote_types(best, found)
        if best is widest:
            break
    return _dtype.get_default_dtype() if best is None else best


_MISSING: Any = object()
_NUMBERS = {bool, int, float, complex}


def _shape(data: Any, kind: _dtype_class, level: int = 0) -> tuple:
    """The shape of nested sequences. ValueError, in PyTorch's words, when they are ragged."""
    if isinstance(data, Tensor):
        return tuple(data._payload.shape)
    if isinstance(data, ndarray):
        return data.shape
    if not isinstance(data, (list, tuple, range)):
        return ()
    if not data:
        return (0,)
    if level > _DEEPEST:
        raise ValueError(f"too many dimensions '{type(data).__name__}'")
    first = _shape(data[0], kind, level + 1)
    for item in data[1:]:
        if not first and isinstance(item, (list, tuple)):
            if kind.category < 2:
                raise TypeError(f"'{type(item).__name__}' object cannot be interpreted as an integer")
            raise TypeError(f"must be real number, not {type(item).__name__}")
        if not first and isinstance(item, (Tensor, ndarray)) and item.shape:
            _plain(item, kind)  # one number may stand among others
            continue
        shape = _shape(item, kind, level + 1)
        if first and not shape and isinstance(data[0], (Tensor, ndarray)):
            _plain(data[0], kind)
            first = ()
        if shape != first:
            if len(shape) == 0 or len(first) == 0:
                raise TypeError("not a sequence")
            at = next((i for i, (a, b) in enumerate(zip(first, shape)) if a != b), None)
            if at is None:
                raise ValueError(f"expected sequences of one shape, got {first} and {shape} at dim {level + 1}")
            raise ValueError(f"expected sequence of length {first[at]} at dim {level + 1 + at} (got {shape[at]})")
    return (len(data), *first)


def _check_depth(data: Any) -> None:
    """ValueError, in PyTorch's words, for sequences that are nested deeper than PyTorch's tensors have dimensions; RuntimeError for those beyond numpy's."""
    sequence = data
    for depth in range(_DEEPEST + 1):
        if not isinstance(sequence, (list, tuple)) or not sequence:
            if depth > MOST_DIMENSIONS:
                raise RuntimeError(
                    f"a tensor of {depth} dimensions is not supported on CPU: there are at most {MOST_DIMENSIONS}"
                )
            return
        sequence = sequence[0]
    raise ValueError(f"too many dimensions '{type(data).__name__}'")


_DEEPEST = 128


def _plain(data: Any, kind: _dtype_class) -> Any:
    """Nested sequences of numbers alone. TypeError and ValueError, in PyTorch's words, for what is no number of the dtype's sort."""
    if isinstance(data, Tensor):
        if data._payload.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return data.item()
    if isinstance(data, (list, tuple)):
        return [_plain(item, kind) for item in data]
    if isinstance(data, range):
        return list(data)
    if isinstance(data, ndarray) and data.size == 1:
        return data.item()
    if not isinstance(data, (numbers.Number, np.generic)) or (isinstance(data, complex) and 0 < kind.category < 3):
        if kind.category > 1:
            raise TypeError(f"must be real number, not {type(data).__name__}")
        raise TypeError(f"'{type(data).__name__}' object cannot be interpreted as an integer")
    return data


def dtype_argument(function: str, value: Any) -> _dtype_class | None:
    """A `dtype=` argument, which may be a Python type, as a dtype. TypeError for anything else."""
    if value is None or value.__class__ is _dtype_class:
        return value
    found = _convert_dtype(value)
    if not isinstance(found, _dtype_class):
        raise TypeError(f"{function}(): argument 'dtype' must be torch.dtype, not {_type_name(type(value))}")
    return found


def _type_name(kind: type) -> str:
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _array(data: Any, kind: _dtype_class | None) -> tuple[ndarray, _dtype_class]:
    """Python data as a fresh array."""
    if isinstance(data, ndarray):
        found = _dtype.from_numpy_dtype(data.dtype)
        target = kind or found
        return np.array(data, dtype=target.np, order="C"), target
    if isinstance(data, (str, bytes)) or (data is None and kind is None):
        raise _not_data(data)
    if isinstance(data, (TypedStorage, UntypedStorage)):
        return _elements(data, kind)
    if isinstance(data, dict):
        raise RuntimeError("Could not infer dtype of dict")
    if isinstance(data, np.generic):
        found = _dtype.from_numpy_dtype(data.dtype)
        target = kind or found
        return np.asarray(data).astype(target.np), target
    if not isinstance(data, (list, tuple, range, numbers.Number)) and data is not None:
        data = _sequence(data)
    if isinstance(data, (list, tuple)) and data and all(isinstance(item, ndarray) for item in data):
        warn_once(
            "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the list to a single numpy.ndarray "
            "with numpy.array() before converting to a tensor."
        )
        _shape(data, kind or _infer(data))
        return _array(np.array(data), kind)
    _check_depth(data)
    if isinstance(_first(data), (str, bytes)):
        raise _not_data(data)
    try:
        inferred = kind or _infer(data)
    except TypeError:
        raise _not_data(data) from None
    except RecursionError:
        raise TypeError("new(): self-referential lists are incompatible") from None
    if inferred.np is None:
        raise RuntimeError(_dtype.unsupported(inferred))
    if isinstance(data, (list, tuple, range)):
        shape = _shape(data, inferred)
        data = _plain(data, inferred)
    else:
        shape = ()
        data = _plain(data, inferred)
    try:
        array = np.array(data, dtype=inferred.np if inferred.np.isbuiltin or inferred.category < 2 else np.float64)
    except (OverflowError, TypeError, ValueError):  # integers beyond the dtype's range, NaN for one
        array = _wrapped(data, inferred)
    if array.shape != shape and array.size == 0:
        array = array.reshape(shape)
    return (array.astype(inferred.np) if array.dtype != inferred.np else array), inferred


def _elements(storage: Any, kind: _dtype_class | None) -> tuple[ndarray, _dtype_class]:
    """The elements of a storage, in its memory; of one without a dtype in the dtype that is wanted. RuntimeError for another dtype."""
    if isinstance(storage, TypedStorage):
        if kind is not None and kind is not storage.dtype:
            raise RuntimeError(
                f"Expected a Storage of type {kind.cpp} or an UntypedStorage, but got {storage.dtype.cpp}"
            )
        kind = storage.dtype
    kind = kind or DTYPES["int64"]  # as of the bytes in a list
    root = storage.untyped()._root
    return root[: root.size // kind.itemsize * kind.itemsize].view(kind.np), kind


def _not_data(data: Any) -> Exception:
    """The error for something that is no number, deep in a list."""
    first = _first(data)
    if first is not data and isinstance(first, str) and first:  # a string holds strings, without end
        return ValueError("too many dimensions 'str'")
    odd = (_odd(data) or (data,))[0]
    if isinstance(odd, (str, bytes)):
        return TypeError(f"new(): invalid data type '{type(odd).__name__}'")
    return RuntimeError(f"Could not infer dtype of {type(odd).__name__}")


def _first(data: Any) -> Any:
    """The first item of the first list, and so on."""
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return data


def _odd(data: Any) -> tuple | None:
    """(the first item, at any depth, that is no number,), or None if all are numbers."""
    if not isinstance(data, (list, tuple)):
        return None if isinstance(data, (numbers.Number, Tensor, np.generic)) else (data,)
    return next((odd for item in data if (odd := _odd(item)) is not None), None)


def _sequence(data: Any) -> Any:
    if hasattr(data, "__array__"):
        return np.asarray(data)
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        count = len(data)
        try:
            return [data[i] for i in range(count)]
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
            raise ValueError(f"could not determine the shape of object type '{type(data).__name__}'") from None
    raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")


def _wrapped(data: Any, kind: _dtype_class) -> ndarray:
    """Numbers that the dtype does not hold: negative ones wrap in unsigned dtypes, large ones are rounded in floating ones, and PyTorch refuses
    the others."""
    array = np.array(data, dtype=object)
    if kind.category > 1:
        return array.astype(np.complex128 if kind.is_complex else np.float64).astype(kind.np)
    for value in array.reshape(-1):
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ValueError("Overflow when unpacking long long")
        if kind.category < 2:
            most = int(np.iinfo(kind.np).max)
            least = -most if np.iinfo(kind.np).min == 0 else -most - 1
            if not math.isfinite(value) or not least <= int(value) <= most:
                raise RuntimeError(f"value cannot be converted to type {str(kind).partition('.')[2]} without overflow")
    return np.array([int(value) for value in array.reshape(-1)], np.int64).astype(kind.np).reshape(array.shape)


@native.constructor
def tensor(
    data: Any = _MISSING,
    *,
    dtype: _dtype_class | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A new leaf tensor with a copy of the data: numbers, nested sequences, arrays, or a tensor (its values)."""
    if data is _MISSING:
        raise TypeError('tensor() missing 1 required positional arguments: "data"')
    where = None if device is None else _device(device)
    dtype = dtype_argument("tensor", dtype)
    if requires_grad.__class__ is not bool or pin_memory.__class__ is not bool:
        _check_flags("tensor", requires_grad=requires_grad, pin_memory=pin_memory)
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
        made = data.detach().to(device=where or chosen_device() or data.device, dtype=dtype or data._dtype, copy=True)
    else:
        array, kind = _array(data, dtype)
        made = _place(wrap(array, kind), where)
        if TLS.inference:
            made._inference = True
        if TLS.exporting is not None:
            TLS.exporting.made(made)
    if pin_memory:
        made = made.pin_memory()
    if requires_grad:
        if made._dtype.category < 2:
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        made.requires_grad_(True)
    return made


def _check_flags(function: str, **flags: Any) -> None:
    for name, flag in flags.items():
        check_bool(function, name, flag)


def _place(made: Tensor, where: Any) -> Tensor:
    where = where or default_device()
    return made if where.type == "cpu" else made.to(where)


@native.constructor
def as_tensor(data: Any, dtype: _dtype_class | None = None, device: Any = None) -> Tensor:
    """The data as a tensor: itself, or sharing memory with an array, when dtype and device allow it; a copy otherwise."""
    where = None if device is None else _device(device)
    dtype = dtype_argument("as_tensor", dtype)
    if isinstance(data, Tensor):
        return data.to(device=where or chosen_device() or data.device, dtype=dtype or data._dtype)
    if isinstance(data, ndarray) and (dtype is None or dtype.np == data.dtype):
        return _place(from_numpy(data), where)
    return tensor(data, dtype=dtype, device=where)


@native.unbound
def asarray(
    obj: Any,
    *,
    dtype: _dtype_class | None = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """`as_tensor` for whatever holds data: tensors, arrays, storages, buffers, sequences.

    copy: True copies always, False raises ValueError where a copy is needed, None copies where it must.
    """
    where = None if device is None else _device(device)
    dtype = dtype_argument("asarray", dtype)
    if requires_grad.__class__ is not bool or copy is not None:
        _check_flags("asarray", copy=False if copy is None else copy, requires_grad=requires_grad)
    from ..._storage import UntypedStorage
    from ..._typed_storage import TypedStorage

    if isinstance(obj, (UntypedStorage, TypedStorage)):
        kind = dtype or (DTYPES["uint8"] if isinstance(obj, UntypedStorage) else obj.dtype)
        source = wrap(np.empty(0, kind.np), kind)
        source.set_(obj)
        made = source
    elif isinstance(obj, Tensor):
        made = obj if requires_grad or not obj.requires_grad else obj.detach()
    elif isinstance(obj, ndarray):
        made = from_numpy(obj)
    elif isinstance(obj, np.generic):
        if copy is False:
            raise RuntimeError("can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray.")
        return tensor(obj, dtype=dtype, device=where, requires_grad=requires_grad)
    elif type(obj).__name__ == "PyCapsule":  # of DLPack; Python has no name for the class
        made = above("from_dlpack")(obj)
    elif isinstance(obj, (bytes, bytearray, memoryview)):
        made = frombuffer(obj, dtype=dtype or DTYPES["uint8"])
    else:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        return tensor(obj, dtype=dtype, device=where, requires_grad=requires_grad)
    target = dtype or made._dtype
    moved = made.to(device=where or chosen_device() or made.device, dtype=target)
    if copy is False and moved is not made:
        raise ValueError(f"can't alias tensor with dtype '{made._dtype}' into dtype '{target}'.")
    if copy and moved is made:
        moved = ops.clone(made)
    if requires_grad:
        moved = moved.detach().requires_grad_(True)
    return moved


@native.unbound
def frombuffer(
    buffer: Any, *, dtype: _dtype_class, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """A 1-D tensor over the memory of an object with the buffer protocol."""
    dtype = dtype_argument("frombuffer", dtype) or _dtype.get_default_dtype()
    for name, number in (("count", count), ("offset", offset)):
        if number.__class__ is not int:
            check_by_text("frombuffer", (f"*, int {name}=0",), (), {name: number})
    check_bool("frombuffer", "requires_grad", requires_grad)
    try:
        view = memoryview(buffer).cast("B")
    except TypeError as error:
        raise ValueError("object does not implement Python buffer protocol.") from error
    if view.readonly:
        warnings.warn(
            "The given buffer is not writable, and PyTorch does not support non-writable tensors. This means you can write to the underlying "
            "(supposedly non-writable) buffer using the tensor. You may want to copy the buffer to protect its data or make it writable before "
            "converting it to a tensor. This type of warning will be suppressed for the rest of this program.",
            stacklevel=2,
        )
    if requires_grad and dtype.category < 2:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    if dtype.np is None:
        raise RuntimeError(_dtype.unsupported(dtype))
    size = dtype.itemsize
    if len(view) == 0 or count == 0:
        raise ValueError(f"both buffer length ({len(view)}) and count ({count}) must not be 0")
    if offset < 0 or offset >= len(view):
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({len(view)} bytes) minus 1"
        )
    if count < 0:
        if (len(view) - offset) % size:
            raise ValueError(
                f"buffer length ({len(view) - offset} bytes) after offset ({offset} bytes) must be a multiple of element size ({size})"
            )
        count = (len(view) - offset) // size
    elif offset + count * size > len(view):
        raise ValueError(
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must not be greater than actual buffer "
            f"length ({len(view)} bytes)"
        )
    array = np.frombuffer(buffer, dtype=np.uint8, count=count * size, offset=offset).view(dtype.np)
    made = wrap(array, dtype)
    return made.requires_grad_(True) if requires_grad else made


_SIGNATURES_OF_NEW = (
    "(*, torch.device device = None)",
    "(torch.Storage storage)",
    "(Tensor other)",
    "(tuple of ints size, *, torch.device device = None)",
    "(object data, *, torch.device device = None)",
)


def legacy_tensor(
    kind: _dtype_class, *args: Any, device: Any = None, like: Tensor | None = None, **kwargs: Any
) -> Tensor:
    """`torch.FloatTensor(2, 3)` and its kin: sizes give uninitialised memory, a sequence or array its values.

    like: the tensor whose `new` it is. RuntimeError for a device of another type than its (the CPU), and for any device beside a tensor.
    """
    if kwargs:
        given = kwargs if device is None else {"device": device, **kwargs}
        raise TypeError(combination("new", _SIGNATURES_OF_NEW, args, given))
    where = _device(device) if device is not None else default_device() if like is None else like.device
    if device is not None and len(args) == 1 and isinstance(args[0], Tensor):
        if like is None:
            form, other = "constructor of the form torch.Tensor", "torch.tensor(...) or torch.as_tensor(...)"
        else:
            form, other = "new of the form tensor.new", "torch.as_tensor(...)"
        raise RuntimeError(f"Legacy tensor {form}(tensor, device=device) is not supported.  Use {other} instead.")
    of = "cpu" if like is None else like.device.type
    if device is not None and where.type != of:
        raise RuntimeError(f"legacy constructor expects device type: {of} but device type: {where.type} was passed")
    if not args:
        return ops.empty((0,), dtype=kind, device=where)
    first = args[0]
    if len(args) == 1:
        if isinstance(first, Tensor):
            if first._dtype is not kind:
                wanted, got = (
                    f"TensorOptions(dtype={d.ctype}, device={where.type}, layout=Strided, requires_grad=false (default), pinned_memory=false (default), "
                    "memory_format=(nullopt))"
                    for d in (kind, first._dtype)
                )
                raise TypeError(f"expected {wanted} (got {got})")
            return ops.alias(first)
        if isinstance(first, (list, ndarray)) or (isinstance(first, tuple) and first.__class__ is tuple):
            return tensor(first, dtype=kind, device=where)
        if isinstance(first, tuple):
            return ops.empty(tuple(first), dtype=kind, device=where)
        if hasattr(first, "untyped") or hasattr(first, "_root"):
            return ops.empty((0,), dtype=kind).set_(first)
    if all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in args):
        return ops.empty(tuple(int(n) for n in args), dtype=kind, device=where)
    if len(args) > 1:
        wrong = next(n for n, arg in enumerate(args) if not isinstance(arg, (int, np.integer)) or isinstance(arg, bool))
        if wrong:
            raise TypeError(
                f"new(): argument 'size' failed to unpack the object at pos {wrong + 1} with error "
                f'"type must be tuple of ints,but got {type(args[wrong]).__name__}"'
            )
        raise TypeError(combination("new", _SIGNATURES_OF_NEW, args, kwargs))
    if isinstance(first, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(first).__name__}'")
    if hasattr(type(first), "__getitem__") and not isinstance(first, dict):  # range, deque, array, ...
        return tensor(first, dtype=kind, device=where)
    raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")


def legacy_constructor(cls: type, *args: Any, **kwargs: Any) -> Any:
    """`torch.Tensor(...)`, and the same for subclasses."""
    given = kwargs.get("other") if not args else args[0] if len(args) == 1 else None
    if isinstance(given, Tensor) and not kwargs.keys() - {
        "other",
        "device",
    }:  # of any dtype, unlike those that name theirs
        made = legacy_tensor(given._dtype, given, device=kwargs.get("device"))
    else:
        made = legacy_tensor(_dtype.get_default_dtype(), *args, **kwargs)
    return made if cls is Tensor else made.as_subclass(cls)


__all__ = ["as_tensor", "asarray", "from_numpy", "frombuffer", "tensor"]
