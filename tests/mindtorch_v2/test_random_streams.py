"""Random numbers against PyTorch's, recorded by tests/record_random_streams.py.

All results are compared bit for bit, except those that go through the C library's functions (`ulps` 1 in the record):
there a C library other than the recorded one may differ by one unit in the last place.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import pickle
import threading
import zlib
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from mindtorch_v2._random import Generator, default_generator, discrete, streams
from mindtorch_v2._random.arithmetic import fma64
from mindtorch_v2._random.engine import Mt19937

RECORD = json.loads((Path(__file__).parent / "data" / "random_streams.json").read_text())
seeds = st.integers(0, 2**64 - 1)


def np_dtype(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def from_hex(text: str, dtype: str, shape: list[int]) -> np.ndarray:
    return np.frombuffer(bytes.fromhex(text), np_dtype(dtype)).reshape(shape)


def argument(value: object) -> object:
    if not isinstance(value, dict):
        return value
    array = from_hex(value["hex"], value["dtype"], value["shape"])
    return array.T if value["transposed"] else array


def distance(a: np.ndarray, b: np.ndarray) -> int:
    """The largest number of representable numbers between two float arrays."""
    if a.dtype.kind == "c":
        a, b = a.view(a.real.dtype), b.view(b.real.dtype)
    bits = np.dtype(f"i{a.dtype.itemsize}")
    x, y = (v.view(bits).astype(object) for v in (a, b))
    low = -(2 ** (8 * bits.itemsize - 1))
    x, y = (np.where(v < 0, low - v, v) for v in (x, y))  # the sign bit to a number line
    return max(abs(x - y).ravel().tolist(), default=0)


@pytest.mark.parametrize(
    "case", RECORD["cases"], ids=lambda c: f"{c['stream']}-{c['dtype']}-{'x'.join(map(str, c['shape']))}-{c['seed']}"
)
def test_equals_the_record(case):
    generator = Generator().manual_seed(case["seed"])
    if case["waiting"]:
        streams.normal(generator, (1,), "float64")
    arguments = {k: argument(v) for k, v in case["arguments"].items()}
    if case["stream"] == "bernoulli_tensor":
        arguments["p"] = np.ascontiguousarray(arguments["p"])
    with pytest.warns() if warns(case) else nothing():
        result = getattr(streams, case["stream"])(generator, **arguments)
    assert result.dtype == np_dtype(case["dtype"])
    assert list(result.shape) == case["shape"]
    if "sha256" in case:
        assert hashlib.sha256(result.tobytes()).hexdigest() == case["sha256"]
    elif case["ulps"]:
        assert distance(result, from_hex(case["hex"], case["dtype"], case["shape"])) <= case["ulps"]
    else:
        assert result.tobytes().hex() == case["hex"]
    state = generator._state_bytes()
    if generator.next_double is not None:
        # The waiting number is the C library's; the rest of the state is exact.
        assert abs(generator.next_double) < 9
    if generator.next_double is None or case["ulps"] == 0:
        assert hashlib.sha256(state.tobytes()).hexdigest() == case["state"]


def warns(case: dict) -> bool:
    """Whether the case draws integers that its floating dtype cannot all hold."""
    a = case["arguments"]
    digits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}.get(case["dtype"])
    if case["stream"] != "randint" or digits is None or a["high"] is None:
        return False
    return max(abs(a["low"]), abs(a["high"] - 1)) > 2**digits


class nothing:
    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False


def test_a_state_of_pytorch_goes_on():
    exchange = RECORD["exchange"]
    state = np.frombuffer(zlib.decompress(base64.b64decode(exchange["state"])), np.uint8)
    generator = Generator()
    generator._set_state_bytes(state)
    assert generator.initial_seed() == exchange["initial_seed"]
    assert generator._state_bytes().tobytes() == state.tobytes()
    assert distance(streams.normal(generator, (4,), "float64"), from_hex(exchange["normal"], "float64", [4])) <= 1
    assert streams.randint(generator, (2000,), "int64", 0, 10**6)[-8:].tolist() == exchange["randint"]


def test_our_state_is_the_one_that_pytorch_writes():
    exchange = RECORD["exchange"]
    generator = Generator().manual_seed(exchange["initial_seed"])
    streams.uniform(generator, (700,), "float32")
    streams.normal(generator, (3,), "float32")
    theirs = np.frombuffer(zlib.decompress(base64.b64decode(exchange["state"])), np.uint8).copy()
    ours = generator._state_bytes()
    waiting = slice(5024, 5032)
    assert distance(ours[waiting].view(np.float64), theirs[waiting].view(np.float64)) <= 1
    ours[waiting] = theirs[waiting] = 0
    assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("layout", RECORD["layouts"], ids=lambda c: c["name"])
def test_targets_are_filled_in_the_order_of_their_memory(layout):
    size = 1 + sum((n - 1) * s for n, s in zip(layout["shape"], layout["strides"]))
    target = np.lib.stride_tricks.as_strided(
        np.empty(size, np.float32), layout["shape"], [4 * s for s in layout["strides"]]
    )
    generator = Generator().manual_seed(31)
    streams.fill(target, lambda shape: streams.uniform(generator, shape, "float32"))
    assert target.tobytes().hex() == layout["hex"]


@pytest.mark.parametrize(
    ("strides", "order"),
    [((4, 1), (0, 1)), ((1, 4), (1, 0)), ((12, 1, 4), (0, 2, 1)), ((0, 1), (0, 1)), ((1, 0, 5), (2, 1, 0)), ((), ())],
)
def test_draw_order(strides, order):
    assert streams.draw_order(strides) == order


def test_a_race_over_expanded_weights_is_that_over_their_rows():
    weights = np.random.default_rng(1).random(40).astype(np.float32)
    rows = np.broadcast_to(weights, (6, 40))
    generators = [Generator().manual_seed(4) for _ in range(2)]
    expanded, plain = (streams.multinomial(g, w, 3) for g, w in zip(generators, (rows, rows.copy())))
    assert expanded.tolist() == plain.tolist()


@given(seeds, st.lists(st.integers(0, 700), max_size=6), st.booleans())
@settings(max_examples=40, deadline=None)
def test_draws_in_parts_are_the_draws_at_once(seed, parts, wide):
    whole, engine = Mt19937(seed), Mt19937(seed)
    draw = Mt19937.draws64 if wide else Mt19937.draws32
    together = draw(whole, sum(parts))
    assert np.concatenate([draw(engine, n) for n in parts] or [together]).tolist() == together.tolist()
    assert engine.copy().draws32(5).tolist() == whole.draws32(5).tolist()


@given(seeds, st.integers(0, 1300), st.booleans())
@settings(max_examples=40, deadline=None)
def test_states_survive_every_way_of_copying(seed, drawn, waiting):
    generator = Generator().manual_seed(seed)
    streams.uniform(generator, (drawn,), "float32")
    if waiting:
        streams.normal(generator, (1,), "float32")
    copies = [generator.clone_state(), copy.deepcopy(generator), pickle.loads(pickle.dumps(generator))]
    copies.append(Generator())
    assert copies[-1].set_state(generator.get_state()) is copies[-1]
    expected = streams.normal(generator, (5,), "float64").tolist()
    for other in copies:
        assert other is not generator and other.initial_seed() == seed
        assert streams.normal(other, (5,), "float64").tolist() == expected


@given(seeds, st.sampled_from(["float16", "bfloat16", "float32", "float64"]), st.floats(-8, 8), st.floats(0, 8))
@settings(max_examples=60, deadline=None)
def test_uniform_numbers_stay_below_the_upper_bound(seed, dtype, low, width):
    d = np_dtype(dtype)
    low, high = float(d.type(low)), float(d.type(low + width))
    x = streams.uniform(Generator().manual_seed(seed), (300,), dtype, low, high).astype(np.float64)
    assert (x >= low).all() and ((x < high).all() or low == high)


@given(st.integers(4097, 12000), seeds)
@settings(max_examples=15, deadline=None)
def test_exchanges_in_blocks_are_those_one_by_one(n, seed):
    rng = np.random.default_rng(seed)
    # Targets close together collide often.
    span = int(rng.integers(1, n))
    targets = np.array([min(n - 1, i + int(z)) for i, z in enumerate(rng.integers(0, span, n - 1))], np.int64)
    expected = discrete._exchange_all(list(range(n)), targets.tolist())
    assert discrete._exchange_blocks(n, targets).tolist() == expected


@given(st.lists(st.floats(-1e100, 1e100), min_size=1), st.floats(-1e100, 1e100), st.floats(-1e100, 1e100))
@settings(max_examples=2000, deadline=None)
def test_fused_multiply_add_rounds_once(xs, a, b):
    from fractions import Fraction

    for x, got in zip(xs, fma64(np.array(xs), a, b).tolist()):
        exact = Fraction(x) * Fraction(a) + Fraction(b)
        if abs(x * a) > 1e-200 and 1e-100 < abs(a):
            assert got == float(exact)


def test_threads_share_the_draws():
    shared, alone = Generator().manual_seed(3), Generator().manual_seed(3)
    drawn: list[list[int]] = [[], []]

    def work(mine):
        for _ in range(200):
            mine.extend(streams.random(shared, (7,), "int64").tolist())

    threads = [threading.Thread(target=work, args=(mine,)) for mine in drawn]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(drawn[0] + drawn[1]) == sorted(streams.random(alone, (2800,), "int64").tolist())


@pytest.mark.parametrize(
    ("seed", "error", "text"),
    [
        ("x", RuntimeError, "manual_seed expected a long, but got str"),
        (True, RuntimeError, "manual_seed expected a long, but got bool"),
        (1.5, RuntimeError, "manual_seed expected a long, but got float"),
        (2**64, ValueError, "Overflow when unpacking long long"),
        (-(2**63) - 1, ValueError, "Overflow when unpacking long long"),
    ],
)
def test_seeds_out_of_range(seed, error, text):
    with pytest.raises(error, match=text):
        Generator().manual_seed(seed)


def test_seeds():
    generator = Generator()
    assert generator.initial_seed() == 67280421310721
    assert generator.manual_seed(-1) is generator
    assert generator.initial_seed() == 2**64 - 1
    # Only 32 bits choose the stream.
    numbers = [streams.uniform(Generator().manual_seed(s), (3,), "float32").tolist() for s in (7, 2**32 + 7)]
    assert numbers[0] == numbers[1]
    assert generator.seed() == generator.initial_seed() != generator.seed()
    assert str(generator.device) == "cpu" and default_generator.device.type == "cpu"


@pytest.mark.parametrize(
    ("state", "error", "text"),
    [
        (np.zeros(5056, np.int64), TypeError, "RNG state must be a torch.ByteTensor"),
        (np.zeros(10, np.uint8), RuntimeError, "of size 5056 but found the input RNG state size to be 10"),
        (np.zeros(5056, np.uint8), RuntimeError, "Invalid mt19937 state"),
        (np.zeros((5056, 2), np.uint8)[:, 0], RuntimeError, "RNG state must be contiguous"),
    ],
)
def test_arrays_that_are_no_state(state, error, text):
    generator = Generator().manual_seed(1)
    with pytest.raises(error, match=text):
        generator._set_state_bytes(state)
    assert (
        streams.random(generator, (3,), "int64").tolist()
        == streams.random(Generator().manual_seed(1), (3,), "int64").tolist()
    )


def test_objects_that_are_no_state():
    with pytest.raises(TypeError, match="expected a torch.ByteTensor, but got int"):
        Generator().set_state(3)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda g: streams.uniform(g, (2,), "float32", 2, 1), RuntimeError, "found from=2 > to=1"),
        (lambda g: streams.uniform(g, (2,), "float16", 0, 1e6), RuntimeError, "to is out of bounds for c10::Half"),
        (
            lambda g: streams.uniform(g, (2,), "int64"),
            NotImplementedError,
            "\"check_uniform_bounds\" not implemented for 'Long'",
        ),
        (
            lambda g: streams.normal(g, (2,), "float32", 0, -1),
            RuntimeError,
            "normal expects std >= 0.0, but found std -1",
        ),
        (lambda g: streams.randint(g, (2,), "int64", 5, 5), RuntimeError, "but got from=5 >= to=5"),
        (
            lambda g: streams.randint(g, (2,), "uint8", 0, 300),
            RuntimeError,
            "to - 1 is out of bounds for unsigned char",
        ),
        (
            lambda g: streams.bernoulli(g, (2,), "float32", 2),
            RuntimeError,
            "expects p to be in \\[0, 1\\], but got p=2",
        ),
        (
            lambda g: streams.bernoulli_tensor(g, np.array([2.0]), "float32"),
            RuntimeError,
            "Expected p_in >= 0 && p_in <= 1",
        ),
        (lambda g: streams.geometric(g, (2,), "int64", 1), RuntimeError, "expects p to be in \\(0, 1\\), but got p=1"),
        (
            lambda g: streams.exponential(g, (2,), "float32", 0),
            RuntimeError,
            "expects lambda > 0.0, but found lambda=0",
        ),
        (lambda g: streams.cauchy(g, (2,), "float32", 0, -1), RuntimeError, "expects sigma > 0.0, but found sigma=-1"),
        (lambda g: streams.log_normal(g, (2,), "float32", 0, 0), RuntimeError, "expects std > 0.0, but found std=0"),
        (lambda g: streams.poisson(g, np.array([-1.0])), RuntimeError, "expected rate to be non-negative"),
        (lambda g: streams.randperm(g, 257, "uint8"), RuntimeError, "cannot be converted to type uint8_t"),
        (lambda g: streams.randperm(g, 2050, "float16"), RuntimeError, "n cannot be greater than 2049 for Half type."),
        (lambda g: streams.multinomial(g, np.ones(3), 4), RuntimeError, "without replacement"),
        (lambda g: streams.multinomial(g, np.zeros(3), 1), RuntimeError, "sum of probabilities <= 0"),
        (lambda g: streams.multinomial(g, np.array([1, -1.0]), 1), RuntimeError, "either `inf`, `nan` or element < 0"),
        (lambda g: streams.multinomial(g, np.array([1, -1.0]), 2, True), RuntimeError, "probability entry < 0"),
        (lambda g: streams.multinomial(g, np.ones((1, 1, 1)), 1), RuntimeError, "prob_dist must be 1 or 2 dim"),
    ],
)
def test_refused_arguments_draw_nothing(call, error, text):
    generator = Generator().manual_seed(1)
    before = generator._state_bytes().tobytes()
    with pytest.raises(error, match=text):
        call(generator)
    assert generator._state_bytes().tobytes() == before


def test_multinomial_follows_the_weights():
    weights = np.array([1.0, 0, 2, 7])
    generator = Generator().manual_seed(5)
    for replacement in (False, True):
        rows = np.tile(weights, (20000, 1))
        first = streams.multinomial(generator, rows, 2, replacement)[:, 0]
        frequency = np.bincount(first, minlength=4) / len(first)
        assert np.abs(frequency - weights / weights.sum()).max() < 0.015
    two = streams.multinomial(generator, rows, 2)
    assert (two[:, 0] != two[:, 1]).all()
