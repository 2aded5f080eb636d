"""Derivatives of recurrent layers that run as one operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._dispatch import ops
from ..._state import TLS
from ..._tensor import Tensor

Maybe = Tensor | None

__all__ = ["lstm_layer_gradient"]


def lstm_layer_gradient(
    given: Sequence[Maybe], reverse: bool, mode: int, width: int, results: Sequence[Tensor], operands: Sequence[Tensor]
) -> Sequence[Maybe]:
    """The gradients of input, weights, biases and first states; step by step where they may be differentiated again."""
    if TLS.grad_enabled:
        return _step_by_step(given, reverse, *operands)
    output, hy, cy, workspace = results
    return ops.mkldnn_rnn_layer_backward(
        *operands, output, hy, cy, *given[:3], reverse, mode, width, 1, True, True, False, [], False, workspace
    )


def _step_by_step(
    given: Sequence[Maybe],
    reverse: bool,
    input: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor,
    b_hh: Tensor,
    hx: Tensor,
    cx: Tensor,
) -> Sequence[Tensor]:
    order = range(input.shape[0])[:: -1 if reverse else 1]
    entering = ops.linear(input, w_ih, b_ih)
    seen: list[tuple[Any, ...]] = []
    h, c = hx, cx
    for t in order:
        gates = ops.add(ops.linear(h, w_hh, b_hh), ops.select(entering, 0, t))
        enter, forget, cell, out = ops.chunk(gates, 4, 1)
        enter, forget, out, cell = ops.sigmoid(enter), ops.sigmoid(forget), ops.sigmoid(out), ops.tanh(cell)
        after = forget * c + enter * cell
        curved = ops.tanh(after)
        seen.append((t, h, c, enter, forget, cell, out, curved))
        h, c = out * curved, after
    of_output, of_h, of_c = given[:3]
    of_h = ops.zeros_like(hx) if of_h is None else of_h
    of_c = ops.zeros_like(cx) if of_c is None else of_c
    of_hidden: Any = ops.zeros_like(w_hh)
    entered: list[Any] = [None] * len(seen)
    for t, h, c, enter, forget, cell, out, curved in reversed(seen):
        if of_output is not None:
            of_h = of_h + ops.select(of_output, 0, t)
        through = of_c + of_h * out * (1 - curved * curved)
        parts = [
            through * cell * enter * (1 - enter),
            through * c * forget * (1 - forget),
            through * enter * (1 - cell * cell),
            of_h * curved * out * (1 - out),
        ]
        entered[t] = ops.cat(parts, 1)
        of_hidden = of_hidden + ops.mm(ops.t(entered[t]), h)
        of_h, of_c = ops.mm(entered[t], w_hh), through * forget
    gates = ops.cat(entered, 0)
    of_input = ops.reshape(ops.mm(gates, w_ih), list(input.shape))
    of_bias = ops.sum(gates, [0])
    of_weight = ops.mm(ops.t(gates), ops.reshape(input, [-1, input.shape[2]]))
    return of_input, of_weight, of_hidden, of_bias, of_bias, of_h, of_c
