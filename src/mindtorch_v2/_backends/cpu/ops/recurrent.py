"""A layer of an LSTM, forward and backward, over all steps of padded sequences.

The workspace holds what the gates (input, forget, cell, output) let through at each step, (steps, batch, 4 width), then the cells, (steps, batch, width).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from ...._dispatch.native import kernel
from .elements import sigmoid


def lstm_layer(
    input: ndarray,
    weight0: ndarray,
    weight1: ndarray,
    weight2: ndarray,
    weight3: ndarray,
    hx_: ndarray,
    cx_: ndarray,
    reverse: bool,
    *rest: Any,
) -> tuple[ndarray, ndarray, ndarray, ndarray]:
    """(outputs (steps, batch, width), the last output, the last cell, the workspace)."""
    return forward(input, weight0, weight1, weight2, weight3, hx_, cx_, reverse)


def lstm_layer_backward(
    input: ndarray,
    weight1: ndarray,
    weight2: ndarray,
    weight3: ndarray,
    weight4: ndarray,
    hx_: ndarray,
    cx_tmp: ndarray,
    output: ndarray,
    hy_: ndarray,
    cy_: ndarray,
    grad_output: ndarray | None,
    grad_hy: ndarray | None,
    grad_cy: ndarray | None,
    reverse: bool,
    *rest: Any,
) -> tuple[ndarray, ...]:
    """The gradients of input, both weights, both biases and the first states."""
    given = (grad_output, grad_hy, grad_cy, reverse)
    return backward(input, weight1, weight2, weight3, weight4, hx_, cx_tmp, output, rest[-1], *given)


@kernel
def forward(
    input: ndarray, w_ih: ndarray, w_hh: ndarray, b_ih: ndarray, b_hh: ndarray, hx: ndarray, cx: ndarray, reverse: bool
) -> tuple[ndarray, ndarray, ndarray, ndarray]:
    steps, batch, _ = input.shape
    width = hx.shape[1]
    space = np.empty(steps * batch * 5 * width, input.dtype)
    gates = space[: steps * batch * 4 * width].reshape(steps, batch, 4 * width)
    cells = space[gates.size :].reshape(steps, batch, width)
    np.matmul(input, w_ih.T, out=gates)
    gates += b_ih + b_hh
    output = np.empty((steps, batch, width), input.dtype)
    h, c = hx, cx
    for t in reversed(range(steps)) if reverse else range(steps):
        own = gates[t]
        own += h @ w_hh.T
        enter, forget, cell, out = (own[:, i * width : (i + 1) * width] for i in range(4))
        for gate in (enter, forget, out):
            gate[...] = sigmoid(gate)
        np.tanh(cell, out=cell)
        np.add(forget * c, enter * cell, out=cells[t])
        c = cells[t]
        np.multiply(out, np.tanh(c), out=output[t])
        h = output[t]
    return output, h.copy(), c.copy(), space


@kernel
def backward(
    input: ndarray,
    w_ih: ndarray,
    w_hh: ndarray,
    b_ih: ndarray,
    b_hh: ndarray,
    hx: ndarray,
    cx: ndarray,
    output: ndarray,
    workspace: ndarray,
    grad_output: ndarray | None,
    grad_hy: ndarray | None,
    grad_cy: ndarray | None,
    reverse: bool,
) -> tuple[ndarray, ...]:
    steps, batch, features = input.shape
    width = hx.shape[1]
    gates = workspace[: steps * batch * 4 * width].reshape(steps, batch, 4 * width)
    cells = workspace[gates.size :].reshape(steps, batch, width)
    of_gates = np.empty_like(gates)
    of_h = np.zeros_like(hx) if grad_hy is None else grad_hy.copy()
    of_c = np.zeros_like(cx) if grad_cy is None else grad_cy.copy()
    of_hidden = np.zeros_like(w_hh)
    last = 0 if not reverse else steps - 1  # of the walk backwards
    for t in range(steps) if reverse else reversed(range(steps)):
        if grad_output is not None:
            of_h += grad_output[t]
        before = t + 1 if reverse else t - 1
        h, c = (hx, cx) if t == last else (output[before], cells[before])
        enter, forget, cell, out = (gates[t][:, i * width : (i + 1) * width] for i in range(4))
        curved = np.tanh(cells[t])
        given = of_c + of_h * out * (1 - curved * curved)
        parts = (
            given * cell * enter * (1 - enter),
            given * c * forget * (1 - forget),
            given * enter * (1 - cell * cell),
            of_h * curved * out * (1 - out),
        )
        np.concatenate(parts, axis=1, out=of_gates[t])
        of_c = given * forget
        of_hidden += of_gates[t].T @ h
        of_h = of_gates[t] @ w_hh
    flat = of_gates.reshape(-1, 4 * width)
    bias = flat.sum(0)
    return (
        (flat @ w_ih).reshape(input.shape),
        flat.T @ input.reshape(-1, features),
        of_hidden,
        bias,
        bias.copy(),
        of_h,
        of_c,
    )
