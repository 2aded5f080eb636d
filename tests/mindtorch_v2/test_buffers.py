"""Large results come from memory that was freed before: what is kept, and that nobody sees the difference."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import tracemalloc

import numpy as np
import pytest
from numpy._core.multiarray import get_handler_name

import mindtorch_v2 as torch
from mindtorch_v2 import _memory
from mindtorch_v2._dispatch import native

MIB = 2**20
LARGE = 300_000  # float32 elements, more than 1 MiB
OURS = "mindtorch_buffers"

pytestmark = pytest.mark.skipif(native.extension is None, reason="needs the C extension")


@pytest.fixture(autouse=True)
def limit():
    """Nothing kept at the beginning of a test, the usual bound during it."""
    gc.collect()
    native.extension.keep_buffers(0)
    native.extension.keep_buffers(64 * MIB)
    yield 64 * MIB
    native.extension.keep_buffers(64 * MIB)


def kept() -> int:
    return native.extension.keep_buffers(None)[0]


def empty(*shape: int, dtype=np.float32) -> np.ndarray:
    return _memory.allocate(shape, np.dtype(dtype))


def test_results_are_in_our_memory():
    a = torch.ones(LARGE)
    results = {
        "ufunc": a + a,
        "comparison": a > a,
        "loop": a.tanh(),
        "softmax": a.softmax(0),
        "empty": torch.empty(LARGE),
        "strided": torch.empty_strided((2, LARGE), (1, 2)),
    }
    for name, made in results.items():
        assert get_handler_name(_memory.owner(made.numpy())) == OURS, name
        assert _memory.address(_memory.owner(made.numpy())) % 64 == 0, name
    with torch.pipeline():
        made = a.tanh() + a
    assert get_handler_name(_memory.owner(made.numpy())) == OURS


def test_others_are_not():
    assert get_handler_name(_memory.owner((torch.ones(4) + 1).numpy())) == "default_allocator"
    assert get_handler_name(np.empty(LARGE, np.float32)) == "default_allocator"
    torch.ones(LARGE) + 1
    assert get_handler_name() == "default_allocator"


def test_freed_memory_is_used_again():
    a = torch.ones(LARGE)
    address = (a + a).data_ptr()
    assert (a + a).data_ptr() == address
    close, far = empty(LARGE - 1000), empty(LARGE // 2)
    assert _memory.address(close) == address
    assert _memory.address(far) != address


def test_the_last_freed_comes_first():
    first, second = empty(LARGE), empty(LARGE)
    addresses = [_memory.address(first), _memory.address(second)]
    del first, second
    assert _memory.address(empty(LARGE)) == addresses[1]


def test_the_bound_holds(limit):
    arrays = [empty(5 * MIB) for _ in range(6)]  # 20 MiB each
    assert kept() == 0
    while arrays:
        arrays.pop()
        assert kept() <= limit
    assert kept() > 59 * MIB
    del arrays
    empty(20 * MIB)  # 80 MiB, more than the bound
    assert kept() > 59 * MIB
    assert native.extension.keep_buffers(30 * MIB)[0] <= 30 * MIB


def test_many_blocks():
    arrays = [empty(2**16) for _ in range(200)]
    assert len({_memory.address(a) for a in arrays}) == 200
    arrays.clear()
    assert 0 < kept() <= 64 * (2**18 + 2**13)


def test_a_view_keeps_the_memory():
    a = torch.ones(LARGE)
    made = a + a
    address, view = made.data_ptr(), made.numpy()[10:20]
    del made
    assert (a + 5).data_ptr() != address
    assert (view == 2).all()
    del view
    assert (a + 5).data_ptr() == address


def test_resize():
    made = torch.ones(LARGE) + 1
    made.resize_(3 * LARGE)
    assert (made[:LARGE] == 2).all()
    made.resize_(4)
    assert made.tolist() == [2.0] * 4


def test_realloc_and_calloc():
    """numpy's own resize takes memory by the array's handler, and clears what is new."""
    array = empty(LARGE)
    array[:] = 3
    for size in (LARGE + 10, 3 * LARGE, LARGE // 2, 10, LARGE):
        least = min(size, array.size)
        array.resize(size, refcheck=False)
        assert get_handler_name(array) == OURS
        assert (array[:least] == 3).all()
        assert (array[least:] == 0).all()
        array[:] = 3
    array.resize(0, refcheck=False)
    dirty = empty(LARGE)
    dirty[:] = 7
    del dirty
    assert not torch.zeros(LARGE).numpy().any()


def test_tracemalloc_counts():
    a = torch.ones(LARGE)
    a + a  # so that a block is kept
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        made = a + a
        grown = tracemalloc.get_traced_memory()[0] - before
        assert 4 * LARGE <= grown < 4 * LARGE + 20_000
        del made
        assert tracemalloc.get_traced_memory()[0] - before < 20_000
    finally:
        tracemalloc.stop()


def test_too_much_memory():
    with pytest.raises(MemoryError):
        empty(2**57)
    assert get_handler_name() == "default_allocator"


def test_threads():
    wrong: list[object] = []

    def work(value: int) -> None:
        for size in range(LARGE, LARGE + 40_000, 1000):
            a = torch.full((size,), float(value))
            b = a * 2
            c = b + a
            if not (c.numpy() == 3 * value).all():
                wrong.append((value, size))

    threads = [threading.Thread(target=work, args=(v,)) for v in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def run(code: str, **environment: str) -> str:
    given = {**os.environ, **environment}
    done = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork():
    """A child goes on while a thread of the parent allocates, and shares no memory with it."""
    code = """
import os, threading
import mindtorch_v2 as torch
a = torch.ones(300_000)
stop = threading.Event()
def work():
    while not stop.is_set():
        a + a
thread = threading.Thread(target=work)
thread.start()
made = a + a
del made
for _ in range(20):
    child = os.fork()
    if child == 0:
        ok = all((a * n).numpy().max() == n for n in range(20))
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
thread.join()
print("done")
"""
    assert run(code, PYTHONWARNINGS="ignore") == "done\n"


STATE = """
import mindtorch_v2 as torch
from mindtorch_v2._dispatch import native
from numpy._core.multiarray import get_handler_name
a = torch.ones(300_000)
print(get_handler_name((a + a)._payload), *native.extension.keep_buffers(None))
"""


def test_switched_off():
    assert run(STATE, MINDTORCH_V2_BUFFER_CACHE="0") == "default_allocator 0 0\n"


def test_bound_by_the_environment():
    assert run(STATE, MINDTORCH_V2_BUFFER_CACHE="1") == f"{OURS} 0 {MIB}\n"
    assert "no number of MiB: much" in run(STATE, MINDTORCH_V2_BUFFER_CACHE="much")


def test_empty_takes_shapes_and_dtypes():
    for shape in ((), (0,), (3, 4), (0, 10**6), (512, 1024)):
        for dtype in (np.float32, np.bool_, np.int64, torch.bfloat16.np):
            made = empty(*shape, dtype=dtype)
            assert (made.shape, made.dtype, made.base) == (shape, dtype, None)
    with pytest.raises(TypeError):
        native.extension.empty((3,), "float32")
    with pytest.raises(ValueError):
        empty(2**40, 2**40)
    with pytest.raises(ValueError):
        empty(-1)
