"""From a list of samples to a batch."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy

import mindtorch_v2 as mt

np_str_obj_array_pattern = re.compile(r"[SaUO]")  # kinds of numpy arrays that are no tensors: strings and objects
_WRONG_TYPE = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
CollateMap = dict[type | tuple[type, ...], Callable[..., Any]]


def _rebuild(original: Any, values: Any, update: bool) -> Any:
    """A container like `original` with other values; a plain dict or list if its type cannot be made that way."""
    try:
        if update:
            clone = copy.copy(original)
            if isinstance(original, Mapping):
                clone.update(values)
            else:
                for i, value in enumerate(values):
                    clone[i] = value
            return clone
        return type(original)(values)
    except TypeError:
        return values


def default_convert(data: Any) -> Any:
    """Turn every numpy array in `data` into a tensor, and leave the rest as it is."""
    if isinstance(data, mt.Tensor):
        return data
    if isinstance(data, numpy.ndarray | numpy.generic):
        if isinstance(data, numpy.ndarray) and np_str_obj_array_pattern.search(data.dtype.str) is not None:
            return data
        if isinstance(data, numpy.bool_ | numpy.number | numpy.ndarray):
            return mt.as_tensor(data)
        return data
    if isinstance(data, Mapping):
        values = {key: default_convert(value) for key, value in data.items()}
        return _rebuild(data, values, isinstance(data, MutableMapping))
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return _rebuild(data, [default_convert(value) for value in data], isinstance(data, MutableSequence))
    return data


def collate(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Join samples of one kind: leaves by the functions of the map, containers element by element.

    Raises:
        RuntimeError: if sequences differ in length.
        TypeError: if a sample is of a kind that cannot be joined.
    """
    first = batch[0]
    if collate_fn_map is not None:
        join = collate_fn_map.get(type(first))
        if join is None:
            join = next((fn for kind, fn in collate_fn_map.items() if isinstance(first, kind)), None)
        if join is not None:
            return join(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        values = {key: collate([sample[key] for sample in batch], collate_fn_map=collate_fn_map) for key in first}
        return _rebuild(first, values, isinstance(first, MutableMapping))
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch, strict=True)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch, strict=True)]
        return columns if isinstance(first, tuple) else _rebuild(first, columns, isinstance(first, MutableSequence))
    raise TypeError(_WRONG_TYPE.format(type(first)))


def collate_tensor_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Tensors are stacked."""
    return mt.stack(list(batch), 0)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Arrays become tensors and are stacked."""
    if np_str_obj_array_pattern.search(batch[0].dtype.str) is not None:
        raise TypeError(_WRONG_TYPE.format(batch[0].dtype))
    return collate([mt.as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Scalars of numpy become one tensor of their type."""
    return mt.as_tensor(numpy.stack(batch))


def collate_float_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Floats become a float64 tensor."""
    return mt.tensor(batch, dtype=mt.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Integers become an int64 tensor (truth values a bool tensor)."""
    return mt.tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Strings stay a list."""
    return batch


default_collate_fn_map: CollateMap = {
    mt.Tensor: collate_tensor_fn,
    numpy.ndarray: collate_numpy_array_fn,
    (numpy.bool_, numpy.number, numpy.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: Any) -> Any:
    """Join samples into a batch with one more dimension in front.

    Tensors and arrays are stacked, numbers become a tensor, strings a list; dicts, named tuples and sequences are joined
    element by element (tuples give lists).
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
