"""The emulator's activations, losses and their gradients, through their C ABI and compared with numpy."""

from __future__ import annotations

import math
from ctypes import c_bool, c_char_p, c_float, c_int64

import numpy as np
import pytest
from _emulator_operators import INVALID, NULL_POINTER, UNARY, compare, sample, sigmoid, wide


def numeric_gradient(function, x: np.ndarray) -> np.ndarray:
    return (function(x + 1e-6) - function(x - 1e-6)) / 2e-6


def softplus(x, beta=1.0):
    return np.log1p(np.exp(x * beta)) / beta


def test_activations_with_numbers_and_their_gradients(emulator):
    x, g = sample((4, 6), np.float32, 1), sample((4, 6), np.float32, 2)
    a, upstream = wide(x), wide(g)
    grad, data = emulator.tensor(g, strided=True), emulator.tensor(x)
    number = emulator.scalar
    result = UNARY["Selu"][0](a)
    cases = {
        "LeakyRelu": (
            (data, number(0.1)),
            (grad, data, number(0.1), c_bool(False)),
            lambda v: np.where(v > 0, v, 0.1 * v),
        ),
        "Softplus": (
            (data, number(2.0), number(20.0)),
            (grad, data, number(2.0), number(20.0)),
            lambda v: softplus(v, 2),
        ),
        "Elu": (
            (data, number(0.7), number(1.2), number(0.5)),
            (grad, number(0.7), number(1.2), number(0.5), c_bool(False), data),
            lambda v: 1.2 * np.where(v > 0, v, 0.7 * np.expm1(0.5 * v)),
        ),
        "Gelu": ((data,), (grad, data), UNARY["Gelu"][0]),
        "Silu": ((data,), (grad, data), UNARY["Silu"][0]),
        "Mish": ((data,), (grad, data), UNARY["Mish"][0]),
        "Hardswish": ((data,), (grad, data), UNARY["Hardswish"][0]),
        "Hardsigmoid": ((data,), (grad, data), UNARY["Hardsigmoid"][0]),
        "Selu": ((data,), (grad, emulator.tensor(result.astype(np.float32))), UNARY["Selu"][0]),
        "Sigmoid": ((data,), (grad, emulator.tensor(sigmoid(a).astype(np.float32))), sigmoid),
        "Tanh": ((data,), (grad, emulator.tensor(np.tanh(a).astype(np.float32))), np.tanh),
        "LogSigmoid": ((data,), (grad, data, emulator.empty((4, 6), np.float32)), UNARY["LogSigmoid"][0]),
        "Hardtanh": (
            (data, number(-1.0), number(1.5)),
            (grad, data, number(-1.0), number(1.5)),
            lambda v: np.clip(v, -1, 1.5),
        ),
    }
    for name, (forward, backward, function) in cases.items():
        out = emulator.empty((4, 6), np.float32, strided=True)
        emulator(name, *forward, out)
        compare(out.read(), function(a), 8)
        emulator(f"{name}Backward", *backward, out)
        compare(out.read(), upstream * numeric_gradient(function, a), 40)
    out = emulator.empty((4, 6), np.float32)
    emulator("Celu", data, number(0.8), out)
    compare(out.read(), np.where(a > 0, a, 0.8 * np.expm1(a / 0.8)), 4)
    emulator("Hardshrink", data, number(0.5), out)
    compare(out.read(), np.where(np.abs(a) <= 0.5, 0, a))
    emulator("Softshrink", data, number(0.5), out)
    compare(out.read(), np.where(np.abs(a) <= 0.5, 0, a - 0.5 * np.sign(a)), 4)
    emulator("Threshold", data, number(0.5), number(-1.0), out)
    compare(out.read(), np.where(a <= 0.5, -1, a))
    emulator("ThresholdBackward", grad, data, number(0.5), out)
    compare(out.read(), np.where(a <= 0.5, 0, upstream))

    def gelu_tanh(v):
        return 0.5 * v * (1 + np.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))

    emulator("GeluV2", data, c_int64(1), out)
    compare(out.read(), gelu_tanh(a), 4)
    emulator("GeluBackwardV2", grad, data, c_char_p(b"tanh"), out)
    compare(out.read(), upstream * numeric_gradient(gelu_tanh, a), 40)
    assert emulator.fails("GeluBackwardV2", grad, data, c_char_p(b"fast"), out) == INVALID
    assert emulator.fails("LogSigmoidBackward", grad, data, None, out) == NULL_POINTER
    negative = (grad, number(-0.7), number(1.2), number(0.5), c_bool(True), data, out)
    assert emulator.fails("EluBackward", *negative) == INVALID


def test_prelu_and_glu(emulator):
    x, w, g = sample((2, 3, 4), np.float32, 1), np.array([0.1, 0.2, 0.3], np.float32), sample((2, 3, 4), np.float32, 2)
    a, weight, upstream = wide(x), wide(w).reshape(1, 3, 1), wide(g)
    out, grad_weight = emulator.empty((2, 3, 4), np.float32), emulator.empty((3,), np.float32)
    emulator("Prelu", emulator.tensor(x), emulator.tensor(w), out)
    compare(out.read(), np.where(a > 0, a, weight * a))
    emulator("PreluBackward", emulator.tensor(g), emulator.tensor(x), emulator.tensor(w), out, grad_weight)
    compare(out.read(), np.where(a > 0, upstream, weight * upstream))
    compare(grad_weight.read(), np.where(a > 0, 0, a * upstream).sum((0, 2)), 8)
    assert emulator.fails("Prelu", emulator.tensor(x), emulator.tensor(w[:2]), out) == INVALID
    half = emulator.empty((2, 3, 2), np.float32)
    emulator("Glu", emulator.tensor(x, strided=True), c_int64(-1), half)
    compare(half.read(), a[..., :2] * sigmoid(a[..., 2:]), 4)
    emulator("GluBackward", emulator.tensor(g[..., :2]), emulator.tensor(x), c_int64(-1), out)
    gate = sigmoid(a[..., 2:])
    u = upstream[..., :2]
    compare(out.read(), np.concatenate([u * gate, u * a[..., :2] * gate * (1 - gate)], -1), 4)
    assert emulator.fails("Glu", emulator.tensor(x), c_int64(1), half) == INVALID


LOSSES = {
    "Mse": ((), lambda x, t: (x - t) ** 2),
    "L1": ((), lambda x, t: np.abs(x - t)),
    "SmoothL1": ((c_float(0.5),), lambda x, t: np.where(np.abs(x - t) < 0.5, (x - t) ** 2, np.abs(x - t) - 0.25)),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_their_gradients(emulator, name):
    x, t = sample((3, 4), np.float32, 1), sample((3, 4), np.float32, 2)
    extra, function = LOSSES[name]
    a, target = wide(x), wide(t)
    for reduction, reduce in enumerate([lambda v: v, np.mean, np.sum]):
        expected = np.asarray(reduce(function(a, target)))
        out = emulator.empty(expected.shape, np.float32)
        emulator(f"{name}Loss", emulator.tensor(x), emulator.tensor(t, strided=True), c_int64(reduction), *extra, out)
        compare(out.read(), expected, 8)
        g = sample(expected.shape, np.float32, 3) if expected.shape else np.array(1.5, np.float32)
        grad = emulator.empty((3, 4), np.float32, strided=True)
        emulator(
            f"{name}LossBackward",
            emulator.tensor(g),
            emulator.tensor(x),
            emulator.tensor(t),
            c_int64(reduction),
            *extra,
            grad,
        )
        slope = numeric_gradient(lambda v: function(v, target), a) / (a.size if reduction == 1 else 1)
        compare(grad.read(), wide(g) * slope, 40)
    out = emulator.empty((3, 4), np.float32)
    arguments = (emulator.tensor(x), emulator.tensor(t), c_int64(3), *extra, out)
    assert emulator.fails(f"{name}Loss", *arguments) == INVALID
    arguments = (emulator.tensor(x), emulator.tensor(t), c_int64(1), *extra, out)
    assert emulator.fails(f"{name}Loss", *arguments) == INVALID


def test_cross_entropies_and_divergence(emulator):
    p, t, w = (sample((3, 4), np.float32, s, 0.05, 0.95) for s in (1, 2, 3))
    a, target, weight = wide(p), wide(t), wide(w)
    out = emulator.empty((3, 4), np.float32)
    loss = -(target * np.log(a) + (1 - target) * np.log(1 - a))
    emulator("BinaryCrossEntropy", emulator.tensor(p), emulator.tensor(t), None, c_int64(0), out)
    compare(out.read(), loss, 8)
    mean = emulator.empty((1,), np.float32)
    emulator("BinaryCrossEntropy", emulator.tensor(p), emulator.tensor(t), emulator.tensor(w), c_int64(1), mean)
    compare(mean.read(), [(loss * weight).mean()], 8)
    upstream = emulator.tensor(np.array(2.0, np.float32))
    backward = (upstream, emulator.tensor(p), emulator.tensor(t), emulator.tensor(w), c_int64(1), out)
    emulator("BinaryCrossEntropyBackward", *backward)
    compare(out.read(), 2 * weight * (a - target) / (a * (1 - a)) / a.size, 8)
    x = sample((3, 4), np.float32, 4)
    s = sigmoid(wide(x))
    positive = np.array([1, 2, 3, 0.5], np.float32)
    logits = (emulator.tensor(x), emulator.tensor(t), emulator.tensor(w), emulator.tensor(positive), c_int64(0), out)
    emulator("BinaryCrossEntropyWithLogits", *logits)
    compare(out.read(), -weight * (wide(positive) * target * np.log(s) + (1 - target) * np.log(1 - s)), 8)
    one = emulator.empty((1,), np.float32)
    emulator("KlDiv", emulator.tensor(x), emulator.tensor(t), c_int64(3), c_bool(False), one)
    compare(one.read(), [(target * (np.log(target) - wide(x))).sum() / 3], 8)
    emulator("KlDiv", emulator.tensor(x), emulator.tensor(t), c_int64(0), c_bool(True), out)
    compare(out.read(), np.exp(target) * (target - wide(x)), 8)
    emulator("KlDivBackward", upstream, emulator.tensor(x), emulator.tensor(t), c_int64(1), c_bool(False), out)
    compare(out.read(), -2 * target / target.size, 8)


def test_negative_log_likelihood(emulator):
    x, w = sample((4, 3), np.float32, 1), np.array([1, 2, 0.5], np.float32)
    target = np.array([0, 2, -100, 1])
    picked = np.array([0, 1, 3])
    loss = np.zeros(4)
    loss[picked] = -w[target[picked]] * x[picked, target[picked]]
    total = float(w[target[picked]].sum())
    tensors = emulator.tensor(x), emulator.tensor(target), emulator.tensor(w)
    out, total_out = emulator.empty((4,), np.float32), emulator.empty((1,), np.float32)
    emulator("NLLLoss", *tensors, c_int64(0), c_int64(-100), out, total_out)
    compare(out.read(), loss)
    one = emulator.empty((1,), np.float32)
    emulator("NLLLoss", *tensors, c_int64(1), c_int64(-100), one, total_out)
    compare(one.read(), [loss.sum() / total], 4)
    compare(total_out.read(), [total])
    grad = emulator.empty((4, 3), np.float32)
    upstream = emulator.tensor(np.array([2.0], np.float32))
    emulator("NLLLossBackward", upstream, *tensors, c_int64(1), c_int64(-100), total_out, grad)
    expected = np.zeros((4, 3))
    expected[picked, target[picked]] = -2 * w[target[picked]] / total
    compare(grad.read(), expected, 4)
    assert (
        emulator.fails("NLLLoss", tensors[0], tensors[1], None, c_int64(1), c_int64(-100), one, total_out)
        == NULL_POINTER
    )
