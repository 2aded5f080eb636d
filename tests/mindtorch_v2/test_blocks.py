"""The loops of the block interpreter: eager calls give the bits of programs, wherever an element stands and however an operand is given.

Every operator with a `block` is tried, as the generated tables have them. Without the extension there are no loops.
"""

from __future__ import annotations

import importlib
import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from _blocks import WIDTHS, assert_bits, battery, opcode, run
from _native_outcomes import needs_extension

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import dispatcher, native
from mindtorch_v2._dispatch.operator import Block, Operator
from mindtorch_v2._generated import functions
from mindtorch_v2._generated.native import LOOPS
from mindtorch_v2._generated.tables import operators
from mindtorch_v2._generated.test_table import ROWS
from mindtorch_v2._tensor import wrap

pytestmark = needs_extension
for family in set(functions.FAMILIES.values()):  # operators know their public functions then
    importlib.import_module(f"{functions.__name__}._{family}")

BLOCK = 1024  # elements
HINTS = {row["name"]: row["hints"] for row in ROWS}
NUMBERS = (0.75, 1.5, 0.3, 2.0)
NAMED = {} if native.extension is None else {name: k for k, (name, _, _) in enumerate(native.extension.loops())}


def blocks() -> Iterator[Any]:
    for op in operators():
        for k, block in enumerate(op.block):
            yield pytest.param(op, block, id=f"{op.full_name}-{k}")


def loops() -> Iterator[Any]:
    for number, (name, kinds, _) in enumerate(() if native.extension is None else native.extension.loops()):
        yield pytest.param(number, kinds, id=name)


# Eager calls


def arguments(op: Operator, block: Block, arrays: list) -> list:
    """The arguments of an operator: arrays and numbers for the block's operands, the values that it wants for the others."""
    values = dict(block.conditions)
    given, numbers = iter(arrays), iter(NUMBERS)
    made = []
    for index, param in enumerate(op.params):
        hint = HINTS[op.full_name].get(param.name)
        if index not in block.operands:
            made.append(values[index])
        elif param.type != "Tensor":
            made.append(next(numbers))
        elif hint in ("boolean", "mask"):
            made.append(np.asarray(next(given) > 0))
        else:  # a tensor that no sample is drawn of is one without dimensions
            made.append(next(given).reshape(-1)[-1:].reshape(()) if hint == "skip" else next(given))
    return made


def tensors(args: list) -> list:
    return [
        wrap(a, torch.bool if a.dtype == bool else torch.float32 if a.itemsize == 4 else torch.float64)
        if isinstance(a, np.ndarray)
        else a
        for a in args
    ]


def eager(op: Operator, args: list) -> np.ndarray:
    """By the public function, so by its fast path if there is one."""
    made = tensors(args)
    positional = [a for a, p in zip(made, op.params) if not p.keyword]
    return op.function(*positional, **{p.name: a for a, p in zip(made, op.params) if p.keyword}).numpy()


def layouts(width: int, operands: int) -> Iterator[tuple[str, list]]:
    """Operands in several layouts, with results of the same elements."""
    dtype = WIDTHS[width]
    flat = [battery(dtype, 2112, seed) for seed in range(operands)]
    grid = [a.reshape(48, 44) for a in flat]
    yield "contiguous", flat
    yield "small", [a[:13].copy() for a in flat]
    yield "strided", [a[::3] for a in flat]
    yield "reversed", [a[::-1] for a in flat]
    yield "transposed", [a.T for a in grid]
    yield "permuted", [a.reshape(4, 12, 11, 4).transpose(0, 2, 3, 1) for a in flat]
    yield "columns", [a[:, 5:9] for a in grid]
    if operands > 1:
        yield "mixed", [grid[0], *(a.T.copy().T for a in grid[1:])]
        yield "row", [grid[0], *(a[0] for a in grid[1:])]
        yield "column", [grid[0], *(a[:, :1] for a in grid[1:])]
        yield "outer", [grid[0][:, :1], *(a[0] for a in grid[1:])]
        yield "number right", [grid[0], *(a[1, 1] * np.ones((), dtype) for a in grid[1:])]
        yield "number left", [np.full((), 0.4, dtype), *grid[1:]]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("op", "block"), blocks())
def test_eager_gives_the_bits_of_the_program(op: Operator, block: Block, width: int) -> None:
    count = sum(op.params[i].type == "Tensor" for i in block.operands)
    for what, arrays in layouts(width, count):
        args = arguments(op, block, [np.asarray(a) for a in arrays])
        shape = np.broadcast_shapes(*(a.shape for a in args if isinstance(a, np.ndarray)))
        wanted = run(block.opcode, tuple(args[i] for i in block.operands), shape, WIDTHS[width])
        assert_bits(eager(op, args), wanted, what)
        assert_bits(dispatcher.call(op, tuple(tensors(args))).numpy(), wanted, f"{what}, dispatched")
        if "out" in op.variants:
            target = torch.empty(
                shape, dtype=torch.bool if wanted.dtype == bool else torch.float32 if width == 4 else torch.float64
            )
            dispatcher.call(op, tuple(tensors(args)), target)
            assert_bits(target.numpy(), wanted, f"{what}, out=")
        own = args[0]
        if "inplace" in op.variants and own.shape == shape and wanted.dtype == own.dtype:
            changed = [own.copy() if own.base is None else np.array(own, order="K"), *args[1:]]
            for dense in (changed[0], np.repeat(own[..., None], 2, -1)[..., 0]):
                changed[0] = dense
                dispatcher.call_inplace(op, tuple(tensors(changed)))
                assert_bits(dense, wanted, f"{what}, in place")


@pytest.mark.parametrize("name", ["tanh", "relu", "clamp_min", "maximum"])
def test_methods_in_place_take_the_loop(name: str) -> None:
    x = battery(np.float32, 300)
    more = () if name in ("tanh", "relu") else (torch.tensor(x[::-1].copy()),)
    wanted = getattr(torch, name)(torch.tensor(x), *more).numpy()
    if name != "maximum":
        changed = torch.tensor(x)
        assert getattr(changed, f"{name}_")(*more) is changed and changed._version == 1
        assert_bits(changed.numpy(), wanted, name)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_are_computed_in_float32(dtype: Any) -> None:
    x = torch.tensor(battery(np.float32, 200)).to(dtype)
    for function in (torch.tanh, torch.nn.functional.gelu, torch.sigmoid):
        wanted = function(x.float()).to(dtype)
        assert torch.equal(torch.nan_to_num(function(x)), torch.nan_to_num(wanted))


def test_other_dtypes_go_to_numpy() -> None:
    assert torch.maximum(torch.tensor([1, 5]), torch.tensor([4, 2])).tolist() == [4, 5]
    assert torch.tanh(torch.tensor([0j])).tolist() == [0j]
    assert torch.nn.functional.hardtanh(torch.tensor([-7, 7])).tolist() == [-1, 1]


def test_a_kernel_from_outside_is_not_passed_by() -> None:
    code = (
        "import numpy as np, mindtorch_v2 as t; from mindtorch_v2._dispatch import registry\n"
        "t.tanh(t.ones(2)); registry.register('tanh', 'cpu', lambda x: x + 40)\n"
        "print(t.tanh(t.ones(2)).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[41.0, 41.0]\n"


# Loops


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("opcode", "kinds"), loops())
def test_bits_do_not_depend_on_the_place(opcode: int, kinds: str, width: int, vectors: int) -> None:
    arrays = [battery(WIDTHS[width], 5000, seed) for seed in range(len(kinds))]

    def sources(part: slice) -> tuple:
        return tuple(arrays[k][part] if kind == "T" else NUMBERS[k % 4] for k, kind in enumerate(kinds))

    whole = run(opcode, sources(slice(None)))
    for start, length in [(1, 4999), (BLOCK - 1, 2), (17, BLOCK)] + [(3 * n + 5, n) for n in range(1, 70)]:
        part = slice(start, start + length)
        assert_bits(run(opcode, sources(part)), whole[part], part)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("opcode", "kinds"), loops())
def test_what_stands_beside_an_output_stays(opcode: int, kinds: str, width: int, vectors: int) -> None:
    if native.extension.loops()[opcode][2]:
        pytest.skip("truths are stored from a block")
    dtype, own = WIDTHS[width], kinds.index("T")
    for n in range(1, 40):
        sources = [battery(dtype, n, seed) if kind == "T" else NUMBERS[seed % 4] for seed, kind in enumerate(kinds)]
        around = np.full(n + 40, 7.5, dtype)
        out = around[20 : 20 + n]
        out[:] = sources[own]
        wanted = run(opcode, tuple(sources))
        assert_bits(run(opcode, (*sources[:own], out, *sources[own + 1 :]), out=out), wanted, n)
        assert (around[:20] == 7.5).all() and (around[20 + n :] == 7.5).all(), n


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("opcode", "kinds"), loops())
def test_numbers_give_the_bits_of_arrays(opcode: int, kinds: str, width: int, vectors: int) -> None:
    x = battery(WIDTHS[width], 400)
    arrays = [k for k, kind in enumerate(kinds) if kind == "T"]
    for numbers in itertools.chain.from_iterable(itertools.combinations(arrays, n) for n in range(1, len(arrays))):
        for value in (0.3, -0.0, np.inf, np.nan):
            filled = [
                np.full_like(x, value) if k in numbers else NUMBERS[k % 4] if kinds[k] == "S" else np.roll(x, k)
                for k in range(len(kinds))
            ]
            immediates = tuple(value if k in numbers else filled[k] for k in range(len(kinds)))
            no_dims = tuple(np.array(value, x.dtype) if k in numbers else filled[k] for k in range(len(kinds)))
            wanted = run(opcode, tuple(filled))
            assert_bits(run(opcode, immediates, x.shape, x.dtype), wanted, (numbers, value))
            assert_bits(run(opcode, no_dims, x.shape, x.dtype), wanted, (numbers, value))


# Programs


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("n", [0, 1, 7, BLOCK - 1, BLOCK, BLOCK + 1, 40_000])
def test_chain(width: int, n: int) -> None:
    x, y = battery(WIDTHS[width], n), battery(WIDTHS[width], n, 1)
    first, last = np.empty_like(x), np.empty_like(x)
    chain = (
        (opcode("add.Tensor"), 4, 0, 1),
        (opcode("tanh"), 2, 4),  # an output that is read again
        (opcode("mul.Tensor"), 5, 2, 6),
        (opcode("sub.Tensor"), 4, 5, 4),
        (opcode("sigmoid"), 3, 4),
    )
    program = native.extension.Program(width, (n,), chain, (x, y, first, last), 2, 2, (0.25,))
    assert program.run() == program.blocks == -(-n // BLOCK) and program.run() == 0
    total = run(opcode("add.Tensor"), (x, y))
    wanted = run(opcode("tanh"), (total,))
    assert_bits(first, wanted, "first")
    scaled = run(opcode("mul.Tensor"), (wanted, 0.25))
    assert_bits(last, run(opcode("sigmoid"), (run(opcode("sub.Tensor"), (scaled, total)),)), "last")


@pytest.mark.parametrize("width", WIDTHS)
def test_bools_are_read_and_written(width: int) -> None:
    x = battery(WIDTHS[width], 5001).reshape(3, 1667)
    mask, other, out = np.empty(x.shape, bool), np.empty((1667, 3), bool).T, np.empty_like(x)
    other[...] = np.random.default_rng(0).random(x.shape) < 0.5
    chain = (
        (opcode("lt.Tensor"), 2, 0, 5),
        (opcode("logical_and"), 4, 2, 1),
        (opcode("where.self"), 3, 4, 0, 6),
    )
    native.extension.Program(width, x.shape, chain, (x, other, mask, out), 2, 1, (0.5, -1.0)).run()
    assert np.array_equal(mask, x < 0.5)
    assert np.array_equal(out, np.where(mask & other, x, -1))


@pytest.mark.parametrize("shape", [(3, 1000), (1000, 3), (1, 5000), (7, 11, 13, 5)])
def test_strided_views_are_gathered(shape: tuple) -> None:
    rng = np.random.default_rng(3)
    whole = rng.random((*shape, 2), np.float32)
    views = [whole[..., 0], np.flip(whole[..., 1], 0), rng.random(shape[::-1], np.float32).T]
    views += [
        np.broadcast_to(rng.random(shape[-1], np.float32), shape),
        np.broadcast_to(rng.random((*shape[:-1], 1), np.float32), shape),
    ]
    unaligned = (
        np.frombuffer(bytes(1) + rng.random(shape, np.float32).tobytes(), np.uint8)[1:].view(np.float32).reshape(shape)
    )
    for view in [*views, unaligned]:
        assert np.array_equal(run(opcode("neg"), (view,)), -view)


def test_an_output_may_be_an_input() -> None:
    x = battery(np.float64, 5000)
    wanted = run(opcode("exp"), (x,))
    native.extension.Program(8, x.shape, ((opcode("exp"), 1, 0),), (x, x), 1, 0, ()).run()
    assert_bits(x, wanted, "in place")


def test_threads_share_a_program() -> None:
    x = battery(np.float32, 3_000_000)
    out = np.empty_like(x)
    chain = ((opcode("tanh"), 2, 0), (opcode("sigmoid"), 1, 2))
    program = native.extension.Program(4, x.shape, chain, (x, out), 1, 1, ())
    done: list[int] = []
    threads = [threading.Thread(target=lambda: done.append(program.run())) for _ in range(2)]
    for thread in threads:
        thread.start()
    done.append(program.run())
    for thread in threads:
        thread.join()
    assert sum(done) == program.blocks == -(-x.size // BLOCK)
    assert_bits(out, run(opcode("sigmoid"), (run(opcode("tanh"), (x,)),)), "threads")


X, OUT = np.zeros(6, np.float32), np.zeros(6, np.float32)
READ_ONLY = np.zeros(6, np.float32)
READ_ONLY.flags.writeable = False
NEG, ADD, ELU = (NAMED.get(name, 0) for name in ("loop_neg", "loop_add_Tensor", "loop_elu"))
GOOD: dict[str, Any] = {
    "width": 4,
    "shape": (6,),
    "instructions": ((NEG, 1, 0),),
    "arrays": (X, OUT),
    "outputs_from": 1,
    "temporaries": 1,
    "immediates": (1.0,),
}
BAD: dict[str, tuple[dict, type[Exception]]] = {
    "width": ({"width": 2}, ValueError),
    "shape": ({"shape": (5,)}, ValueError),
    "negative shape": ({"shape": (-6,)}, ValueError),
    "huge shape": ({"shape": (2**62, 2**62)}, ValueError),
    "shape of text": ({"shape": ("6",)}, TypeError),
    "no instructions": ({"instructions": ()}, ValueError),
    "instruction": ({"instructions": (3,)}, TypeError),
    "short instruction": ({"instructions": ((NEG, 1),)}, TypeError),
    "operation": ({"instructions": ((10**6, 1, 0),)}, ValueError),
    "negative operation": ({"instructions": ((-1, 1, 0),)}, ValueError),
    "too many operands": ({"instructions": ((NEG, 1, 0, 0),)}, ValueError),
    "too few operands": ({"instructions": ((ADD, 1, 0),)}, ValueError),
    "source": ({"instructions": ((NEG, 1, 4),)}, ValueError),
    "negative source": ({"instructions": ((NEG, 1, -1),)}, ValueError),
    "huge source": ({"instructions": ((NEG, 1, 2**80),)}, OverflowError),
    "target is an input": ({"instructions": ((NEG, 0, 0),)}, ValueError),
    "target is an immediate": ({"instructions": ((NEG, 3, 0),)}, ValueError),
    "target": ({"instructions": ((NEG, 9, 0),)}, ValueError),
    "empty temporary": ({"instructions": ((NEG, 1, 2),)}, ValueError),
    "empty output": ({"instructions": ((NEG, 1, 1),)}, ValueError),
    "output never written": ({"instructions": ((NEG, 2, 0),)}, ValueError),
    "an array for a number": ({"instructions": ((ELU, 1, 0, 0, 3, 3),)}, ValueError),
    "no output": ({"outputs_from": 2}, ValueError),
    "negative outputs": ({"outputs_from": -1}, ValueError),
    "temporaries": ({"temporaries": 5000}, ValueError),
    "immediates": ({"immediates": ("1",)}, TypeError),
    "no array": ({"arrays": (X, None)}, TypeError),
    "other floats": ({"arrays": (X.astype(np.float64), OUT)}, TypeError),
    "integers": ({"arrays": (X.astype(np.int32), OUT)}, TypeError),
    "byte order": ({"arrays": (X.astype(">f4"), OUT)}, TypeError),
    "strided output": ({"arrays": (X, np.zeros(12, np.float32)[::2])}, ValueError),
    "read-only output": ({"arrays": (X, READ_ONLY)}, ValueError),
    "shifted memory": ({"arrays": (X[:5], X[1:]), "shape": (5,)}, ValueError),
    "reversed memory": ({"arrays": (X[::-1], X)}, ValueError),
    "repeated memory": ({"arrays": (np.broadcast_to(X[:1], 6), X)}, ValueError),
    "outputs share": ({"arrays": (X, OUT, OUT), "instructions": ((NEG, 1, 0), (NEG, 2, 0))}, ValueError),
    "an input that was overwritten": ({"arrays": (X, X), "instructions": ((NEG, 1, 0), (NEG, 1, 0))}, ValueError),
}


@pytest.mark.parametrize("what", BAD)
def test_wrong_programs_are_refused(what: str) -> None:
    native.extension.Program(**GOOD).run()
    change, error = BAD[what]
    with pytest.raises(error):
        native.extension.Program(**(GOOD | change))


def test_the_extension_has_the_table_of_the_schema() -> None:
    assert native.extension.LOOPS == LOOPS
    kinds = [kinds for _, kinds, _ in native.extension.loops()]
    for op in operators():
        for block in op.block:
            assert len(kinds[block.opcode]) == len(block.operands), op
            assert {*block.operands, *(i for i, _ in block.conditions)} == set(range(len(op.params))), op


def test_an_extension_of_another_table_is_not_used() -> None:
    code = (
        "import sys, types, warnings\n"
        "sys.modules['mindtorch_v2._generated.native'] = table = types.ModuleType('table'); table.LOOPS = -1\n"
        "with warnings.catch_warnings(record=True) as found:\n"
        "    from mindtorch_v2._dispatch import native\n"
        "print(native.extension, ['build it again' in str(w.message) for w in found])"
    )
    environment = {**os.environ, "MINDTORCH_V2_REQUIRE_NATIVE": "0"}
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    assert done.stdout == "None [True]\n"
    required = {**environment, "MINDTORCH_V2_REQUIRE_NATIVE": "1"}
    failed = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, env=required)
    assert failed.returncode == 1 and "build it again" in failed.stderr
