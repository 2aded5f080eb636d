"""`torch.lstm`, `torch.gru` and their kin: whole recurrent networks, and single steps, of weights in flat lists, as PyTorch's modules call them.

A network takes (input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first), or packed sequences,
(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional). Input is (T, N, F), or (N, T, F) with batch_first, hx is
(layers * directions, N, H), for an LSTM a pair of those. It gives the outputs of the last layer and the last states.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._dispatch.native import builtin
from ..._generated import functions as _f
from ..._tensor import Tensor
from .recurrent import STEPS, run_layers

__all__ = ["gru", "gru_cell", "lstm", "lstm_cell", "rnn_relu", "rnn_relu_cell", "rnn_tanh", "rnn_tanh_cell"]


def _network(name: str, mode: str) -> Callable[..., tuple]:
    def network(*args: Any, **kwargs: Any) -> tuple:
        # Behind the weights of padded sequences stands a flag, where packed ones have their weights.
        packed = "batch_sizes" in kwargs or len(args) > 3 and not isinstance(args[3], bool)
        return _packed(mode, *args, **kwargs) if packed else _padded(mode, *args, **kwargs)

    network.__name__ = network.__qualname__ = name
    network.__doc__ = f"A network of mode {mode} over padded or packed sequences: the outputs, and the last states."
    return builtin(network)


def _padded(
    mode: str,
    input: Tensor,
    hx: Any,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple:
    steps = input.transpose(0, 1) if batch_first else input
    output, states = _run(mode, steps, None, hx, params, has_biases, num_layers, dropout, train, bidirectional)
    return (output.transpose(0, 1) if batch_first else output, *states)


def _packed(
    mode: str,
    data: Tensor,
    batch_sizes: Tensor,
    hx: Any,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple:
    sizes = batch_sizes.tolist()
    output, states = _run(mode, data, sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)
    return (output, *states)


def _run(
    mode: str,
    input: Tensor,
    sizes: list[int] | None,
    hx: Any,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    states = (hx,) if isinstance(hx, Tensor) else tuple(hx)
    if mode == "LSTM" and len(states) != 2:
        raise RuntimeError("lstm expects two hidden states")
    projected = len(states) == 2 and states[0].size(2) != states[1].size(2)
    count = (4 if has_biases else 2) + projected
    if len(params) % count:
        raise RuntimeError(f"MatrixRef: ArrayRef size {len(params)} not divisible by stride {count}")
    if len(params) != num_layers * (2 if bidirectional else 1) * count:
        raise RuntimeError("got an incorrect number of RNN parameters")
    weights = [params[i : i + count] for i in range(0, len(params), count)]
    return run_layers(mode, input, sizes, states, weights, has_biases, projected, dropout, train, bidirectional)


def _cell(name: str, mode: str) -> Callable[..., Any]:
    def cell(
        input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
    ) -> Any:
        states = (hx,) if isinstance(hx, Tensor) else tuple(hx)
        if mode == "LSTM" and len(states) != 2:
            raise RuntimeError("lstm_cell expects two hidden states")
        found = STEPS[mode](_f.linear(input, w_ih, b_ih), states, w_hh, b_hh, None)
        return found[0] if len(found) == 1 else found

    cell.__name__ = cell.__qualname__ = name
    cell.__doc__ = f"One step of mode {mode}: the next state."
    return builtin(cell)


gru, gru_cell = _network("gru", "GRU"), _cell("gru_cell", "GRU")
lstm, lstm_cell = _network("lstm", "LSTM"), _cell("lstm_cell", "LSTM")
rnn_relu, rnn_relu_cell = _network("rnn_relu", "RNN_RELU"), _cell("rnn_relu_cell", "RNN_RELU")
rnn_tanh, rnn_tanh_cell = _network("rnn_tanh", "RNN_TANH"), _cell("rnn_tanh_cell", "RNN_TANH")
