"""`gradcheck` and `gradgradcheck`: analytic derivatives against finite differences.

Real inputs are perturbed by +-eps (central differences); of complex inputs the real and the imaginary part. With a cotangent of one, PyTorch's
gradient of f is that of Re(f): d Re(f)/dx + i d Re(f)/dy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._autograd.api import grad
from .._autograd.modes import enable_grad, no_grad
from .._dispatch import ops
from .._pending import exposed, settled
from .._tensor import Tensor


class GradcheckError(RuntimeError):
    """A derivative does not agree with finite differences, or something else about it is wrong."""


def _differentiable(values: Any) -> list[Tensor]:
    values = values if isinstance(values, (tuple, list)) else (values,)
    return [v for v in values if isinstance(v, Tensor) and v.dtype.category > 1]


def _numeric(func: Callable, inputs: tuple, target: Tensor, eps: float) -> list[np.ndarray]:
    """For each output: d(output)/d(target) as a matrix of shape (target elements, output elements)."""
    data = exposed(target)
    flat_index = list(np.ndindex(data.shape))
    rows: list[list[np.ndarray]] = []
    directions = (eps, 1j * eps) if target.dtype.is_complex else (eps,)
    for index in flat_index:
        per_direction = []
        original = data[index]
        for step in directions:
            results = []
            for sign in (1, -1):
                data[index] = original + sign * step
                results.append(
                    [
                        settled(o).astype(np.result_type(settled(o), np.float64)).ravel()
                        for o in _differentiable(func(*inputs))
                    ]
                )
            data[index] = original
            per_direction.append([(up - down) / (2 * eps) for up, down in zip(*results)])
        if len(directions) == 1:
            rows.append(per_direction[0])
        else:
            rows.append([re.real + 1j * im.real for re, im in zip(*per_direction)])
    outputs = len(rows[0]) if rows else 0
    return [np.array([row[k] for row in rows]) for k in range(outputs)]


def _analytic(output: Tensor, target: Tensor, number: int, func: Callable, inputs: tuple) -> np.ndarray | None:
    columns = []
    flat = ops.reshape(output, (-1,))
    for k in range(output.numel()):
        seed = ops.zeros_like(flat)
        settled(seed)[k] = 1
        (found,) = grad(flat, (target,), (seed,), retain_graph=True, allow_unused=True)
        if found is None:
            columns.append(np.zeros(target.numel(), settled(target).dtype))
            continue
        if found.shape != target.shape or found.dtype is not target.dtype:
            raise GradcheckError(
                f"Backward is not returning gradients of the input's shape and dtype: {tuple(found.shape)}, {found.dtype}"
            )
        columns.append(np.array(settled(found.detach())).ravel())
    return np.array(columns).T if columns else None


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
    """Whether the gradients of `func` at float64 (or complex128) inputs that require grad agree with finite differences.

    GradcheckError says where they do not, or False is returned without `raise_exception`.
    """
    if check_forward_ad:
        raise NotImplementedError("gradcheck: forward-mode automatic differentiation is not implemented")
    points = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    try:
        _check(func, points, eps, atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check(func: Callable, inputs: tuple, eps: float, atol: float, rtol: float) -> None:
    targets = [t for t in inputs if isinstance(t, Tensor) and t.requires_grad]
    if not targets:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have requires_grad=True."
        )
    outputs = _differentiable(func(*inputs))
    for position, target in enumerate(targets):
        with no_grad():
            numeric = _numeric(func, inputs, target, eps)
        for number, output in enumerate(outputs):
            if not output.requires_grad:
                if number < len(numeric) and np.any(numeric[number]):
                    raise GradcheckError("Numerical gradient for function expected to be zero")
                continue
            analytic = _analytic(output, target, number, func, inputs)
            if analytic is None:
                continue
            expected: Any = numeric[number].reshape(analytic.shape) if numeric else analytic
            if not target.dtype.is_complex:
                expected = expected.real
            if not np.allclose(analytic, expected, rtol=rtol, atol=atol, equal_nan=True):
                raise GradcheckError(
                    f"Jacobian mismatch for output {number} with respect to input {position},\nnumerical:{expected}\nanalytical:{analytic}\n"
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
    **_: Any,
) -> bool:
    """`gradcheck` of the gradient of `func`: the second derivative."""
    points = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    outputs = [o for o in _differentiable(func(*points)) if o.requires_grad]
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        seeds = []
        for output in outputs:
            seed = ops.zeros_like(output).detach()
            settled(seed)[...] = rng.standard_normal(seed.shape)
            seeds.append(seed.requires_grad_())
    else:
        seeds = list(grad_outputs) if isinstance(grad_outputs, (tuple, list)) else [grad_outputs]
    count = len(points)

    def gradient(*args: Any) -> tuple:
        values, cotangents = args[:count], args[count:]
        with enable_grad():  # finite differences are taken without
            outs = [o for o in _differentiable(func(*values)) if o.requires_grad]
            wanted = tuple(v for v in values if isinstance(v, Tensor) and v.requires_grad)
            return grad(outs, wanted, list(cotangents), create_graph=True, allow_unused=True, materialize_grads=True)

    return gradcheck(gradient, (*points, *seeds), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception)
