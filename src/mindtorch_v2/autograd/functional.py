"""`torch.autograd.functional`: Jacobians, Hessians and products with them.

Note [Points]
`func` is called with points that stand for the inputs: views of those that require grad with `create_graph`, so that
results are differentiable with respect to them, and leaves of their own otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .._autograd.api import grad
from .._autograd.modes import enable_grad, is_grad_enabled, set_grad_enabled
from .._dispatch import ops
from .._tensor import Tensor
from . import forward_ad


class _Group(NamedTuple):
    """Tensors, and whether they came as a tuple."""

    several: bool
    tensors: tuple


def _group(value: Any, what: str, who: str) -> _Group:
    """TypeError when something is neither a Tensor nor a tuple of Tensors."""
    several = isinstance(value, tuple)
    items = value if several else (value,)
    for position, item in enumerate(items):
        if isinstance(item, Tensor):
            continue
        found = f" value at index {position} has type" if several else f" given {what} has type"
        raise TypeError(
            f"The {what} given to {who} must be either a Tensor or a tuple of Tensors but the{found} {type(item)}."
        )
    return _Group(several, items)


def _points(tensors: tuple, create_graph: bool, leaves: bool = True) -> tuple:
    """See Note [Points]; vectors take no part in the graph themselves (`leaves` is False)."""
    return tuple(
        t.view_as(t) if create_graph and t.requires_grad else t.detach().requires_grad_(leaves) for t in tensors
    )


def _finished(tree: Any, create_graph: bool) -> Any:
    """Results without their history, unless it was asked for."""
    if isinstance(tree, tuple):
        return tuple(_finished(item, create_graph) for item in tree)
    return tree if create_graph else tree.detach()


def _unpacked(tensors: tuple, several: bool) -> Any:
    return tensors if several else tensors[0]


def _vectors(v: Any, who: str, like: _Group, create_graph: bool) -> tuple:
    """`v` as a tuple. RuntimeError when it does not fit what it is multiplied with."""
    given = _points(_group(v, "v", who).tensors, create_graph, leaves=False)
    if len(given) != len(like.tensors):
        raise RuntimeError(
            f"v is a tuple of invalid length: should be {len(like.tensors)} but got {len(given)}."
            if like.several
            else "The given v should contain a single Tensor."
        )
    for position, (one, other) in enumerate(zip(given, like.tensors)):
        if one.shape != other.shape:
            entry = f"Entry {position} in " if like.several else ""
            raise RuntimeError(f"{entry}v has invalid size: should be {other.shape} but got {one.shape}.")
    return given


def _one_element(tensors: tuple, source: str) -> None:
    if len(tensors) != 1 or tensors[0].numel() != 1:
        raise RuntimeError(f"The vector v can only be None if {source} a single Tensor with a single element.")


def _pull(outputs: tuple, inputs: tuple, vectors: tuple | None = None, create_graph: bool = False) -> tuple:
    """Gradients by those outputs that have a history; None for inputs that none depends on."""
    given = (None,) * len(outputs) if vectors is None else vectors
    pairs = [(out, v) for out, v in zip(outputs, given) if out is not None and out.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    roots, seeds = zip(*pairs)
    return grad(roots, inputs, seeds, retain_graph=True, create_graph=create_graph, allow_unused=True)


# Strict mode

_SILENT = {
    "outputs": "Output {i} of the user-provided function does not require gradients. The outputs must be computed in a differentiable manner "
    "from the input when running in strict mode.",
    "grad_inputs": "The gradient with respect to input {i} is independent of the inputs of the user-provided function. This is not allowed in "
    "strict mode.",
    "jacobian": "While computing the hessian, found that the jacobian of the user-provided function with respect to input {i} is independent of "
    "the input. This is not allowed in strict mode. You should ensure that your function is twice differentiable and that the jacobian depends "
    "on the inputs (this would be violated by a linear function for example).",
    "hessian": "The hessian of the user-provided function with respect to input {i} is independent of the input. This is not allowed in strict "
    "mode. You should ensure that your function is thrice differentiable and that the hessian depends on the inputs.",
}
_ABSENT = {
    "back": "The output of the user-provided function is independent of input {i}. This is not allowed in strict mode.",
    "back_trick": "The gradient with respect to the input is independent of entry {i} in the grad_outputs when using the double backward trick "
    "to compute forward mode gradients. This is not allowed in strict mode.",
    "double_back": "The jacobian of the user-provided function is independent of input {i}. This is not allowed in strict mode.",
    "double_back_trick": "The hessian of the user-provided function is independent of entry {i} in the grad_jacobian. This is not allowed in "
    "strict mode as it prevents from using the double backward trick to replace forward mode AD.",
}
_CONSTANT = "The {what} of the user-provided function is independent of input {i}. This is not allowed in strict mode when create_graph=True."


def _require(tensors: tuple, kind: str, strict: bool) -> None:
    """In strict mode, RuntimeError when one of the tensors is there but depends on nothing, or is not there."""
    if not strict:
        return
    for i, tensor in enumerate(tensors):
        if tensor is None:
            raise RuntimeError(_ABSENT["back"].format(i=i))
        if not tensor.requires_grad:
            raise RuntimeError(_SILENT[kind].format(i=i))


def _filled(grads: tuple, like: tuple, strict: bool, create_graph: bool, stage: str) -> tuple:
    """Zeros in place of absent gradients; RuntimeErrors of strict mode."""
    made = []
    for i, (one, other) in enumerate(zip(grads, like)):
        if one is None:
            if strict:
                raise RuntimeError(_ABSENT[stage].format(i=i))
            one = ops.zeros_like(other)
        elif strict and create_graph and not one.requires_grad:
            raise RuntimeError(_CONSTANT.format(what="hessian" if "double" in stage else "jacobian", i=i))
        made.append(one)
    return tuple(made)


# Products with Jacobians


def vjp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """(outputs, vector-Jacobian product) of `func` at `inputs`.

    Args:
        func: takes Tensors and gives a Tensor or a tuple of Tensors.
        inputs: a Tensor or a tuple of Tensors.
        v: shaped like the outputs; may be left out when there is one output of one element.
        create_graph: make the results differentiable.
        strict: refuse outputs that do not depend on an input, which give zeros otherwise.

    Raises:
        TypeError: for what is no Tensor.
        RuntimeError: for a `v` of another shape, and in strict mode.
    """
    with enable_grad():
        given = _group(inputs, "inputs", "vjp")
        points = _points(given.tensors, create_graph)
        outputs = _group(func(*points), "outputs of the user-provided function", "vjp")
        _require(outputs.tensors, "outputs", strict)
        if v is None:
            _one_element(outputs.tensors, "the user-provided function returns")
            vectors = None
        else:
            vectors = _vectors(v, "vjp", outputs, create_graph)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        found = _filled(_pull(outputs.tensors, points, vectors, create_graph), points, strict, create_graph, "back")
    return (
        _unpacked(_finished(outputs.tensors, create_graph), outputs.several),
        _unpacked(_finished(found, create_graph), given.several),
    )


def jvp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """(outputs, Jacobian-vector product) of `func` at `inputs`: the derivative of the pull-back, which is linear in its vectors.

    Arguments and errors are those of `vjp`, with `v` shaped like the inputs.
    """
    with enable_grad():
        given = _group(inputs, "inputs", "jvp")
        points = _points(given.tensors, create_graph)
        if v is None:
            _one_element(points, "the input to the user-provided function is")
            vectors = None
        else:
            vectors = _vectors(v, "jvp", _Group(given.several, points), create_graph)
        outputs = _group(func(*points), "outputs of the user-provided function", "jvp")
        _require(outputs.tensors, "outputs", strict)
        seeds = tuple(ops.zeros_like(out).requires_grad_() for out in outputs.tensors)
        pulled = _pull(outputs.tensors, points, seeds, create_graph=True)
        _require(pulled, "grad_inputs", strict)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        moved = _pull(pulled, seeds, vectors, create_graph)
        found = _filled(moved, outputs.tensors, strict, create_graph, "back_trick")
    return (
        _unpacked(_finished(outputs.tensors, create_graph), outputs.several),
        _unpacked(_finished(found, create_graph), outputs.several),
    )


# Jacobians


def jacobian(
    func: Callable,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of `func` at `inputs`: for each output and input a tensor of shape (*output, *input).

    Args:
        func, inputs, create_graph, strict: as of `vjp`.
        vectorize: changes nothing but what may be combined with it.
        strategy: "reverse-mode", row by row, or "forward-mode", column by column.

    Raises:
        TypeError: for what is no Tensor.
        RuntimeError: in strict mode, and for strict mode together with `vectorize` or "forward-mode".
        NotImplementedError: for "forward-mode" with `create_graph` or without `vectorize`.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs than inputs, "forward-mode" '
            'tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        _check_forward(create_graph, strict, vectorize)
        return _by_columns(func, inputs)
    with enable_grad():
        given = _group(inputs, "inputs", "jacobian")
        points = _points(given.tensors, create_graph)
        outputs = _group(func(*points), "outputs of the user-provided function", "jacobian")
        _require(outputs.tensors, "outputs", strict)
        if vectorize and strict:
            raise RuntimeError(
                "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. Please either set "
                "`strict=False` or `vectorize=False`."
            )
        rows = tuple(_rows(i, out, points, create_graph, strict) for i, out in enumerate(outputs.tensors))
    rows = _finished(rows, create_graph)
    return _unpacked(tuple(_unpacked(row, given.several) for row in rows), outputs.several)


def _rows(number: int, output: Tensor, points: tuple, create_graph: bool, strict: bool) -> tuple:
    """d output / d point for every point."""
    parts: list[list[Tensor]] = [[] for _ in points]
    flat = ops.reshape(output, (-1,))
    for index in range(output.numel()):
        for i, (found, point) in enumerate(zip(_pull((flat[index],), points, None, create_graph), points)):
            if found is None:
                if strict:
                    raise RuntimeError(
                        f"Output {number} of the user-provided function is independent of input {i}. This is not allowed in strict mode."
                    )
                found = ops.zeros_like(point)
            elif strict and create_graph and not found.requires_grad:
                raise RuntimeError(_CONSTANT.format(what="jacobian", i=number))
            parts[i].append(found)
    return tuple(
        ops.reshape(ops.stack(part), (*output.shape, *point.shape))
        if part
        else point.new_zeros((*output.shape, *point.shape))
        for part, point in zip(parts, points)
    )


def _check_forward(create_graph: bool, strict: bool, vectorize: bool) -> None:
    said = 'torch.autograd.functional.jacobian: `{0}` and `strategy="forward-mode"` are not supported together (yet). Please either set `{1}` or '
    hint = '`strategy="reverse-mode"`.'
    if create_graph:
        raise NotImplementedError(said.format("create_graph=True", "create_graph=False") + hint)
    if strict:
        raise RuntimeError(said.format("strict=True", "strict=False") + hint)
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for `vectorize=True`."
        )


def _by_columns(func: Callable, inputs: Any) -> Any:
    """The Jacobian by forward mode, a tangent for every element of the inputs."""
    given = _group(inputs, "inputs", "jacobian")
    columns: list[list[tuple]] = []
    outputs: Any = None
    for number, point in enumerate(given.tensors):
        columns.append([])
        for index in range(point.numel()):
            with forward_ad.dual_level():
                direction = ops.zeros((point.numel(),), dtype=point.dtype, device=point.device)
                direction[index] = 1
                duals = [
                    forward_ad.make_dual(p.detach(), ops.reshape(direction, p.shape)) if i == number else p.detach()
                    for i, p in enumerate(given.tensors)
                ]
                outputs = _group(func(*duals), "outputs of the user-provided function", "jacobian")
                parts = [forward_ad.unpack_dual(out) for out in outputs.tensors]
                columns[-1].append(tuple(ops.zeros_like(p.primal) if p.tangent is None else p.tangent for p in parts))
    if outputs is None:
        outputs = _group(func(*given.tensors), "outputs of the user-provided function", "jacobian")

    def block(number: int, out: Tensor, k: int) -> Tensor:
        shape = (*out.shape, *given.tensors[number].shape)
        found = [column[k] for column in columns[number]]
        return ops.reshape(ops.stack(found, -1), shape) if found else out.new_zeros(shape)

    rows = tuple(
        tuple(block(number, out, k) for number in range(len(given.tensors))) for k, out in enumerate(outputs.tensors)
    )
    return _unpacked(tuple(_unpacked(row, given.several) for row in rows), outputs.several)


# Second derivatives


def hessian(
    func: Callable,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a function whose result has one element: the Jacobian of its gradient, for each pair of inputs.

    Arguments and errors are those of `jacobian`; `outer_jacobian_strategy` is the strategy of the second derivative.
    """
    given = _group(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def single(*points: Tensor) -> Tensor:
        output = _group(func(*points), "outputs of the user-provided function", "hessian")
        _require(output.tensors, "outputs", strict)
        return _scalar(output, "hessian").squeeze()

    def gradient(*points: Tensor) -> tuple:
        if outer_jacobian_strategy == "forward-mode":
            points = tuple(p.requires_grad_(True) for p in points)
        found = jacobian(single, points, create_graph=True)
        _require(found, "jacobian", strict)
        return found

    found = jacobian(
        gradient,
        given.tensors,
        create_graph=create_graph,
        strict=strict,
        vectorize=vectorize,
        strategy=outer_jacobian_strategy,
    )
    return _unpacked(tuple(_unpacked(row, given.several) for row in found), given.several)


def _scalar(outputs: _Group, who: str) -> Tensor:
    """The one output. RuntimeError when there are several, or several elements."""
    if outputs.several:
        raise RuntimeError(f"The function given to {who} should return a single Tensor")
    if outputs.tensors[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {who} should contain a single element")
    return outputs.tensors[0]


def vhp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """(output, vector-Hessian product) of a function whose result has one element; `v` is shaped like the inputs."""
    return _second(func, inputs, v, create_graph, strict, "vhp")


def hvp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """(output, Hessian-vector product) of a function whose result has one element; `v` is shaped like the inputs."""
    return _second(func, inputs, v, create_graph, strict, "hvp")


def _second(func: Callable, inputs: Any, v: Any, create_graph: bool, strict: bool, who: str) -> tuple:
    with enable_grad():
        given = _group(inputs, "inputs", who)
        points = _points(given.tensors, create_graph)
        if v is None:
            _one_element(points, "the input to the user-provided function is")
            vectors = None
        else:
            vectors = _vectors(v, who, _Group(given.several, points), create_graph)
        outputs = _group(func(*points), "outputs of the user-provided function", who)
        _require(outputs.tensors, "outputs", strict)
        output = _scalar(outputs, who)
        first = _pull((output,), points, None, create_graph=True)
        _require(first, "jacobian", strict)
        if who == "hvp":  # the pull-back of the gradient, as a function of its vectors
            seeds = tuple(ops.zeros_like(p).requires_grad_() for p in points)
            roots, leaves, stage = _pull(first, points, seeds, create_graph=True), seeds, "double_back_trick"
            _require(first, "hessian", strict)
        else:
            roots, leaves, stage = first, points, "double_back"
    with set_grad_enabled(create_graph or is_grad_enabled()):
        found = _filled(_pull(roots, leaves, vectors, create_graph), points, strict, create_graph, stage)
    return _finished(output, create_graph), _unpacked(_finished(found, create_graph), given.several)


def _construct_standard_basis_for(tensors: tuple, tensor_numels: tuple) -> tuple:
    """The rows of an identity matrix of as many rows as all tensors have elements, of which each tensor gets the columns of its own elements."""
    total = sum(tensor_numels)
    found, start = [], 0
    for tensor, count in zip(tensors, tensor_numels):
        rows = tensor.new_zeros(total, count)
        rows.diagonal(-start).fill_(1)
        found.append(rows)
        start += count
    return tuple(found)
