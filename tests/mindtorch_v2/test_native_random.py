"""The random kernels of the C extension draw what the Python functions behind them draw, and leave the generator where those leave it."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from _native_outcomes import needs_extension

import mindtorch_v2 as torch
from mindtorch_v2._backends.cpu.ops import random as kernels
from mindtorch_v2._dispatch import native
from mindtorch_v2._random import arithmetic, continuous, default_generator, rejection
from mindtorch_v2._random.engine import Mt19937

pytestmark = needs_extension

SHAPES = [(), (0,), (1,), (3,), (15,), (16,), (17,), (5, 7), (4, 256), (1031,), (33_003,)]
F32, F64 = torch.float32, torch.float64


def _drawn(call: Any) -> tuple[list, bytes]:
    """Results from a fixed state in the middle of a pair, and the state after."""
    torch.manual_seed(11)
    torch.ones(2)
    default_generator.next_double = 0.25
    default_generator.engine.raw(100)
    made = call()
    return list(made) if isinstance(made, tuple) else [made], bytes(default_generator._state_bytes())


def _check(kernel: Any, *arguments: Any) -> None:
    """Both on copies of the arrays among the arguments."""
    assert isinstance(kernel, native.extension.Kernel)

    def fresh() -> tuple:
        return tuple(a.copy() if isinstance(a, np.ndarray) else a for a in arguments)

    ours, state = _drawn(lambda: kernel(*fresh()))
    theirs, expected = _drawn(lambda: kernel.__wrapped__(*fresh()))
    assert state == expected
    for a, b in zip(ours, theirs, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_new_arrays(shape: tuple) -> None:
    for dtype in (None, F32, F64, torch.bfloat16, torch.float16):
        _check(kernels.rand, shape, dtype)
        _check(kernels.randn, shape, dtype)
        _check(kernels.rand_generator, shape, None, dtype)
        _check(kernels.randn_generator, list(shape), None, dtype)
    for dtype in (None, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, F32, F64, torch.bfloat16):
        _check(kernels.randint, 100, shape, dtype)
        _check(kernels.randint_low, 3, 64, shape, dtype)
        _check(kernels.randint_generator, 7, shape, None, dtype)
        _check(kernels.randint_low_generator, 0, 1, shape, None, dtype)
    _check(kernels.randint_low, -(1 << 40), (1 << 40) - 3, shape)


@pytest.mark.parametrize("n", [0, 1, 2, 5, 100, 5000, 40_000])
def test_permutations(n: int) -> None:
    for dtype in (None, torch.int64, torch.int32):
        _check(kernels.randperm, n, dtype)
        _check(kernels.randperm_generator, n, None, dtype)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_in_place(shape: tuple) -> None:
    for dtype in (np.float32, np.float64, np.float16):
        x = np.full(shape, 0.5, dtype)
        for low, high in ((0, 1), (0.0, 1.0), (-0.3, 0.7), (2.0, 2.0), (-1e30, 1e30)):
            if dtype != np.float16 or high < 100:
                _check(kernels.uniform_, x, low, high)
        for mean, std in ((0.0, 1.0), (1.5, 0.3), (0, 0), (-2.0, 1e3)):
            _check(kernels.normal_, x, mean, std)
        _check(kernels.bernoulli, x)
        _check(kernels.bernoulli_tensor, x, x)
        _check(kernels.rand_like, x)
        _check(kernels.randn_like, x)
        _check(kernels.native_dropout, x - 1, 0.3, True)
        _check(kernels.native_dropout, x, 1.0, None)
    for dtype in (np.float32, np.float64, np.int64, np.int32, np.int16, np.int8, np.uint8, bool):
        x = np.zeros(shape, dtype)
        for p in (0.0, 0.3, 0.5, 1.0):
            _check(kernels.bernoulli_float, x, p)
            _check(kernels.bernoulli_p, x, p)
        if dtype is not bool:
            _check(kernels.random_from, x, 2, 9)
            _check(kernels.random_to, x, 100)


def test_other_memory() -> None:
    x = np.zeros((6, 8), np.float32)
    for view in (x.T, x[:, ::2], x[::-1], np.broadcast_to(x, (2, 6, 8))):
        if view.flags.writeable:
            torch.manual_seed(3)
            first = kernels.uniform_(view).copy()
            torch.manual_seed(3)
            np.testing.assert_array_equal(first, kernels.uniform_.__wrapped__(view))
        _check(kernels.randn_like, view)
        _check(kernels.native_dropout, view + 1, 0.5, True)


def test_memory_that_is_not_in_order() -> None:
    def fresh(dtype: Any) -> list[np.ndarray]:
        x = np.zeros((6, 8, 5), dtype)
        return [x.T, x[:, ::2], x.transpose(1, 0, 2), x[::-1], x[1, 2:, 3], x.transpose(2, 0, 1)[1:, :, 3:]]

    for dtype in (np.float32, np.float64, np.float16, torch.bfloat16.np):
        for ours, theirs in zip(fresh(dtype), fresh(dtype), strict=True):
            for kernel, arguments in ((kernels.uniform_, (-0.5, 0.75)), (kernels.normal_, (0.5, 2.0))):
                (_,), state = _drawn(lambda kernel=kernel, a=arguments, x=ours: kernel(x, *a))
                (_,), expected = _drawn(lambda kernel=kernel, a=arguments, x=theirs: kernel.__wrapped__(x, *a))
                assert state == expected
                np.testing.assert_array_equal(ours.astype(np.float64), theirs.astype(np.float64))


def test_half_types_round_to_the_nearest() -> None:
    """By way of normal numbers of means and deviations that reach subnormal numbers and the ends of the range."""
    for dtype in (np.float16, torch.bfloat16.np):
        for mean, std in ((0.0, 1e-7), (0.0, 1e-5), (0.0, 3e4), (65504.0, 16.0), (1.0, 1e-3), (-2048.0, 1.0)):
            _check(kernels.normal_, np.zeros(4099, dtype), mean, std)
            _check(kernels.normal_, np.zeros(7, dtype), mean, std)


def test_what_distributions_are_made_of() -> None:
    engine = native.extension.Stream(4)
    for n in (0, 1, 7, 3000):
        for function in (continuous.unit32, continuous.unit64):
            other = engine.copy()
            ours, theirs = function(engine, n), function.__wrapped__(other, n)
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)
            assert engine.position()[1:] == other.position()[1:]
    x = np.linspace(1e-3, 1 - 1e-3, 50)
    for name in ("log", "log1p", "tan", "exp"):
        np.testing.assert_array_equal(
            arithmetic.elementary(name, x, True), arithmetic.elementary.__wrapped__(name, x, True)
        )
    for a, b in ((1.0, 2.0), (0.1, 0.3), (-3.7, 1e10), (2.0, 0.0)):
        np.testing.assert_array_equal(arithmetic.fma64(x, a, b), arithmetic.fma64.__wrapped__(x, a, b))


def test_poisson() -> None:
    for dtype in (np.float32, np.float64, np.float16):
        _check_stream(rejection.poisson, np.array([0, 0.1, 1, 5, 9.9, 10, 12.5, 100, 1000] * 20, dtype))
        _check_stream(rejection.poisson, np.zeros((0, 3), dtype))
        with pytest.raises(RuntimeError, match="non-negative"):
            rejection.poisson(default_generator, np.array([1, -1], dtype))


def _check_stream(function: Any, *arguments: Any) -> None:
    """The same of a function that takes a generator."""
    ours, state = _drawn(lambda: function(default_generator, *arguments))
    theirs, expected = _drawn(lambda: function.__wrapped__(default_generator, *arguments))
    assert state == expected
    assert ours[0].dtype == theirs[0].dtype
    np.testing.assert_array_equal(ours[0], theirs[0])


def test_refusals_draw_nothing() -> None:
    x = np.zeros(4, np.float32)
    before = bytes(default_generator._state_bytes())
    for call in (
        lambda: kernels.uniform_(x, 2.0, 1.0),
        lambda: kernels.normal_(x, 0.0, -1.0),
        lambda: kernels.bernoulli_float(x, 1.5),
        lambda: kernels.bernoulli(x + 2),
        lambda: kernels.randint(0, (3,)),
    ):
        with pytest.raises(RuntimeError):
            call()
    assert bytes(default_generator._state_bytes()) == before


def test_generators_of_ones_own() -> None:
    generator = torch.Generator().manual_seed(5)
    first = torch.randn(7, generator=generator)
    torch.manual_seed(5)
    assert torch.equal(first, torch.randn(7))
    state = generator.get_state()
    drawn = torch.rand(3, generator=generator)
    assert torch.equal(drawn, torch.rand(3, generator=generator.set_state(state)))


def test_the_stream_is_that_of_the_python_engine() -> None:
    ours, theirs = native.extension.Stream(9), Mt19937(9)
    for n in (0, 1, 5, 700, 64, 65):
        for name in ("raw", "draws32", "draws64"):
            a, b = getattr(ours, name)(n), getattr(theirs, name)(n)
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
        a, b = ours.position(), theirs.position()
        np.testing.assert_array_equal(a[0], b[0])
        assert a[1:] == b[1:]
    assert ours.copy().raw(3).tolist() == theirs.raw(3).tolist()
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        ours.set_position(theirs.position()[0], 3, 3)
    with pytest.raises(ValueError):
        ours.raw(-1)


def test_threads_share_the_numbers() -> None:
    torch.manual_seed(1)
    whole = torch.rand(8 * 50_000).numpy()
    torch.manual_seed(1)
    parts: list = []

    def work() -> None:
        for _ in range(4):
            parts.append(torch.rand(50_000).numpy())

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.sort(whole))
