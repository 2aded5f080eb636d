"""L-BFGS, with or without a line search by the strong Wolfe conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from .._tensor import Tensor
from ._single import check_lr, scalar
from .optimizer import Optimizer, ParamsT

__all__ = ["LBFGS"]

# Loss and gradient at a step of the given length along the direction.
Objective = Callable[[list[Tensor], Any, Tensor], tuple[float, Tensor]]


def _cubic_interpolate(
    x1: Any, f1: Any, g1: Any, x2: Any, f2: Any, g2: Any, bounds: tuple[Any, Any] | None = None
) -> Any:
    """Where the cubic through two points with their slopes has its minimum, within ``bounds``."""
    low, high = bounds if bounds is not None else ((x1, x2) if x1 <= x2 else (x2, x1))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if square < 0:
        return (low + high) / 2.0
    d2 = square.sqrt()
    if x1 <= x2:
        place = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        place = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(place, low), high)


class _Point:
    """A step length with the loss, gradient and slope there."""

    def __init__(self, t: Any, f: Any, g: Tensor, slope: Any) -> None:
        self.t = t
        self.f = f
        self.g = g
        self.slope = slope

    def kept(self) -> _Point:
        """With a copy of the gradient, which later evaluations overwrite."""
        return _Point(self.t, self.f, self.g.clone(memory_format=torch.contiguous_format), self.slope)


def _strong_wolfe(
    objective: Objective,
    x: list[Tensor],
    t: Any,
    d: Tensor,
    f: float,
    g: Tensor,
    slope: Any,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
    max_ls: int = 25,
) -> tuple[float, Tensor, Any, int]:
    """A step along ``d`` that satisfies the strong Wolfe conditions: loss, gradient, length, evaluations."""
    longest = d.abs().max()
    start = _Point(0, f, g, slope).kept()
    evaluations = 0

    def evaluate(length: Any) -> _Point:
        nonlocal evaluations
        loss, gradient = objective(x, length, d)
        evaluations += 1
        return _Point(length, loss, gradient, gradient.dot(d))

    def too_high(point: _Point) -> bool:
        return bool(point.f > f + c1 * point.t * slope)

    def flat_enough(point: _Point) -> bool:
        return bool(abs(point.slope) <= -c2 * slope)

    # Bracket: grow the step until a minimum lies between two points.
    previous, point = start, evaluate(t)
    done = False
    iterations = 0
    bracket: list[_Point] = []
    while iterations < max_ls:
        if too_high(point) or (iterations > 1 and point.f >= previous.f):
            bracket = [previous, point.kept()]
            break
        if flat_enough(point):
            bracket = [point]
            done = True
            break
        if point.slope >= 0:
            bracket = [previous, point.kept()]
            break
        bounds = (point.t + 0.01 * (point.t - previous.t), point.t * 10)
        length = _cubic_interpolate(
            previous.t, previous.f, previous.slope, point.t, point.f, point.slope, bounds=bounds
        )
        previous = point.kept()
        point = evaluate(length)
        iterations += 1
    if iterations == max_ls:
        bracket = [start, point]

    # Zoom: narrow the bracket until a point satisfies both conditions.
    stalled = False
    low, high = (0, 1) if bracket[0].f <= bracket[-1].f else (1, 0)
    while not done and iterations < max_ls:
        if abs(bracket[1].t - bracket[0].t) * longest < tolerance_change:
            break
        left, right = bracket
        length = _cubic_interpolate(left.t, left.f, left.slope, right.t, right.f, right.slope)
        smallest, largest = min(left.t, right.t), max(left.t, right.t)
        margin = 0.1 * (largest - smallest)
        # Close to an end of the bracket twice in a row, or outside: go a tenth of it away from that end.
        if min(largest - length, length - smallest) < margin:
            if stalled or length >= largest or length <= smallest:
                near_largest = abs(length - largest) < abs(length - smallest)
                length = largest - margin if near_largest else smallest + margin
                stalled = False
            else:
                stalled = True
        else:
            stalled = False
        point = evaluate(length)
        iterations += 1
        if too_high(point) or point.f >= bracket[low].f:
            bracket[high] = point.kept()
            low, high = (0, 1) if bracket[0].f <= bracket[1].f else (1, 0)
        else:
            if flat_enough(point):
                done = True
            elif point.slope * (bracket[high].t - bracket[low].t) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = point.kept()
    best = bracket[low]
    return best.f, best.g, best.t, evaluations


class LBFGS(Optimizer):
    """Quasi-Newton steps from the last ``history_size`` changes of the gradient. Raises ValueError for several groups."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_lr(lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def _gather_flat_grad(self) -> Tensor:
        """All gradients in one vector; zeros where there is none."""
        views = []
        for param in self._params:
            if param.grad is None:
                view = torch.zeros(param.numel(), dtype=param.dtype, device=param.device)
            else:
                view = (param.grad.to_dense() if param.grad.is_sparse else param.grad).reshape(-1)
            views.append(torch.view_as_real(view).reshape(-1) if view.is_complex() else view)
        return torch.cat(views, 0)

    def _add_grad(self, step_size: Any, update: Tensor) -> None:
        """Move all parameters by ``step_size`` along the vector ``update``."""
        step_size = step_size.item() if isinstance(step_size, Tensor) else step_size
        offset = 0
        for param in self._params:
            real = torch.view_as_real(param) if param.is_complex() else param
            count = real.numel()
            real.add_(update[offset : offset + count].view_as(real), alpha=step_size)
            offset += count

    def _clone_param(self) -> list[Tensor]:
        return [param.clone(memory_format=torch.contiguous_format) for param in self._params]

    def _set_param(self, values: list[Tensor]) -> None:
        for param, value in zip(self._params, values, strict=True):
            param.copy_(value)

    def _directional_evaluate(
        self, closure: Callable[[], Any], x: list[Tensor], t: Any, d: Tensor
    ) -> tuple[float, Tensor]:
        self._add_grad(t, d)
        loss = float(closure())
        flat_grad = self._gather_flat_grad()
        self._set_param(x)
        return loss, flat_grad

    @staticmethod
    def _direction(state: dict[str, Any], flat_grad: Tensor, history_size: int) -> Tensor:
        """The gradient times the approximated inverse Hessian, negated; the newest change goes into the history."""
        change = flat_grad.sub(state["prev_flat_grad"])
        move = state["d"].mul(state["t"])
        curvature = change.dot(move)
        changes, moves, ratios = state["old_dirs"], state["old_stps"], state["ro"]
        if curvature > 1e-10:
            if len(changes) == history_size:
                for history in (changes, moves, ratios):
                    history.pop(0)
            changes.append(change)
            moves.append(move)
            ratios.append(1.0 / curvature)
            state["H_diag"] = curvature / change.dot(change)
        factors = state.setdefault("al", [None] * history_size)
        direction = flat_grad.neg()
        for i in reversed(range(len(changes))):
            factors[i] = moves[i].dot(direction) * ratios[i]
            direction.add_(changes[i], alpha=-factors[i].item())
        direction = torch.mul(direction, state["H_diag"])
        for i in range(len(changes)):
            back = changes[i].dot(direction) * ratios[i]
            direction.add_(moves[i], alpha=(factors[i] - back).item())
        return direction

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]  (no step without a closure)
        """Run up to ``max_iter`` iterations; ``closure`` computes loss and gradients. Returns the first loss."""
        with torch.no_grad():
            return self._step(closure)

    def _step(self, closure: Callable[[], Any]) -> Any:
        def evaluate() -> Any:
            with torch.enable_grad():
                return closure()

        group = self.param_groups[0]
        lr = scalar(group["lr"])
        search = group["line_search_fn"]
        # The state stands with the first parameter, as state dicts want one.
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        first_loss = evaluate()
        loss = float(first_loss)
        evaluations = 1
        state["func_evals"] += 1
        flat_grad = self._gather_flat_grad()
        if flat_grad.abs().max() <= group["tolerance_grad"]:
            return first_loss

        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                state.update(d=flat_grad.neg(), old_dirs=[], old_stps=[], ro=[], H_diag=1)
                t = min(1.0, 1.0 / flat_grad.abs().sum()) * lr
            else:
                state["d"] = self._direction(state, flat_grad, group["history_size"])
                t = lr
            d = state["d"]
            if state.get("prev_flat_grad") is None:
                state["prev_flat_grad"] = flat_grad.clone(memory_format=torch.contiguous_format)
            else:
                state["prev_flat_grad"].copy_(flat_grad)
            state["prev_loss"] = previous_loss = loss
            state["t"] = t
            slope = flat_grad.dot(d)
            if slope > -group["tolerance_change"]:
                break

            used = 0
            if search is not None:
                if search != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                loss, flat_grad, t, used = _strong_wolfe(
                    lambda x, length, along: self._directional_evaluate(evaluate, x, length, along),
                    self._clone_param(),
                    t,
                    d,
                    loss,
                    flat_grad,
                    slope,
                    max_ls=group["max_eval"] - evaluations,
                )
                self._add_grad(t, d)
                state["t"] = t
                converged = bool(flat_grad.abs().max() <= group["tolerance_grad"])
            else:
                self._add_grad(t, d)
                converged = False
                if iteration != group["max_iter"]:
                    # Not after the last iteration: the next step begins with an evaluation anyway.
                    loss = float(evaluate())
                    flat_grad = self._gather_flat_grad()
                    converged = bool(flat_grad.abs().max() <= group["tolerance_grad"])
                    used = 1
            evaluations += used
            state["func_evals"] += used
            if (
                iteration == group["max_iter"]
                or evaluations >= group["max_eval"]
                or converged
                or d.mul(t).abs().max() <= group["tolerance_change"]
                or abs(loss - previous_loss) < group["tolerance_change"]
            ):
                break
        return first_loss
