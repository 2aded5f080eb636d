"""Rules of recurrent layers that run as one operator."""

from __future__ import annotations

from typing import Any

from ._common import check_dtype
from .spec import Spec, rule

_LSTM = 2


@rule(flops="2 * numel(out[0]) * 4 * (size(input, 2) + size(hx_, 1))")
def lstm_layer(
    input: Any, weight0: Any, weight1: Any, hx_: Any, cx_: Any, mode: int, *biases: Any
) -> tuple[Spec, Spec, Spec, Spec]:
    """(outputs (steps, batch, width), the last output and cell (batch, width), a workspace of one dimension)."""
    steps, batch, width = _checked("mkldnn_rnn_layer", input, weight0, weight1, hx_, cx_, mode)
    kind, wide = input.dtype, input.dtype.opmath
    state = Spec((batch, width), kind, None, wide)
    return (
        Spec((steps, batch, width), kind, None, wide),
        state,
        state,
        Spec((steps * batch * width * 5,), wide, None, wide),
    )


@rule(flops="4 * numel(output) * 4 * (size(input, 2) + size(hx_, 1))")
def lstm_layer_backward(
    input: Any, weight1: Any, weight2: Any, weight3: Any, hx_: Any, cx_: Any, output: Any, mode: int, *rest: Any
) -> tuple[Spec, ...]:
    """The gradients of input, both weights, both biases and the first states. rest: what takes part with its values alone."""
    _checked("mkldnn_rnn_layer_backward", input, weight1, weight2, hx_, cx_, mode)
    like = (input, weight1, weight2, weight3, weight3, hx_, cx_)
    return tuple(Spec(tuple(x.shape), x.dtype, None, x.dtype.opmath) for x in like)


def _checked(name: str, input: Any, w_ih: Any, w_hh: Any, hx: Any, cx: Any, mode: int) -> tuple[int, int, int]:
    """Steps, batch and width. RuntimeError for another mode than that of LSTM, and for shapes that do not fit."""
    if mode != _LSTM:
        raise RuntimeError(f"{name}: only LSTM (mode {_LSTM}) runs as one operator, but got mode {mode}")
    check_dtype(input.dtype, "floating_real", name)
    if input.dim() != 3 or hx.dim() != 2:
        raise RuntimeError(f"{name}: expected a 3-D input and 2-D states, but got {input.dim()}-D and {hx.dim()}-D")
    steps, batch, features = input.shape
    width = hx.shape[1]
    wanted = ((4 * width, features), (4 * width, width), (batch, width), (batch, width))
    for what, tensor, shape in zip(("weight0", "weight1", "hx_", "cx_"), (w_ih, w_hh, hx, cx), wanted, strict=True):
        if tuple(tensor.shape) != shape:
            raise RuntimeError(f"{name}: expected {what} of shape {list(shape)}, but got {list(tensor.shape)}")
        if tensor.dtype is not input.dtype:
            raise RuntimeError(f"{name}: expected {what} of {input.dtype}, but got {tensor.dtype}")
    return steps, batch, width
