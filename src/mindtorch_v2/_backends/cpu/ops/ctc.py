"""Connectionist temporal classification: forward and backward sums over all alignments, all samples of the batch at once.

A target of length S is spread to 2 S + 1 states, with blanks between its labels. log_alpha[n, t, s] is the logarithm of the probability of all
beginnings of alignments that are in state s at time t; beta is the same for the ends.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy import ndarray


def _states(targets: ndarray, lengths: Sequence[int], blank: int) -> tuple[ndarray, ndarray]:
    """(labels of the states (N, 2 S + 1), whether a state may be entered from two states before)."""
    longest = max(lengths, default=0)
    labels = np.full((len(lengths), 2 * longest + 1), blank, np.int64)
    start = 0
    for row, length in enumerate(lengths):
        if targets.ndim == 1:
            chosen = targets[start : start + length]
            start += length
        else:
            chosen = targets[row, :length]
        labels[row, 1 : 2 * length : 2] = chosen
    skip = np.zeros(labels.shape, bool)
    skip[:, 3::2] = labels[:, 3::2] != labels[:, 1:-2:2]
    return labels, skip


def _logaddexp3(a: ndarray, b: ndarray, c: ndarray) -> ndarray:
    top = np.maximum(np.maximum(a, b), c)
    safe = np.where(np.isneginf(top), 0, top)
    return np.log(np.exp(a - safe) + np.exp(b - safe) + np.exp(c - safe)) + safe


def _shifted(x: ndarray, count: int) -> ndarray:
    """Values of the state `count` places before."""
    result = np.full_like(x, -np.inf)
    if count < x.shape[1]:
        result[:, count:] = x[:, :-count]
    return result


def ctc_loss(
    log_probs: ndarray,
    targets: ndarray,
    input_lengths: Sequence[int],
    target_lengths: Sequence[int],
    blank: int = 0,
    zero_infinity: bool = False,
) -> tuple[ndarray, ndarray]:
    """(negative log likelihood (N), log_alpha (N, T, 2 S + 1)) for log_probs (T, N, C)."""
    times, batch, _ = log_probs.shape
    labels, skip = _states(targets, target_lengths, blank)
    count = labels.shape[1]
    alpha = np.full((batch, times, count), -np.inf, log_probs.dtype)
    rows = np.arange(batch)
    if times:
        start = log_probs[0][rows[:, None], labels]
        alpha[:, 0, :2] = start[:, :2]
    for t in range(1, times):
        before = alpha[:, t - 1]
        jump = np.where(skip, _shifted(before, 2), -np.inf)
        alpha[:, t] = _logaddexp3(before, _shifted(before, 1), jump) + log_probs[t][rows[:, None], labels]
    loss = np.empty(batch, log_probs.dtype)
    for n, (length, size) in enumerate(zip(input_lengths, target_lengths, strict=True)):
        if not length:
            loss[n] = 0 if not size else np.inf
            continue
        last = alpha[n, length - 1, 2 * size]
        other = alpha[n, length - 1, 2 * size - 1] if size else -np.inf
        loss[n] = -np.logaddexp(last, other)
    return loss, alpha


def ctc_loss_backward(
    grad: ndarray,
    log_probs: ndarray,
    targets: ndarray,
    input_lengths: Sequence[int],
    target_lengths: Sequence[int],
    neg_log_likelihood: ndarray,
    log_alpha: ndarray,
    blank: int,
    zero_infinity: bool = False,
) -> ndarray:
    times, batch, classes = log_probs.shape
    labels, skip = _states(targets, target_lengths, blank)
    result = np.zeros(log_probs.shape, log_probs.dtype)
    for n, (length, size) in enumerate(zip(input_lengths, target_lengths, strict=True)):
        loss = neg_log_likelihood[n]
        if not length or (zero_infinity and np.isinf(loss)):
            continue
        count = 2 * size + 1
        places = labels[n, :count]
        emitted = log_probs[:length, n][:, places]
        # The reversed chain has the same form: state s may be entered from s + 1, and from s + 2 where that one may skip.
        jumps = np.zeros(count, bool)
        jumps[: count - 2] = skip[n, 2:count]
        beta = np.full((length, count), -np.inf, log_probs.dtype)
        beta[-1, max(count - 2, 0) :] = emitted[-1, max(count - 2, 0) :]
        for t in range(length - 2, -1, -1):
            after = beta[t + 1]
            one = np.append(after[1:], -np.inf)
            two = np.where(jumps, np.append(after[2:], [-np.inf] * min(2, count)), -np.inf)
            beta[t] = _logaddexp3(after[None], one[None], two[None])[0] + emitted[t]
        share = np.exp(log_alpha[n, :length, :count] + beta - emitted + loss)
        occupied = np.zeros((length, classes), log_probs.dtype)
        for state, label in enumerate(places.tolist()):
            occupied[:, label] += share[:, state]
        # exp(log_probs) - occupied is the gradient of the scores before log_softmax; PyTorch gives it for log_probs as well
        result[:length, n] = (np.exp(log_probs[:length, n]) - occupied) * grad[n]
    return result
