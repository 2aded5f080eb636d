"""Recurrent layers step by step, over padded or packed sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mindtorch_v2 as torch

from ..._generated import functions as _f
from ..._state import PLAIN, RECORDED, TLS
from ..._tensor import Tensor
from .dropout import dropout as apply_dropout

# A state is what a step hands to the next one: (h,), or (h, c) for LSTM. All are (N, features).
State = tuple[Tensor, ...]
# Hidden weight, hidden bias, projection.
Weights = tuple[Tensor, "Tensor | None", "Tensor | None"]
# Input gates, state, hidden weight, hidden bias, projection.
Step = Callable[[Tensor, State, Tensor, "Tensor | None", "Tensor | None"], State]


def tanh_step(gates: Tensor, state: State, w_hh: Tensor, b_hh: Tensor | None, w_hr: Tensor | None) -> State:
    """One step of an Elman network."""
    return (torch.tanh(_f.linear(state[0], w_hh, b_hh) + gates),)


def relu_step(gates: Tensor, state: State, w_hh: Tensor, b_hh: Tensor | None, w_hr: Tensor | None) -> State:
    """One step of an Elman network with ReLU."""
    return (torch.relu(_f.linear(state[0], w_hh, b_hh) + gates),)


def lstm_step(gates: Tensor, state: State, w_hh: Tensor, b_hh: Tensor | None, w_hr: Tensor | None) -> State:
    """One step of an LSTM; ``w_hr`` projects its output."""
    h, c = state
    enter, forget, cell, out = (_f.linear(h, w_hh, b_hh) + gates).chunk(4, 1)
    c = torch.sigmoid(forget) * c + torch.sigmoid(enter) * torch.tanh(cell)
    h = torch.sigmoid(out) * torch.tanh(c)
    if w_hr is not None:
        h = _f.linear(h, w_hr)
    return h, c


def gru_step(gates: Tensor, state: State, w_hh: Tensor, b_hh: Tensor | None, w_hr: Tensor | None) -> State:
    """One step of a GRU."""
    (h,) = state
    reset_in, update_in, new_in = gates.chunk(3, 1)
    reset_h, update_h, new_h = _f.linear(h, w_hh, b_hh).chunk(3, 1)
    reset = torch.sigmoid(reset_h + reset_in)
    update = torch.sigmoid(update_h + update_in)
    new = torch.tanh(new_in + reset * new_h)
    return ((h - new) * update + new,)


STEPS: dict[str, Step] = {"RNN_TANH": tanh_step, "RNN_RELU": relu_step, "LSTM": lstm_step, "GRU": gru_step}


def _run_padded(step: Step, gates: Tensor, state: State, weights: Weights, reverse: bool) -> tuple[Tensor, State]:
    """One direction of a layer over ``gates`` (T, N, *): all outputs and the last state."""
    outputs: list[Tensor] = []
    steps = gates.unbind(0)
    for own in reversed(steps) if reverse else steps:
        state = step(own, state, *weights)
        outputs.append(state[0])
    if reverse:
        outputs.reverse()
    return torch.stack(outputs, 0), state


def _is_whole(mode: str, input: Tensor, weights: Sequence[Tensor], state: State) -> bool:
    """Whether an LSTM's layer runs as one operator: of plain tensors of one dtype, where nobody looks at single operators."""
    kind = input.dtype
    return (
        mode == "LSTM"
        and TLS.autocast is None
        and kind.is_floating_point
        and input.device.type in ("cpu", "meta")
        and input.dim() == 3
        and 0 not in input.shape
        and all(
            (part.__class__ in PLAIN or part.__class__ in RECORDED)
            and part.dtype is kind
            and part.device == input.device
            for part in (input, *weights, *state)
        )
    )


def _run_whole(input: Tensor, state: State, weights: Sequence[Tensor], reverse: bool) -> tuple[Tensor, State]:
    """One direction of an LSTM's layer over `input` (T, N, F) by one operator."""
    w_ih, w_hh, *biases = weights
    b_ih, b_hh = biases or [_f.zeros(w_ih.shape[0], dtype=input.dtype, device=input.device)] * 2
    width, train = w_hh.shape[1], TLS.grad_enabled
    h, c = state
    output, h, c, _ = _f.mkldnn_rnn_layer(
        input, w_ih, w_hh, b_ih, b_hh, h, c, reverse, [], 2, width, 1, bool(biases), False, False, train
    )
    return output, (h, c)


def _run_packed(
    step: Step, gates: Tensor, sizes: list[int], state: State, weights: Weights, reverse: bool
) -> tuple[Tensor, State]:
    """The same over packed gates, of which ``sizes`` says how many sequences each step has."""
    steps = gates.split(sizes, 0)
    outputs: list[Tensor] = []
    if reverse:
        # Backwards sequences join: a longer one runs before a shorter one begins.
        initial = state
        state = tuple(part[: sizes[-1]] for part in initial)
        for own, size in zip(reversed(steps), reversed(sizes), strict=True):
            present = state[0].size(0)
            if size > present:
                state = tuple(
                    torch.cat([part, start[present:size]], 0) for part, start in zip(state, initial, strict=True)
                )
            state = step(own, state, *weights)
            outputs.append(state[0])
        outputs.reverse()
        return torch.cat(outputs, 0), state
    ended: list[State] = []
    for own, size in zip(steps, sizes, strict=True):
        present = state[0].size(0)
        if size < present:
            ended.append(tuple(part[size:present] for part in state))
            state = tuple(part[:size] for part in state)
        state = step(own, state, *weights)
        outputs.append(state[0])
    # The sequences that ended first are the last ones of the batch.
    ended.append(state)
    last = tuple(torch.cat([parts[i] for parts in reversed(ended)], 0) for i in range(len(state)))
    return torch.cat(outputs, 0), last


def run_layers(
    mode: str,
    input: Tensor,
    sizes: list[int] | None,
    states: State,
    weights: Sequence[Sequence[Tensor]],
    has_biases: bool,
    projected: bool,
    dropout: float,
    training: bool,
    bidirectional: bool,
) -> tuple[Tensor, State]:
    """All layers of a recurrent network.

    ``input`` is (T, N, F), or (sum of ``sizes``, F) when packed; each of ``states`` is (layers * directions, N, *);
    ``weights`` has an entry for each layer and direction: input and hidden weights, both biases, projection.
    Returns the outputs of the last layer and the last states, stacked like ``states``.
    """
    step = STEPS[mode]
    directions = 2 if bidirectional else 1
    layers = len(weights) // directions
    finals: list[State] = []
    for layer in range(layers):
        outputs: list[Tensor] = []
        for direction in range(directions):
            index = layer * directions + direction
            own: list[Any] = list(weights[index])
            w_ih, w_hh = own[:2]
            b_ih, b_hh = own[2:4] if has_biases else (None, None)
            w_hr = own[-1] if projected else None
            state = tuple(part[index] for part in states)
            if sizes is None and not projected and _is_whole(mode, input, own, state):
                output, final = _run_whole(input, state, own, direction == 1)
                outputs.append(output)
                finals.append(final)
                continue
            gates = _f.linear(input, w_ih, b_ih)
            rest = (w_hh, b_hh, w_hr)
            if sizes is None:
                output, final = _run_padded(step, gates, state, rest, direction == 1)
            else:
                output, final = _run_packed(step, gates, sizes, state, rest, direction == 1)
            outputs.append(output)
            finals.append(final)
        input = outputs[0] if directions == 1 else torch.cat(outputs, -1)
        if dropout and training and layer < layers - 1:
            input = apply_dropout(input, dropout, True)
    return input, tuple(torch.stack([final[i] for final in finals], 0) for i in range(len(states)))
