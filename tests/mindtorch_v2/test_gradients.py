"""The derivative of every operator that has one, against finite differences in float64, and the second derivatives with them.

Arguments come from the strategies of the property tests in their gradient mode: float64, small, away from kinks and ties.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from strategies import Case, Operand, Row, draw_case, read_rows, seeded
from strategies.outcomes import is_tensor, leaves

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import ops
from mindtorch_v2.autograd import GradcheckError, gradcheck, gradgradcheck

CASES = 3
ELEMENTS = 200
ROWS = [row for row in read_rows() if row.differentiable]

NOT_SMOOTH: dict[str, str] = {
    "_standard_gamma": "its derivative is that of a sample at a fixed quantile, not at fixed random numbers, of which others may be refused",
}
"""By operator: why finite differences say nothing of its derivative."""

_NONE = "PyTorch has no derivative of the operator"

FAILING: dict[str, str] = (
    {
        name: _NONE
        for name in (
            "geqrf",
            "floor_divide",
            "heaviside",
            "scatter.reduce",
            "scatter.value_reduce",
            "_unique2",
            "unique_dim",
            "unique_consecutive",
            "bincount",
            "histogram.bins_tensor",
            "histogram.bin_ct",
            "bernoulli.p",
            "_cdist_backward",
            "_pdist_backward",
            "_weight_int8pack_mm",
            "_segment_reduce_backward",
            "linalg_ldl_factor_ex",
            "linalg_ldl_solve",
            "_ctc_loss_backward",
            "_scaled_dot_product_flash_attention_for_cpu_backward",
            "_test_functorch_fallback",
        )
    }
    | {
        name: "torch_npu has no derivative of the operator"
        for name in (
            "npu_rms_norm_backward",
            "npu_rotary_mul_backward",
            "npu_swiglu_backward",
            "_npu_attention_backward",
            "_npu_attention_varlen_backward",
            "npu_moe_token_permute_grad",
            "npu_moe_token_unpermute_grad",
        )
    }
    | {name: "PyTorch has a derivative of the second argument only" for name in ("special_zeta", "igamma", "igammac")}
)
"""By operator: why the first derivative fails today. One that passes fails the run."""

NO_SECOND: dict[str, str] = (
    FAILING
    | {
        name: _NONE
        for name in (
            "_cdist_forward",
            "_pdist_forward",
            "segment_reduce",
            "_ctc_loss",
            "_scaled_dot_product_flash_attention_for_cpu",
            "_standard_gamma",
            "npu_rms_norm",
            "npu_rotary_mul",
            "npu_swiglu",
            "_npu_attention",
            "_npu_attention_varlen",
            "npu_moe_token_permute",
            "npu_moe_token_unpermute",
        )
    }
    | {
        name: "it reads one triangle of the matrix, but its derivative is that of a symmetric matrix or of a full factor, as in PyTorch"
        for name in ("_linalg_eigh", "cholesky_solve", "cholesky_inverse")
    }
)
"""By operator: why its second derivative is not checked or not there. One that passes fails the run."""


_TRIANGLE = "it reads one triangle of the matrix, but its derivative is that of a symmetric matrix or of a full factor, as in PyTorch"
_STATISTICS = "its derivative takes the mean and the deviation for functions of the input, as in PyTorch"
_DRAWN = "its derivative is zero, as in PyTorch, though what is drawn moves with the mean and the deviation"
CONVENTIONS: dict[str, str] = {
    "index_put": "of values that are written to one place each gets the gradient, as in PyTorch",
    "cholesky_solve": _TRIANGLE,
    "cholesky_inverse": _TRIANGLE,
    "_linalg_eigh": _TRIANGLE,
    "linalg_eig": "eigenvectors are free up to a phase",
    "nll_loss_backward": "its derivative sums the weights itself, as in PyTorch",
    "nll_loss2d_backward": "its derivative sums the weights itself, as in PyTorch",
    "_ctc_loss": "its derivative takes the input for logarithms of probabilities that sum to one, as in PyTorch",
    "embedding": "the row of padding gets no gradient",
    "mkldnn_rnn_layer": "the workspace, which its backward operator alone reads, has no gradient, as in PyTorch",
    "_test_autograd_multiple_dispatch.fullcoverage": "an operator of tests, whose derivative is one to know it by, as in PyTorch",
    "native_layer_norm_backward": _STATISTICS,
    "native_group_norm_backward": _STATISTICS,
    "native_batch_norm_backward": _STATISTICS,
    "normal.Tensor_Tensor": _DRAWN,
    "normal.Tensor_float": _DRAWN,
    "normal.float_Tensor": _DRAWN,
}
"""By operator: why its first derivative is not that of finite differences. One that passes fails the run."""


def cases_of(row: Row) -> list[Case]:
    """The first few cases that have something to differentiate; the same in every run."""
    found = []
    for number in range(40):
        case = draw_case(seeded(f"{row.name}/{number}", gradient=True), row)
        size = sum(v.numel for v in _operands(case))
        if any(_differentiable(v) and v.numel for v in _points(case)) and size <= ELEMENTS:
            found.append(case)
            if len(found) == CASES:
                break
    return found


def _operands(case: Case) -> list[Operand]:
    found = []
    for value in case.arguments.values():
        found += [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, Operand)]
    return found


def _points(case: Case) -> list[Operand]:
    return [v for name in case.row.differentiable for v in _as_list(case.arguments.get(name)) if isinstance(v, Operand)]


def _as_list(value: Any) -> list:
    return value if isinstance(value, list) else [value]


def _differentiable(operand: Operand) -> bool:
    return operand.dtype in ("float64", "complex128")


def function_of(case: Case) -> tuple[Any, tuple]:
    """The operator as a function of its differentiable arguments only, and these as leaves that require grad."""
    row = case.row
    places: list[tuple[str, int | None]] = []
    points = []
    for name in row.differentiable:
        value = case.arguments.get(name)
        for index, operand in enumerate(_as_list(value)):
            if isinstance(operand, Operand) and _differentiable(operand):
                places.append((name, index if isinstance(value, list) else None))
                points.append(operand.build(torch, requires_grad=True))

    def call(*given: Any) -> Any:
        positional, keywords = case.build(torch)
        names = [p.name for p, _ in case.split()[0]]
        for (name, index), tensor in zip(places, given):
            holder: Any = positional if name in names else keywords
            key: Any = names.index(name) if name in names else name
            if index is None:
                # An operator that writes to its argument gets a tensor that may be written to.
                holder[key] = tensor.clone() if row.is_inplace and key == 0 else tensor
            else:
                holder[key][index] = tensor
        torch.manual_seed(0)
        result = getattr(ops, row.base_name)(*positional, **keywords)
        kept = [leaf for leaf in leaves(result) if is_tensor(leaf) and leaf.requires_grad]
        return tuple(kept) if len(kept) != 1 else kept[0]

    return call, tuple(points)


def check(row: Row, checker: Any, **options: Any) -> None:
    cases = cases_of(row)
    assert cases, f"{row.name}: no case with a differentiable argument; the strategy of {row.rule} draws none"
    checked = 0
    for case in cases:
        call, points = function_of(case)
        line = f"reproduce: {case.show(f'ops.{row.base_name}')}"
        try:
            output = call(*points)
            if isinstance(output, tuple) and not output:
                continue
            assert checker(call, points, **options), line
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error}\n{line}") from error
        checked += 1
    assert checked, f"{row.name}: no result of {len(cases)} cases requires grad"


def _params(*reasons: dict[str, str]) -> list[Any]:
    found = []
    for row in ROWS:
        reason = next((r[row.name] for r in reasons if row.name in r), None)
        marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
        found.append(pytest.param(row, id=row.name, marks=marks))
    return found


@pytest.mark.parametrize("row", _params(NOT_SMOOTH, FAILING, CONVENTIONS))
def test_derivative(row: Row) -> None:
    check(row, gradcheck)


@pytest.mark.parametrize("row", _params(NOT_SMOOTH, FAILING, NO_SECOND))
def test_second_derivative(row: Row) -> None:
    check(row, gradgradcheck)


def test_exclusions_name_operators() -> None:
    names = {row.name for row in ROWS}
    assert not (set(NOT_SMOOTH) | set(FAILING) | set(NO_SECOND)) - names


# gradcheck itself


def _leaf(*values: float) -> Any:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


class Wrong(torch.autograd.Function):
    """x * x with the derivative x."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.saved_tensors[0]


class WrongSecond(torch.autograd.Function):
    """x ** 3 with a right derivative that itself has a wrong one."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * 3 * x.detach() * x.detach()


def test_gradcheck_finds_a_wrong_derivative() -> None:
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(Wrong.apply, (_leaf(0.5, -1.5),))
    assert gradcheck(Wrong.apply, (_leaf(0.5, -1.5),), raise_exception=False) is False


def test_gradcheck_finds_a_missing_derivative() -> None:
    with pytest.raises(GradcheckError):
        gradcheck(lambda x: (x * x.detach()).sum(), (_leaf(0.5, -1.5),))


def test_gradcheck_finds_a_wrong_partial_derivative() -> None:
    with pytest.raises(GradcheckError):
        gradcheck(lambda x, y: x * y.detach() + 0 * y, (_leaf(0.5), _leaf(2.0)))


def test_gradcheck_accepts_right_ones_of_several_arguments() -> None:
    assert gradcheck(lambda x, y: (x * y, x / y), (_leaf(0.5, 2.0), _leaf(1.5, -1.0)))


def test_gradcheck_of_complex_arguments() -> None:
    z = torch.tensor([0.5 + 1j, -1.0 - 0.3j], dtype=torch.complex128, requires_grad=True)
    assert gradcheck(lambda z: z * z, (z,))
    assert gradcheck(lambda z: (z * z.conj()).real, (z,))
    with pytest.raises(GradcheckError):
        gradcheck(lambda z: (z * z.detach().conj()).real, (z,))


def test_gradgradcheck_finds_a_wrong_second_derivative() -> None:
    assert gradcheck(WrongSecond.apply, (_leaf(0.5, -1.5),))
    with pytest.raises(GradcheckError):
        gradgradcheck(WrongSecond.apply, (_leaf(0.5, -1.5),))


def test_gradcheck_wants_something_to_differentiate() -> None:
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(lambda x: x * 2, (torch.ones(2, dtype=torch.float64),))


# Second order, by hand


def _second(function: Any, x: float) -> float:
    point = _leaf(x)
    (first,) = torch.autograd.grad(function(point).sum(), point, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), point)
    return second.item()


@pytest.mark.parametrize(
    ("function", "x", "expected"),
    [
        (lambda x: x.exp(), 0.7, np.exp(0.7)),
        (lambda x: x.sin(), 0.7, -np.sin(0.7)),
        (lambda x: x.log(), 0.7, -1 / 0.7**2),
        (lambda x: x**3, 0.7, 6 * 0.7),
        (lambda x: 1 / x, 0.7, 2 / 0.7**3),
        (lambda x: x.tanh(), 0.7, -2 * np.tanh(0.7) * (1 - np.tanh(0.7) ** 2)),
        (lambda x: x.sqrt(), 0.7, -0.25 * 0.7**-1.5),
        (lambda x: x.relu(), 0.7, 0.0),
    ],
    ids=["exp", "sin", "log", "cube", "reciprocal", "tanh", "sqrt", "relu"],
)
def test_second_order_in_one_variable(function: Any, x: float, expected: float) -> None:
    assert _second(function, x) == pytest.approx(expected, rel=1e-10)


def test_hessian_of_a_quadratic_form() -> None:
    a = torch.tensor([[2.0, 1.0], [0.0, 3.0]], dtype=torch.float64)
    hessian = torch.autograd.functional.hessian(lambda x: x @ a @ x, torch.tensor([1.0, -2.0], dtype=torch.float64))
    np.testing.assert_allclose(hessian.numpy(), (a + a.T).numpy())


def test_gradient_penalty() -> None:
    """A gradient inside a loss: the double backward of a product and a reduction."""
    w = _leaf(0.3, -0.7)
    x = _leaf(1.0, 2.0)
    (inner,) = torch.autograd.grad(((w * x) ** 2).sum(), x, create_graph=True)
    (inner**2).sum().backward()
    # inner = 2 w^2 x; d/dw sum(inner^2) = 16 w^3 x^2
    np.testing.assert_allclose(w.grad.numpy(), 16 * w.detach().numpy() ** 3 * x.detach().numpy() ** 2)
