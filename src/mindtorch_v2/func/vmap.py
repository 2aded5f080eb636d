"""`vmap`: a function of single examples applied to a batch at once; see Note [Batched tensors] in `batched.py`."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, cast

from .. import _state
from .._api.functions.randomness import get_rng_state, set_rng_state
from .._dispatch import ops
from .._dispatch.overrides import DisableTorchFunctionSubclass
from .._state import TLS
from .._tensor import Tensor
from ..utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten
from .batched import LEVELS, MODES, PARTS, BatchedTensor, at, batched
from .randomness import RandomMode


def vmap(
    func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Callable:
    """A function that maps `func` over a dimension of its arguments.

    Args:
        func: takes and gives tensors of one example, in any nested containers.
        in_dims: the dimension per argument (nested like the arguments), None for one that is shared.
        out_dims: where the batch goes in the results.
        randomness: "error" refuses random operators, "same" draws once for all examples, "different" for each.
        chunk_size: how many examples run at once.

    Raises:
        ValueError: when nothing is mapped, or sizes or structures differ.
        RuntimeError: for another `randomness`.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")
    name = getattr(func, "__name__", repr(func))

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        steps = _replaced_steps()
        if steps is not None:
            return _by_steps(steps, func, in_dims, out_dims, randomness, chunk_size, args, kwargs)
        dims, leaves, spec = _flat_inputs(name, in_dims, args)
        size = _size(name, in_dims, dims, leaves)
        if PARTS or any(dim is not None and leaf.is_nested for leaf, dim in zip(leaves, dims)):
            return _by_parts(func, name, leaves, dims, spec, kwargs, size, out_dims, randomness)
        given = leaves
        leaves = [leaf if dim is None else _moved(leaf, dim) for leaf, dim in zip(leaves, dims)]
        if chunk_size is None or chunk_size >= size:
            found = _origins(given, leaves, dims)
            return _once(func, name, leaves, dims, spec, kwargs, size, out_dims, randomness, found)
        state = get_rng_state() if randomness == "same" else None
        parts = []
        for start in range(0, size, chunk_size):
            if state is not None:
                set_rng_state(state)
            count = min(chunk_size, size - start)
            chunk = [leaf if dim is None else leaf.narrow(0, start, count) for leaf, dim in zip(leaves, dims)]
            parts.append(tree_flatten(_once(func, name, chunk, dims, spec, kwargs, count, out_dims, randomness)))
        shape = parts[0][1]
        places = _broadcast_to_and_flatten(out_dims, shape)
        joined = [ops.cat(list(pieces), dim) for pieces, dim in zip(zip(*(part[0] for part in parts)), places or [])]
        return tree_unflatten(joined, shape)

    return mapped


def chunk_vmap(
    func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", chunks: int = 2
) -> Callable:
    """`vmap` of `chunks` parts of the batch, one after the other."""

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        name = getattr(func, "__name__", repr(func))
        dims, leaves, _ = _flat_inputs(name, in_dims, args)
        size = _size(name, in_dims, dims, leaves)
        return vmap(func, in_dims, out_dims, randomness, chunk_size=max(-(-size // chunks), 1))(*args, **kwargs)

    return mapped


def _vmap(func: Callable, in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False) -> Callable:
    """`vmap` as it was before `torch.func`; a result may be None where `allow_none_pass_through` says so."""
    if not allow_none_pass_through:
        return vmap(func, in_dims, out_dims)

    @functools.wraps(func)
    def mapped(*args: Any) -> Any:
        shape: list = []

        def present(*given: Any) -> tuple:
            result = func(*given)
            shape[:] = [isinstance(result, tuple), result if isinstance(result, tuple) else (result,)]
            return tuple(r for r in shape[1] if r is not None)

        made = iter(vmap(present, in_dims, out_dims)(*args))
        results = tuple(None if r is None else next(made) for r in shape[1])
        return results if shape[0] else results[0]

    return mapped


def _flat_inputs(name: str, in_dims: Any, args: tuple) -> tuple[list, list, Any]:
    """(dimension per leaf, leaves, structure) of the arguments."""
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a (potentially nested) tuple matching the "
            f"structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a function with no "
            "inputs. The latter is unsupported."
        )
    leaves, spec = tree_flatten(args)
    dims = _broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    for leaf, dim in zip(leaves, dims):
        if dim is None:
            continue
        where = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for "
        if not isinstance(dim, int):
            raise ValueError(f"{where}an input but in_dim must be either an integer dimension or None.")
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"{where}an input but the input is of type {type(leaf)}. We cannot vmap over non-Tensor arguments, please use None as the "
                "respective in_dim"
            )
        if not -leaf.dim() <= dim < leaf.dim():
            raise ValueError(
                f"{where}some input, but that input is a Tensor of dimensionality {leaf.dim()} so expected in_dim to satisfy "
                f"-{leaf.dim()} <= in_dim < {leaf.dim()}."
            )
    return dims, leaves, spec


def _size(name: str, in_dims: Any, dims: list, leaves: list) -> int:
    sizes = [leaf.size(dim) for leaf, dim in zip(leaves, dims) if dim is not None]
    if not sizes:
        raise ValueError(f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): at least one input should be mapped over")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped dimension"
        )
    return sizes[0]


def _moved(leaf: Tensor, dim: int) -> Tensor:
    with nullcontext() if isinstance(leaf, BatchedTensor) else DisableTorchFunctionSubclass():
        return leaf.movedim(dim, 0) if dim % leaf.dim() else leaf


def _by_parts(
    func: Callable,
    name: str,
    leaves: list,
    dims: list,
    spec: Any,
    kwargs: dict,
    size: int,
    out_dims: Any,
    randomness: str,
) -> Any:
    """Run `func` on the parts of nested tensors, each a batch of one; results that depend on them are nested tensors."""
    if LEVELS or PARTS:
        raise RuntimeError("Only one level of vmap is supported when vmapping over nested tensors")
    cls = None
    for leaf, dim in zip(leaves, dims):
        if dim is not None and dim % leaf.dim():
            if leaf.is_nested:
                raise RuntimeError(_ONLY_LISTS.format(dim % leaf.dim()))
            raise RuntimeError("Fallback not supported for mixed nested / non-nested arguments without bdim=0")
        cls = type(leaf) if dim is not None and leaf.is_nested else cls
    assert cls is not None
    in_dims = tree_unflatten([None if dim is None else 0 for dim in dims], spec)
    run = restore_vmap(func, in_dims, 1, randomness)
    shape: Any = None
    columns, places = [], []
    PARTS.append(size)
    try:
        for number in range(size):
            given = [leaf if dim is None else leaf.select(0, number).unsqueeze(0) for leaf, dim in zip(leaves, dims)]
            results, found = run(*tree_unflatten(given, spec), **kwargs)
            values, shape = tree_flatten(results)
            places = tree_flatten(found)[0]
            columns.append([v if place is None else v.select(place, 0) for v, place in zip(values, places)])
    finally:
        PARTS.pop()
    wanted = _broadcast_to_and_flatten(out_dims, shape) or []
    made = []
    for column, place, dim in zip(zip(*columns), places, wanted):
        if dim and place is not None:
            raise RuntimeError(_ONLY_LISTS.format(dim))
        alone = place is None and isinstance(column[0], Tensor) and dim is not None
        made.append(
            cls._of(column) if place is not None else column[0].expand(size, *column[0].shape) if alone else column[0]
        )
    return tree_unflatten(made, shape)


_ONLY_LISTS = "Nested tensors can only be vmapped over dim=0, but got dim={}"


def _once(
    func: Callable,
    name: str,
    leaves: list,
    dims: list,
    spec: Any,
    kwargs: dict,
    size: int,
    out_dims: Any,
    randomness: str,
    origins: Origins | None = None,
) -> Any:
    """Run `func` on a batch whose tensors have it in front."""
    with _level(size, randomness) as level:
        given = [leaf if dim is None else batched(leaf, level) for leaf, dim in zip(leaves, dims)]
        result = func(*tree_unflatten(given, spec), **kwargs)
    return _unwrap(name, result, out_dims, level, size, origins or {})


@contextmanager
def _level(size: int, randomness: str) -> Iterator[int]:
    """Inside, tensors may have a batch of this level."""
    level = len(LEVELS) + 1
    LEVELS.append((level, size))
    modes = TLS.function_modes
    MODES[level] = RandomMode(level, size, randomness)
    TLS.function_modes = (*modes, MODES[level])
    _state.enter_special()
    TLS.transforms += 1
    try:
        yield level
    finally:
        TLS.transforms -= 1
        _state.leave_special()
        TLS.function_modes = modes
        del MODES[level]
        LEVELS.pop()


def _process_batched_inputs(in_dims: Any, args: tuple, func: Callable) -> tuple[int, list, list, Any]:
    """The first of the steps that libraries replace: (size of the batch, dimension per leaf, leaves, structure)."""
    name = getattr(func, "__name__", repr(func))
    dims, leaves, spec = _flat_inputs(name, in_dims, args)
    size = _size(name, in_dims, dims, leaves)
    return size, [None if dim is None else dim % leaf.dim() for leaf, dim in zip(leaves, dims)], leaves, spec


def _create_batched_inputs(flat_in_dims: list, flat_args: list, vmap_level: int, args_spec: Any) -> Any:
    """The second step: the arguments, with tensors that have the batch apart."""
    given = [
        leaf if dim is None else batched(_moved(leaf, dim), vmap_level) for leaf, dim in zip(flat_args, flat_in_dims)
    ]
    return tree_unflatten(given, args_spec)


def _unwrap_batched(batched_outputs: Any, out_dims: Any, vmap_level: int, batch_size: int, func: Callable) -> Any:
    """The third step: the results, with the batch where `out_dims` says."""
    return _unwrap(getattr(func, "__name__", repr(func)), batched_outputs, out_dims, vmap_level, batch_size, {})


_STEPS = _process_batched_inputs, _create_batched_inputs, _unwrap_batched


def _replaced_steps() -> tuple[Callable, Callable, Callable] | None:
    """The steps that a library has put into `torch._functorch.vmap` (tensordict does, so that its dicts are mapped as tensors are); None where they are this module's."""
    module = sys.modules.get("torch._functorch.vmap")
    if module is None:
        return None
    first, second, third = (getattr(module, step.__name__) for step in _STEPS)
    return None if (first, second, third) == _STEPS else (first, second, third)


def _by_steps(
    steps: tuple[Callable, Callable, Callable],
    func: Callable,
    in_dims: Any,
    out_dims: Any,
    randomness: str,
    chunk_size: int | None,
    args: tuple,
    kwargs: dict,
) -> Any:
    process, create, unwrap = steps
    size, dims, leaves, spec = process(in_dims, args, func)
    if chunk_size is not None and chunk_size < size:
        pieces = [
            [leaf] * -(-size // chunk_size) if dim is None else leaf.split(chunk_size, dim)
            for leaf, dim in zip(leaves, dims)
        ]
        state = get_rng_state() if randomness == "same" else None
        parts = []
        for chunk in zip(*pieces):
            if state is not None:
                set_rng_state(state)
            given = tree_unflatten(list(chunk), spec)
            parts.append(_by_steps(steps, func, in_dims, out_dims, randomness, None, tuple(given), kwargs))
        flat = [tree_flatten(part) for part in parts]
        places = _broadcast_to_and_flatten(out_dims, flat[0][1]) or []
        joined = [ops.cat(list(column), dim) for column, dim in zip(zip(*(part[0] for part in flat)), places)]
        return tree_unflatten(joined, flat[0][1])
    with _level(size, randomness) as level:
        result = func(*create(dims, leaves, level, spec), **kwargs)
        return unwrap(result, out_dims, level, size, func)


def _unwrap(name: str, result: Any, out_dims: Any, level: int, size: int, origins: Origins) -> Any:
    """The results with the batch where `out_dims` says; an argument that comes back with it where it was is itself."""
    outputs, spec = tree_flatten(result)
    if not isinstance(out_dims, (int, tuple, list, dict)) and out_dims is not None:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of ints representing where in "
            "the outputs the vmapped dimension should appear."
        )
    single = isinstance(result, Tensor) and isinstance(out_dims, (tuple, list)) and len(out_dims) == 1
    dims = list(cast("list", out_dims)) if single else _broadcast_to_and_flatten(out_dims, spec)
    if dims is not None and not all(dim is None or isinstance(dim, int) for dim in dims):
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of ints representing where in "
            "the outputs the vmapped dimension should appear."
        )
    if dims is None:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of `outputs`. out_dims has "
            f"structure {tree_flatten(out_dims)[1]} but outputs has structure {spec}."
        )
    for output, dim in zip(outputs, dims):
        if dim is not None and not isinstance(output, Tensor):
            raise ValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(output)}. Did you mean to set out_dims= to None for "
                "output?"
            )
    is_mine = at(level)
    finished = []
    for output, dim in zip(outputs, dims):
        if not isinstance(output, Tensor):
            finished.append(output)
            continue
        value = (
            output._value if is_mine(output) else output.expand((size, *output.shape)) if dim is not None else output
        )
        if dim is None and is_mine(output):
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        given, place = origins.get(id(value), (value, None))
        finished.append(given if place is not None and place == dim else value.movedim(0, dim) if dim else value)
    return tree_unflatten(finished, spec)


Origins = dict[int, tuple[Tensor, int]]
"""By the identity of a tensor with the batch in front: the argument that it was, and where the batch was."""


def _origins(given: list, moved: list, dims: list) -> Origins:
    return {id(m): (g, dim) for g, m, dim in zip(given, moved, dims) if m is not g}


def restore_vmap(func: Callable, in_dims: Any, batch_size: int, randomness: str) -> Callable:
    """A function of tensors with a batch that gives (results, the dimension of the batch in each), as they come out of `vmap` before they are put in
    place: None where a result has none.
    """

    def inner(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        leaves, spec = tree_flatten(args)
        dims: list = _broadcast_to_and_flatten(in_dims, spec) or [None] * len(leaves)
        given_leaves = leaves
        leaves = [leaf if dim is None else _moved(leaf, dim) for leaf, dim in zip(leaves, dims)]
        origins = _origins(given_leaves, leaves, dims)
        level, outputs = len(LEVELS) + 1, []
        shape: Any = None

        def catching(*given: Any, **named: Any) -> None:
            nonlocal outputs, shape
            outputs, shape = tree_flatten(func(*given, **named))

        _once(catching, "restore_vmap", leaves, dims, spec, kwargs, batch_size, None, randomness)
        is_mine = at(level)
        pairs = [origins.get(id(o._value), (o._value, 0)) if is_mine(o) else (o, None) for o in outputs]
        return tree_unflatten([p[0] for p in pairs], shape), tree_unflatten([p[1] for p in pairs], shape)

    return inner
