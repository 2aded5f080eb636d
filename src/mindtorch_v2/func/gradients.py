"""Derivatives of functions: `grad`, `vjp`, `jacrev` and their kin.

Note [Tracked arguments]
A transform gives `func` leaves in the place of its arguments. Inside `vmap` the batch is part of a leaf, also where an argument is shared: examples do not
depend on each other, so the gradient of the sum over the batch holds the gradients of all examples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._autograd import api as _api
from .._autograd.node import AccumulateGrad
from .._dispatch import ops
from .._state import TLS
from .._tensor import Tensor, wrap
from ..utils._pytree import tree_flatten, tree_map, tree_unflatten
from .batched import at, batched, innermost
from .randomness import Outside, Refusing
from .vmap import LEVELS


def _track(value: Any) -> Any:
    """A leaf, or a view of a tensor that is tracked already, that stands for an argument; see Note [Tracked arguments]."""
    if not isinstance(value, Tensor):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(value)}")
    if not (value.dtype.is_floating_point or value.dtype.is_complex):
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    with Outside():
        return _track_levels(value, LEVELS[::-1])


def _track_levels(value: Tensor, levels: list) -> Tensor:
    if not levels:
        return value.view_as(value) if value.requires_grad else value.detach().requires_grad_()
    return batched(_track_levels(_whole_batch(value, levels[0]), levels[1:]), levels[0][0])


def _whole_batch(value: Tensor, level: tuple[int, int]) -> Tensor:
    number, size = level
    return value._value if at(number)(value) else value.expand((size, *value.shape))


def _spread(value: Tensor, levels: list) -> Tensor:
    """The plain tensor of all examples of all levels, the innermost first."""
    for level in levels:
        value = _whole_batch(value, level)
    return value


def _rewrap(plain: Tensor) -> Tensor:
    """A plain gradient of a tracked argument, batched at every level."""
    for level, _ in LEVELS:
        plain = batched(plain, level)
    return plain


def _gradients(output: Tensor, leaves: list, cotangent: Tensor | None = None) -> list:
    """The gradients of tracked leaves; they are themselves differentiable where something outside of the transform asks for it."""
    plain = innermost(output)
    inner = [innermost(leaf) for leaf in leaves]
    if not plain.requires_grad:
        return [_rewrap(ops.zeros_like(leaf)) for leaf in inner]
    with Outside():
        seed = ops.ones_like(plain) if cotangent is None else ops.expand_as(_spread(cotangent, LEVELS[::-1]), plain)
        found = _api.grad(plain, inner, seed, create_graph=True, allow_unused=True, materialize_grads=True)
    if not _reaches_beyond(found, inner):
        found = tuple(wrap(g._payload, g._dtype) for g in found)
    return [_rewrap(g) for g in found]


def _reaches_beyond(found: tuple, inner: list) -> bool:
    """Whether gradients depend on leaves that the transform has not made itself."""
    own = {id(leaf._node) for leaf in inner if leaf._node.__class__ is AccumulateGrad}
    stack = [g.grad_fn for g in found if g.requires_grad]
    if any(g.requires_grad and g.is_leaf for g in found) or any(
        leaf._node.__class__ is not AccumulateGrad for leaf in inner
    ):
        return True
    seen: set = set()
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.__class__ is AccumulateGrad and id(node) not in own:
            return True
        stack.extend(edge[0] for edge in node.edges if edge is not None)
    return False


def _numbers(argnums: Any, count: int) -> tuple:
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    if len(set(numbers)) != len(numbers):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    for number in numbers:
        if not -count <= number < count:
            raise RuntimeError(f"Got argnum={number}, but only {count} positional inputs")
    return numbers


def _call(func: Callable, args: tuple, kwargs: dict, numbers: tuple) -> tuple[Any, list]:
    """(result, tracked arguments in the place of those that are differentiated)."""
    given = list(args)
    for number in numbers:
        given[number] = tree_map(_track, given[number])
    TLS.transforms += 1
    try:
        return func(*given, **kwargs), [given[number] for number in numbers]
    finally:
        TLS.transforms -= 1


def _tensors_of(value: Any, who: str) -> tuple[list, Any]:
    """The results one by one, and their structure. RuntimeError for what is no tensor."""
    results, shape = tree_flatten(value)
    for result in results:
        if not isinstance(result, Tensor):
            raise RuntimeError(
                f"{who}: expected f(*primals) to return only tensors, got unsupported type {type(result)}"
            )
    return results, shape


def _split_aux(output: Any, has_aux: bool, who: str) -> tuple[Any, Any]:
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(f"{who}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return output


def _detached(tree: Any, tracked: list) -> Any:
    """Results without the history that only the transform's own leaves gave them."""
    inner = [innermost(leaf) for leaf in tracked]

    def one(value: Any) -> Any:
        if (
            not isinstance(value, Tensor)
            or not innermost(value).requires_grad
            or _reaches_beyond((innermost(value),), inner)
        ):
            return value
        plain = innermost(value)
        bare = wrap(plain._payload, plain._dtype)
        for level in _levels(value):
            bare = batched(bare, level)
        return bare

    return tree_map(one, tree)


def _levels(value: Any) -> list:
    levels = []
    while hasattr(value, "_value"):
        levels.append(value._level)
        value = value._value
    return levels[::-1]


def grad_and_value(func: Callable, argnums: Any = 0, has_aux: bool = False) -> Callable:
    """A function that gives (gradient, value) of a scalar function with respect to the arguments of the given numbers."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = _numbers(argnums, len(args))
        output, tracked = _call(func, args, kwargs, numbers)
        value, aux = _split_aux(output, has_aux, "grad_and_value(f)(*args)")
        if not isinstance(value, Tensor):
            raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(value)}")
        if value.dim():
            raise RuntimeError(
                f"grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with {value.dim()} dims. Maybe you wanted "
                "to use the vjp or jacrev APIs instead?"
            )
        leaves, spec = tree_flatten(tracked)
        gradients = tree_unflatten(_gradients(value, leaves), spec)
        result = gradients[0] if isinstance(argnums, int) else tuple(gradients)
        value, aux = _detached((value, aux), leaves)
        return (result, (value, aux)) if has_aux else (result, value)

    return wrapper


def grad(func: Callable, argnums: Any = 0, has_aux: bool = False) -> Callable:
    """A function that gives the gradient of a scalar function with respect to the arguments of the given numbers."""
    both = grad_and_value(func, argnums, has_aux)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapper


def vjp(func: Callable, *primals: Any, has_aux: bool = False) -> Any:
    """(result, function from cotangents of the result to those of `primals`), and the auxiliary result if there is one."""
    output, tracked = _call(func, primals, {}, tuple(range(len(primals))))
    value, aux = _split_aux(output, has_aux, "vjp(f, *primals)")
    results, shape = _tensors_of(value, "vjp(f, *primals)")
    leaves, spec = tree_flatten(tracked)

    def pull_back(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> tuple:
        given, structure = tree_flatten(cotangents)
        if structure != shape:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. cotangents: "
                f"{structure}, primal output: {shape}"
            )
        total: Any = None
        for result, cotangent in zip(results, given):
            part = _gradients(result, leaves, cotangent)
            total = part if total is None else [a + b for a, b in zip(total, part)]
        return tuple(tree_unflatten(total, spec))

    shown, aux = _detached((value, aux), leaves)
    return (shown, pull_back, aux) if has_aux else (shown, pull_back)


def jacrev(func: Callable, argnums: Any = 0, *, has_aux: bool = False, chunk_size: int | None = None) -> Callable:
    """A function that gives the Jacobian, row by row of the result."""

    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    def wrapper(*args: Any) -> Any:
        numbers = _numbers(argnums, len(args))
        output, tracked = _call(func, args, {}, numbers)
        value, aux = _split_aux(output, has_aux, "jacrev(f, *primals)")
        results, shape = _tensors_of(value, "vjp(f, *primals)")
        leaves, spec = tree_flatten(tracked)
        jacobians = [_rows(result, leaves) for result in results]
        built = tree_unflatten([_chosen(tree_unflatten(rows, spec), argnums) for rows in jacobians], shape)
        return (built, _detached(aux, leaves)) if has_aux else built

    return wrapper


def _chosen(parts: list, argnums: Any) -> Any:
    return parts[0] if isinstance(argnums, int) else tuple(parts)


def _rows(result: Tensor, leaves: list) -> list:
    """d result / d leaf for every leaf."""
    size = tuple(result.shape)
    flat = result.reshape((-1,))
    rows = [_gradients(flat[i], leaves) for i in range(flat.shape[0])]
    if not rows:
        return [leaf.new_zeros((*size, *leaf.shape)) for leaf in leaves]
    return [ops.stack([row[k] for row in rows]).reshape((*size, *leaves[k].shape)) for k in range(len(leaves))]


def jacfwd(func: Callable, argnums: Any = 0, has_aux: bool = False, *, randomness: str = "error") -> Callable:
    """The Jacobian, as `jacrev` computes it. PyTorch maps over directions: `randomness` says what random operators do, as for `vmap`."""
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    backward = jacrev(func, argnums, has_aux=has_aux)

    def wrapper(*args: Any) -> Any:
        if randomness == "error":
            with Refusing():
                return backward(*args)
        return backward(*args)

    return wrapper


def hessian(func: Callable, argnums: Any = 0) -> Callable:
    """A function that gives the second derivatives."""
    return jacrev(jacrev(func, argnums), argnums)


def jvp(func: Callable, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """(result, its tangent): the derivative of the pull-back, which is linear in the cotangents, in the direction of `tangents`."""
    if not isinstance(primals, tuple):
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    if not isinstance(tangents, tuple):
        raise RuntimeError("jvp(f, primals, tangents): Expected tangents to be a tuple.")
    flat, structure = tree_flatten(primals)
    directions, other = tree_flatten(tangents)
    if structure != other:
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals and tangents to have the same python structure. For example, if primals is a tuple of "
            f"3 tensors, tangents also must be. Got primals with structure {structure} and tangents with structure {other}"
        )
    for primal, direction in zip(flat, directions):
        for value, what in ((primal, "primals"), (direction, "tangents")):
            if not isinstance(value, Tensor):
                raise RuntimeError(
                    f"jvp(f, primals, tangents): Expected {what} to only contain Tensors, got {type(value)}"
                )
        if primal.shape != direction.shape:
            raise RuntimeError(
                "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. Tensor "
                f"is of size {list(primal.shape)} while the given forward gradient is of size {list(direction.shape)}."
            )
    if not flat:
        raise RuntimeError("jvp(f, primals, tangents): Expected primals to contain at least one Tensor.")
    output, tracked = _call(func, primals, {}, tuple(range(len(primals))))
    value, aux = _split_aux(output, has_aux, "jvp(f, primals, tangents)")
    results, shape = _tensors_of(value, "jvp(f, primals, tangents)")
    leaves = tree_flatten(tracked)[0]
    moved = [_tangent(result, leaves, directions) for result in results]
    shown, aux = _detached((value, aux), leaves)
    made = (shown, tree_unflatten(moved, shape))
    return (*made, aux) if has_aux else made


def _tangent(result: Tensor, leaves: list, directions: list) -> Tensor:
    """The tangent of a result by two pull-backs: that of the pull-back itself, in a cotangent of zeros."""
    plain, inner = innermost(result), [innermost(leaf) for leaf in leaves]
    levels = _levels(result)
    zero = ops.zeros_like(plain).requires_grad_() if plain.requires_grad else None
    if zero is not None:
        pulled = _api.grad(plain, inner, zero, create_graph=True, allow_unused=True, materialize_grads=True)
        pairs = [(p, ops.expand_as(innermost(d), p)) for p, d in zip(pulled, directions) if p.requires_grad]
    else:
        pairs = []
    if pairs:
        roots, seeds = zip(*pairs)
        (found,) = _api.grad(roots, (zero,), seeds, create_graph=True, allow_unused=True, materialize_grads=True)
        if not _reaches_beyond((found,), [*inner, zero]):
            found = wrap(found._payload, found._dtype)
    else:
        found = ops.zeros_like(plain)
    for level in levels:
        found = batched(found, level)
    return found


def linearize(func: Callable, *primals: Any) -> tuple:
    """(result, function from tangents of `primals` to the tangent of the result)."""
    value = func(*primals)
    flat, spec = tree_flatten(primals)

    def push(*tangents: Any) -> Any:
        directions, other = tree_flatten(tangents)
        if other != spec:
            raise RuntimeError(f"Expected the tangents {other} to have the same argspec as the primals {spec}")
        for number, (primal, direction) in enumerate(zip(flat, directions)):
            if primal.shape != direction.shape:
                raise RuntimeError(
                    f"tangent:{number} with shape {direction.shape} in flattened pytree doesn't match the shape {primal.shape} of the "
                    "corresponding primal."
                )
        return jvp(func, primals, tangents)[1]

    return value, push
