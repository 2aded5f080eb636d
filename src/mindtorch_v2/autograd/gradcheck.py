"""`gradcheck` and `gradgradcheck`: derivatives against finite differences.

Note [Jacobians]
A Jacobian is a matrix of (elements of the input, elements of the output). Inputs are perturbed by +-eps along the real axis and, if they are complex, along
the imaginary one. Gradients are those of a real function: of a complex output the real and the imaginary part are looked at one after the other,
with cotangents 1 and i; the gradient for a complex input is d/dx + i d/dy. Tangents are taken in both directions as they are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._autograd.api import grad
from .._autograd.modes import enable_grad, no_grad
from .._dispatch import ops
from .._imports import outside
from .._pending import exposed, settled
from .._tensor import Tensor
from ..sparse import _is_sparse_variable, _of_dense_variables
from . import forward_ad
from ._functions import UndefinedGrad


class GradcheckError(RuntimeError):
    """A derivative does not agree with finite differences, or something else about it is wrong."""


def _as_tuple(values: Any) -> tuple:
    return tuple(values) if isinstance(values, (tuple, list)) else (values,)


def _is_smooth(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype.category > 1


def _check_inputs(inputs: tuple) -> None:
    found = False
    for number, value in enumerate(inputs):
        if not (isinstance(value, Tensor) and value.requires_grad):
            continue
        found = True
        if value.dtype.itemsize != (16 if value.dtype.is_complex else 8):
            warnings.warn(
                f"Input #{number} requires gradient and is not a double precision floating point or complex. This check will likely fail if all "
                "the inputs are not of double precision floating point or complex. ",
                stacklevel=4,
            )
        if any(stride == 0 and n > 1 for stride, n in zip(value.stride(), value.shape)):
            raise RuntimeError(
                f"The {number}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping to be able to "
                "compute the numerical gradients correctly. You should call .contiguous on the input before passing it to gradcheck."
            )
    if not found:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )


# Jacobians


def _numeric(func: Callable, inputs: tuple, target: Tensor, eps: float) -> list[list[np.ndarray]]:
    """For each output that is a float, the matrices of its derivatives along the real axis of the target, and the imaginary one."""
    data = _Elements(target)
    directions = (eps, 1j * eps) if target.dtype.is_complex else (eps,)
    rows: list[list[list[np.ndarray]]] = []  # by element, direction, output
    for index in np.ndindex(data.shape):
        original = data[index]
        row = []
        for step in directions:
            sides = []
            for sign in (1, -1):
                data[index] = original + sign * step
                sides.append([(o.shape, o.dtype, _values(o)) for o in _as_tuple(func(*inputs)) if _is_smooth(o)])
                data[index] = original
            for up, down in zip(*sides):
                _check_alike(up, down, index, eps)
            row.append([(up[2] - down[2]) / (2 * eps) for up, down in zip(*sides)])
        rows.append(row)
    outputs = len(rows[0][0]) if rows else 0
    return [[np.array([row[d][k] for row in rows]) for d in range(len(directions))] for k in range(outputs)]


class _Elements:
    """The elements of a tensor as an array's, to be read and written; those of a wrapper by its operators."""

    def __init__(self, tensor: Tensor) -> None:
        payload = exposed(tensor)
        self.shape = tuple(tensor.shape)
        self.array = payload if isinstance(payload, np.ndarray) else None
        self.tensor = tensor

    def __getitem__(self, index: tuple) -> Any:
        return (
            _values(self.tensor)[np.ravel_multi_index(index, self.shape)] if self.array is None else self.array[index]
        )

    def __setitem__(self, index: tuple, value: Any) -> None:
        if self.array is not None:
            self.array[index] = value
            return
        with no_grad():
            place = self.tensor.detach()
            for number in index:
                place = place.select(0, number)
            place.fill_(complex(value) if self.tensor.dtype.is_complex else float(value))


def _values(tensor: Tensor) -> np.ndarray:
    values = settled(tensor.detach())
    if not isinstance(values, np.ndarray):  # a wrapper, which is copied into a plain tensor
        with no_grad():
            values = settled(ops.copy_(ops.empty(tuple(tensor.shape), dtype=tensor.dtype), tensor.detach()))
    return np.array(values, np.result_type(values, np.float64)).ravel()


def _check_alike(one: tuple, other: tuple, index: tuple, eps: float) -> None:
    for what, a, b in zip(("shape", "dtype"), one, other):
        if a != b:
            raise AssertionError(
                f"Expected `func` to return outputs with the same {what} when inputs are perturbed on index {index} by {eps}, but got: {what}s "
                f"{a} and {b}."
            )


def _analytic(
    output: Tensor, targets: Sequence[Tensor], cotangent: complex, nondet_tol: float, check_dtypes: bool
) -> list[np.ndarray]:
    """The gradients of every element of an output, computed twice, by target."""
    first, second = (_gradient_rows(output, targets, cotangent, check_dtypes) for _ in range(2))
    for one, other in zip(first, second):
        if one.size and np.max(np.abs(one - other)) > nondet_tol:
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different values, "
                f"although analytical gradient matches numerical gradient.The tolerance for nondeterminism was {nondet_tol}."
            )
    return first


def _gradient_rows(output: Tensor, targets: Sequence[Tensor], cotangent: complex, check_dtypes: bool) -> list:
    rows: list[list[np.ndarray]] = [[] for _ in targets]
    for k in range(output.numel()):
        seed = ops.zeros((output.numel(),), dtype=output.dtype)
        settled(seed)[k] = cotangent
        found = grad((output,), targets, (ops.reshape(seed, output.shape),), retain_graph=True, allow_unused=True)
        for target, one, row in zip(targets, found, rows):
            if one is None:
                row.append(np.zeros(target.numel()))
                continue
            if one.dtype is not target.dtype and check_dtypes:
                raise GradcheckError("Gradient has dtype mismatch")
            if one.shape != target.shape:
                raise GradcheckError("Analytical gradient has incorrect size")
            row.append(_values(one))
    return [np.array(row).T if row else np.zeros((t.numel(), 0)) for t, row in zip(targets, rows)]


def _tangents(func: Callable, inputs: tuple, number: int, step: complex, wanted: list[int]) -> list[np.ndarray]:
    """For each of the wanted outputs, the matrix of its tangents along one axis of an input."""
    rows: list[list[np.ndarray]] = [[] for _ in wanted]
    for k in range(inputs[number].numel()):
        with forward_ad.dual_level():
            duals = [
                forward_ad.make_dual(value.detach(), _direction(value, k if i == number else None, step))
                if isinstance(value, Tensor) and value.requires_grad
                else value
                for i, value in enumerate(inputs)
            ]
            outputs = _as_tuple(func(*duals))
            for place, row in zip(wanted, rows):
                tangent = forward_ad.unpack_dual(outputs[place]).tangent
                row.append(np.zeros(outputs[place].numel()) if tangent is None else _values(tangent))
    return [np.array(row) for row in rows]


def _direction(like: Tensor, k: int | None, step: complex) -> Tensor:
    made = ops.zeros((like.numel(),), dtype=like.dtype)
    if k is not None:
        settled(made)[k] = step
    return ops.reshape(made, like.shape)


def _agree(analytic: np.ndarray, numeric: np.ndarray, rtol: float, atol: float) -> bool:
    return np.allclose(analytic, numeric, rtol=rtol, atol=atol, equal_nan=True)


def _mismatch(part: str, mode: str, output: int, target: int, numeric: Any, analytic: Any) -> GradcheckError:
    return GradcheckError(
        f"{part}Jacobian {mode}mismatch for output {output} with respect to input {target},\nnumerical:{numeric}\nanalytical:{analytic}\n"
    )


# Checks


def gradcheck(
    func: Callable,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the derivatives of `func` agree with finite differences.

    Args:
        func: takes the inputs and gives a Tensor or a tuple of Tensors.
        inputs: a Tensor or a tuple; those that require grad are differentiated, and should be float64 or complex128.
        eps, atol, rtol: the step of the differences, and how far apart the derivatives may be.
        raise_exception: raise rather than return False.
        nondet_tol: how far apart the gradients of two passes may be.
        check_grad_dtypes: whether gradients must have the dtype of their input.
        check_batched_grad, check_batched_forward_grad: whether derivatives of a batch of cotangents or tangents must be those of single ones.
        check_forward_ad, check_backward_ad: which modes are checked.
        check_undefined_grad: whether no gradient of an output is taken for one of zeros.
        masked: whether a dense result of a sparse one has gradients where it has specified elements only. Of sparse inputs specified elements are variables.
        fast_mode: taken, and changes nothing: the whole Jacobian is compared.

    Raises:
        GradcheckError: where they do not agree.
        ValueError: when no input requires grad.
        AssertionError: when the shape or dtype of an output depends on the values.
    """
    for needed, message in (
        (
            check_forward_ad or check_backward_ad,
            "Expected at least one of check_forward_ad or check_backward_ad to be True",
        ),
        (
            check_backward_ad or not check_batched_grad,
            "Setting check_batched_grad=True requires check_backward_ad to be True",
        ),
        (
            check_forward_ad or not check_batched_forward_grad,
            "Setting check_batched_forward_grad=True requires check_forward_ad to be True",
        ),
    ):
        if not needed:
            raise AssertionError(message)
    points = _as_tuple(inputs)
    if any(map(_is_sparse_variable, points)):  # whose specified elements are the variables
        func, points = _of_dense_variables(func, points, bool(masked), False)
    try:
        _check_inputs(points)
        outputs = _as_tuple(func(*points))
        if any(isinstance(o, Tensor) and o.requires_grad for o in outputs):
            differences = [
                (i, t, _numeric(func, points, t, eps))
                for i, t in enumerate(p for p in points if isinstance(p, Tensor) and p.requires_grad)
            ]
            if check_backward_ad:
                _check_gradients(outputs, points, differences, rtol, atol, nondet_tol, check_grad_dtypes)
            if check_forward_ad:
                _check_tangents(func, outputs, points, differences, rtol, atol)
            if check_backward_ad:
                _check_linear(outputs, points)
                if check_batched_grad:
                    _check_batched(outputs, points)
                if check_undefined_grad:
                    _check_undefined(func, points)
        else:
            _check_constant(func, points, eps)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check_constant(func: Callable, inputs: tuple, eps: float) -> None:
    """GradcheckError when outputs without history do depend on an input."""
    for target in inputs:
        if isinstance(target, Tensor) and target.requires_grad:
            for matrices in _numeric(func, inputs, target, eps):
                if any(np.max(np.abs(m), initial=0) > eps for m in matrices):
                    raise GradcheckError("Numerical gradient for function expected to be zero")


def _check_gradients(
    outputs: tuple, inputs: tuple, differences: list, rtol: float, atol: float, nondet_tol: float, dtypes: bool
) -> None:
    targets = [t for _, t, _ in differences]
    complex_outputs = any(isinstance(o, Tensor) and o.dtype.is_complex for o in outputs)
    for cotangent in (1j, 1) if complex_outputs else (1,):
        number = -1
        for place, output in enumerate(o for o in outputs if _is_smooth(o)):
            if not output.requires_grad or (cotangent == 1j and not output.dtype.is_complex):
                continue
            number += 1
            part = "imaginary" if cotangent == 1j else "real"
            said = f"While considering the {part} part of complex outputs only, " if output.dtype.is_complex else ""
            for (i, target, numeric), found in zip(
                differences, _analytic(output, targets, cotangent, nondet_tol, dtypes)
            ):
                if not target.numel():
                    continue
                along = [m.imag if cotangent == 1j else m.real for m in numeric[place]]
                expected = along[0] + 1j * along[1] if target.dtype.is_complex else along[0]
                if not _agree(found, expected, rtol, atol):
                    raise _mismatch(said, "", number, i, expected, found)


def _check_tangents(func: Callable, outputs: tuple, inputs: tuple, differences: list, rtol: float, atol: float) -> None:
    wanted = [k for k, o in enumerate(outputs) if isinstance(o, Tensor) and o.requires_grad]
    smooth = [k for k, o in enumerate(outputs) if _is_smooth(o)]
    for i, target, numeric in differences:
        place = next(k for k, value in enumerate(inputs) if value is target)
        if not target.numel():
            continue
        is_complex = target.dtype.is_complex
        for axis in (1, 0) if is_complex else (0,):
            found = _tangents(func, inputs, place, 1j if axis else 1, wanted)
            said = f"While considering the {'imaginary' if axis else 'real'} part of complex inputs only, "
            for number, (k, tangents) in enumerate(zip(wanted, found)):
                expected = numeric[smooth.index(k)][axis]
                if not _agree(tangents, expected, rtol, atol):
                    raise _mismatch(
                        said if is_complex else "", "computed with forward mode ", number, i, expected, tangents
                    )


def _check_linear(outputs: tuple, inputs: tuple) -> None:
    """GradcheckError when cotangents of zeros do not give gradients of zeros."""
    targets = [t for t in inputs if isinstance(t, Tensor) and t.requires_grad]
    roots = [o for o in outputs if isinstance(o, Tensor) and o.requires_grad]
    found = grad(roots, targets, [ops.zeros_like(o) for o in roots], allow_unused=True, retain_graph=True)
    for one, target in zip(found, targets):
        if one is None:
            continue
        if np.any(_values(one)):
            raise GradcheckError("backward not multiplied by grad_output")
        for what, same in (
            ("type", one.dtype is target.dtype),
            ("device", one.device == target.device),
            ("size", one.shape == target.shape),
        ):
            if not same:
                raise GradcheckError(f"grad is incorrect {what}")


_UNDEFINED = (
    'Please look at "Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"',
    "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may break existing callers of "
    'this function. If this is true for you, you can call this function with "check_undefined_grad=False" to disable the feature',
)


def _check_undefined(func: Callable, inputs: tuple) -> None:
    """GradcheckError when outputs to which no gradient comes, all or one of them, are not taken for outputs with gradients of zeros."""
    targets = [t for t in inputs if isinstance(t, Tensor) and t.requires_grad]
    count = len([o for o in _as_tuple(func(*inputs)) if isinstance(o, Tensor) and o.requires_grad])
    cases = [set(range(count))] + ([{k} for k in range(count)] if count > 1 else [])
    for absent in cases if targets else ():
        roots = [o for o in _as_tuple(func(*inputs)) if isinstance(o, Tensor) and o.requires_grad]
        roots = [UndefinedGrad()(o) if k in absent else o for k, o in enumerate(roots)]
        problem = None
        try:
            found = grad(roots, targets, [ops.zeros_like(o) for o in roots], allow_unused=True)
        except RuntimeError:
            problem = "Expected backward function to handle undefined output grads. "
        else:
            if any(one is not None and np.any(_values(one)) for one in found):
                problem = (
                    "Expected all input grads to be undefined or zero when all output grads are undefined or zero. "
                )
        if problem is not None:
            warnings.warn(_UNDEFINED[1], stacklevel=4)
            raise GradcheckError(problem + _UNDEFINED[0])


def _check_batched(outputs: tuple, inputs: tuple) -> None:
    """GradcheckError when the gradients of a batch of cotangents are not those of each."""
    targets = [t for t in inputs if isinstance(t, Tensor) and t.requires_grad]
    rng = outside("numpy.random").default_rng(0)
    for number, output in enumerate(o for o in outputs if isinstance(o, Tensor) and o.requires_grad):
        seeds = ops.zeros((2, *output.shape), dtype=output.dtype)
        settled(seeds)[...] = rng.standard_normal(seeds.shape)
        each = [grad((output,), targets, (seeds[k],), retain_graph=True, allow_unused=True) for k in range(2)]
        both = grad((output,), targets, (seeds,), retain_graph=True, allow_unused=True, is_grads_batched=True)
        for i, found in enumerate(both):
            expected = [row[i] for row in each]
            if found is not None and not np.allclose(_values(found), np.concatenate([_values(e) for e in expected])):
                raise GradcheckError(
                    f"For output {number} and input {i}:\n\nBatched gradients differ from those of single cotangents.\n\nGot:\n{found}\n\n"
                    f"Expected:\n{ops.stack(expected)}"
                )


def gradgradcheck(
    func: Callable,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """`gradcheck` of the gradient of `func`: the second derivative.

    grad_outputs: the cotangents, random ones by default. The other arguments are those of `gradcheck`.
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    points = _as_tuple(inputs)
    if grad_outputs is None:
        rng = outside("numpy.random").default_rng(0)
        seeds = []
        for output in _as_tuple(func(*points)):
            if not (isinstance(output, Tensor) and output.requires_grad):
                continue
            noise = ops.zeros(tuple(output.shape), dtype=output.dtype)
            settled(noise)[...] = rng.standard_normal(noise.shape)
            with no_grad():
                seed = ops.copy_(ops.zeros_like(output).detach(), noise)
            seeds.append(seed.requires_grad_())
    else:
        seeds = list(_as_tuple(grad_outputs))
    count = len(points)
    smooth = [isinstance(v, Tensor) and v.requires_grad for v in (*points, *seeds)]

    def gradient(*args: Any) -> tuple:
        with enable_grad():
            given = [a.requires_grad_() if wanted else a for a, wanted in zip(args, smooth)]
            values, cotangents = given[:count], given[count:]
            outs = [o for o in _as_tuple(func(*values)) if isinstance(o, Tensor) and o.requires_grad]
            targets = tuple(v for v, wanted in zip(values, smooth) if wanted)
            found = grad(outs, targets, cotangents, create_graph=True, allow_unused=True)
            return tuple(g for g in found if g is not None)

    return gradcheck(
        gradient,
        (*points, *seeds),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
    )


# What older programs call


def _tensor(values: np.ndarray, like: Tensor) -> Tensor:
    made = ops.zeros(values.shape, dtype=like.dtype)
    settled(made)[...] = values
    return made


def _deprecated(name: str, output: Any, grad_out: float) -> None:
    warnings.warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. We are deprecating it and it will be removed in a future "
        "version of PyTorch. If you have a specific use for this or feature request for this to be a stable API, please file us an issue at "
        "https://github.com/pytorch/pytorch/issues/new",
        FutureWarning,
        stacklevel=3,
    )
    if grad_out != 1.0:
        raise ValueError(f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0.")
    if any(isinstance(o, Tensor) and o.dtype.is_complex for o in _as_tuple(output)):
        raise ValueError(
            f"Expected output to be non-complex. {name} no longer supports functions that return complex outputs."
        )


def get_numerical_jacobian(
    fn: Callable, inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
) -> tuple:
    """The Jacobian of the first output for each of `target` (the inputs by default), by finite differences."""
    points = _as_tuple(inputs)

    def called(*args: Any) -> Any:
        return fn(args)

    _deprecated("get_numerical_jacobian", fn(points), grad_out)
    wanted = points if target is None else _as_tuple(target)
    found = []
    for one in wanted:
        if isinstance(one, Tensor) and one.requires_grad:
            along = [np.real(m) for m in _numeric(called, points, one, eps)[0]]
            found.append(_tensor(along[0] + 1j * along[1] if one.dtype.is_complex else along[0], one))
    return tuple(found)


def get_analytical_jacobian(inputs: Any, output: Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0) -> tuple:
    """(Jacobians by gradients, whether two passes agree, whether shapes are right, whether dtypes are right)."""
    _deprecated("get_analytical_jacobian", output, grad_out)
    targets = [t for t in _as_tuple(inputs) if isinstance(t, Tensor) and t.requires_grad]
    rows = [_gradient_rows(output, targets, 1, False) for _ in range(2)]
    reentrant = all(not a.size or np.max(np.abs(a - b)) <= nondet_tol for a, b in zip(*rows))
    found = grad((output,), targets, (ops.ones_like(output),), retain_graph=True, allow_unused=True)
    right = all(g is None or g.dtype is t.dtype for g, t in zip(found, targets))
    return tuple(_tensor(m, t) for m, t in zip(rows[0], targets)), reentrant, True, right
