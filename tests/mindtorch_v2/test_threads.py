"""Loops on several threads: the same bits on any number of them, forks, loops at the same time, and how many there are."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2._dispatch import native

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture(autouse=True)
def _count() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def _rows(*shape: int, dtype: Any = torch.float32) -> Any:
    return torch.tensor(np.random.default_rng(7).standard_normal(shape), dtype=dtype)


def _gradients(function: Callable, *tensors: Any) -> list[Any]:
    leaves = [tensor.clone().requires_grad_() for tensor in tensors]
    result = function(*leaves)
    return [result, *torch.autograd.grad(result, leaves, _rows(*result.shape, dtype=result.dtype))]


def _steps(kind: Any, **options: Any) -> list[Any]:
    params = [torch.nn.Parameter(_rows(300, 301)), torch.nn.Parameter(_rows(5))]
    optimizer = kind(params, **options)
    for _ in range(3):
        for param in params:
            param.grad = param.detach() * 0.5 + 1
        optimizer.step()
    return params


def _image_rows(x: Any, weight: Any) -> Any:
    return F.conv2d(x, weight, padding=1, groups=12)


def _image_windows(x: Any, weight: Any) -> Any:
    return F.conv2d(x, weight, padding=1)


def _ties() -> list[Any]:
    x = (_rows(4097, 70) * 2).round()
    x[x == 0] *= -1
    x[1000, 3] = x[3000, 3] = x[4000, 5] = torch.nan
    return [x.amax(0), *x.max(0), *x.min(0), torch.linalg.vector_norm(x, torch.inf, 0)]


FLOATS = (torch.float32, torch.float64, torch.bfloat16)
OVER_ROWS: tuple[Callable[[Any], Any], ...] = (
    *(
        partial(function, dim=0)
        for function in (torch.sum, torch.amax, torch.argmax, torch.prod, torch.var, torch.logsumexp)
    ),
    *(partial(torch.linalg.vector_norm, ord=order, dim=0) for order in (0, 1, 2, np.inf, -np.inf)),
    lambda x: x.nansum(0),
)

CASES: dict[str, Callable[[], Any]] = {
    "add": lambda: _rows(301, 1009) + _rows(301, 1009),
    "add number": lambda: _rows(301_001) * 2.5,
    "add_": lambda: _rows(301_001).mul_(3).add_(_rows(301_001)),
    "broadcast": lambda: _rows(301, 1009) + _rows(1009),
    "broadcast by columns": lambda: _rows(301, 1009) - _rows(301, 1),
    "transposed": lambda: _rows(301, 1009).t() + _rows(1009, 301),
    "tanh": lambda: torch.tanh(_rows(301_001)),
    "gelu of doubles": lambda: F.gelu(_rows(301_001, dtype=torch.float64)),
    "where": lambda: torch.where(_rows(301, 1009) > 0, _rows(301, 1009), _rows(1009)),
    "compare": lambda: _rows(301, 1009) > _rows(1009),
    "half": lambda: _rows(301, 1009).to(torch.bfloat16) + _rows(301, 1009).to(torch.bfloat16),
    "casts": lambda: [_rows(301_001).to(dtype) for dtype in (torch.float16, torch.bfloat16, torch.float64, torch.int32)],
    "copy of a transposed one": lambda: _rows(301, 1009).t().contiguous(),
    "copy of a reversed one": lambda: _rows(301, 1009).flip(1),
    "copy of few planes": lambda: _rows(2, 701, 509).permute(2, 0, 1).contiguous(),
    "sum": lambda: [_rows(700_001).sum(), _rows(700_001, dtype=torch.float64).sum()],
    "sum of halves": lambda: _rows(700_001).to(torch.bfloat16).sum(),
    "sum of integers": lambda: torch.arange(700_001).sum(),
    "sum of rows": lambda: [_rows(2001, 301).sum(1), _rows(3, 300_001).mean(1)],
    "sum of columns": lambda: [_rows(301, 2001).sum(0), _rows(301, 701).sum(0), _rows(9, 301, 301).sum(1)],
    "few columns of many rows": lambda: [f(_rows(30_001, 33, dtype=dtype)) for f in OVER_ROWS for dtype in FLOATS],
    "columns of a block and more": lambda: [f(_rows(300, 1025, dtype=dtype)) for f in OVER_ROWS for dtype in FLOATS],
    "columns of blocks": lambda: [f(_rows(90, 3105)) for f in OVER_ROWS],
    "middle of three": lambda: [f(_rows(3, 1001, 257)[..., :-3].transpose(0, 1)) for f in OVER_ROWS],
    "columns of integers": lambda: [
        f((_rows(4097, 70) * 50).to(dtype))
        for f in (torch.sum, torch.prod, torch.amax, torch.argmin, torch.any, torch.count_nonzero)
        for f in (partial(f, dim=0),)
        for dtype in (torch.int64, torch.int32, torch.int8, torch.bool)
        if f.func is not torch.argmin or dtype is not torch.bool
    ],
    "all of a slice": lambda: [f(_rows(2001, 301)[:, :-3]) for f in (torch.sum, torch.amax, torch.var, torch.linalg.vector_norm)],
    "few long rows": lambda: [*_rows(3, 300_001).max(1), _rows(3, 700_001).sum(1), _rows(700_001).argmax(), _rows(3, 700_001).amin(1)],
    "first of equal and the first NaN": _ties,
    "product": lambda: [(_rows(700_001) * 1e-3 + 1).prod(), (_rows(2001, 301) * 1e-2 + 1).prod(1)],
    "extremes": lambda: [_rows(700_001).max(), _rows(2001, 301).amin(1), *_rows(2001, 301).max(1), *_rows(301, 2001).min(0)],
    "places": lambda: [_rows(2001, 301).argmax(1), _rows(301, 2001).argmin(0)],
    "truth": lambda: [(_rows(700_001) > 9).any(), (_rows(2001, 301) > -3).all(1), (_rows(700_001) > 0).count_nonzero()],
    "variance": lambda: [_rows(700_001).var(), _rows(2001, 301).std(1), *torch.var_mean(_rows(301, 2001), 0)],
    "norms": lambda: [torch.linalg.vector_norm(_rows(700_001), order) for order in (0, 1, 2, np.inf, -np.inf)],
    "logsumexp": lambda: [_rows(700_001).logsumexp(0), _rows(2001, 301).logsumexp(1)],
    "softmax": lambda: [F.softmax(_rows(2001, 301), 1), F.log_softmax(_rows(301, 2001), 0), F.softmax(_rows(9, 301, 301), 1)],
    "softmax gradients": lambda: _gradients(lambda x: F.softmax(x, 1), _rows(2001, 301))
    + _gradients(lambda x: F.log_softmax(x, 0), _rows(301, 2001)),
    "layer norm": lambda: _gradients(lambda x, w, b: F.layer_norm(x, (301,), w, b), _rows(2001, 301), _rows(301), _rows(301)),
    "rms norm": lambda: F.rms_norm(_rows(2001, 301), (301,), _rows(301)),
    "batch norm": lambda: _gradients(
        lambda x, w, b: F.batch_norm(x, torch.zeros(12), torch.ones(12), w, b, training=True),
        _rows(9, 12, 51, 51),
        _rows(12),
        _rows(12),
    ),
    "batch norm in use": lambda: F.batch_norm(_rows(9, 12, 51, 51), _rows(12), _rows(12).abs(), _rows(12), _rows(12)),
    "group norm": lambda: F.group_norm(_rows(9, 12, 51, 51), 4, _rows(12), _rows(12)),
    "max pool": lambda: _gradients(lambda x: F.max_pool2d(x, 3, 2, 1), _rows(9, 12, 51, 51)),
    "avg pool": lambda: _gradients(lambda x: F.avg_pool2d(x, 3, 2, 1), _rows(9, 12, 51, 51)),
    "depthwise": lambda: _gradients(_image_rows, _rows(9, 12, 51, 51), _rows(12, 1, 3, 3)),
    "few queries": lambda: _gradients(F.scaled_dot_product_attention, _rows(4, 12, 3, 32), _rows(4, 12, 301, 32), _rows(4, 12, 301, 32)),
    "few rows": lambda: F.linear(_rows(4, 512), _rows(1001, 512), _rows(1001)),
    "half matrix by a vector": lambda: F.linear(_rows(1, 512).bfloat16(), _rows(1001, 512).bfloat16()),
    "few rows by a half matrix": lambda: _rows(3, 515).half() @ _rows(515, 1009).half(),
    "few rows by a matrix": lambda: [_rows(3, 765) @ _rows(765, 1009), _rows(5, 765) @ _rows(1009, 765).T],
    "row by bytes": lambda: torch._weight_int8pack_mm(_rows(2, 512), (_rows(1001, 512) * 100).to(torch.int8), _rows(1001)),
    "sort": lambda: [*_rows(2001, 301).sort(1), *_rows(2001, 301).sort(1, descending=True)],
    "cumulative": lambda: [_rows(2001, 301).cumsum(1), *_rows(2001, 301).cummax(1)],
    "cumulative by columns": lambda: [*_rows(301, 2001).cummax(0), *(_rows(3, 301, 1001).cumsum(1, dtype=dtype) for dtype in FLOATS)],
    "convolution": lambda: [y for batch in (1, 3, 8) for y in _gradients(_image_windows, _rows(batch, 16, 31, 33), _rows(32, 16, 3, 3))],
    "resize": lambda: F.interpolate(_rows(9, 12, 31, 31), scale_factor=2, mode="bilinear"),
    "AdamW": lambda: _steps(torch.optim.AdamW),
    "SGD": lambda: _steps(torch.optim.SGD, lr=0.1, momentum=0.9),
}  # fmt: skip


def _bits(result: Any) -> list[tuple]:
    results = result if isinstance(result, list) else [result]
    return [
        (one.stride(), str(one.dtype), one.detach().contiguous().view(torch.uint8).numpy().tobytes())
        if one.dim()
        else (str(one.dtype), one.detach().reshape(1).view(torch.uint8).numpy().tobytes())
        for one in results
    ]


@pytest.mark.parametrize("case", list(CASES))
def test_the_same_bits_on_any_number_of_threads(case: str) -> None:
    torch.set_num_threads(1)
    wanted = _bits(CASES[case]())
    for count in (2, 3, 8):
        torch.set_num_threads(count)
        assert _bits(CASES[case]()) == wanted, f"{count} threads"


def test_products_and_convolutions_are_the_same_within_rounding() -> None:
    def results() -> list[Any]:
        x, weight = _rows(9, 12, 51, 51), _rows(24, 12, 3, 3)
        attention = [_rows(2, 6, 128, 32) for _ in range(3)]
        return [
            *_gradients(lambda x, w: F.conv2d(x, w, padding=1), x, weight),
            *_gradients(lambda x, w: F.conv_transpose2d(x, w, stride=2), _rows(9, 12, 25, 25), _rows(12, 8, 3, 3)),
            *_gradients(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), *attention),
            _rows(301, 700) @ _rows(700, 201),
        ]

    torch.set_num_threads(1)
    wanted = results()
    for count in (2, 5):
        torch.set_num_threads(count)
        for got, want in zip(results(), wanted, strict=True):
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-3)


def test_loops_of_several_threads_of_the_program() -> None:
    torch.set_num_threads(3)
    x = _rows(500, 1000)
    wanted = _bits(F.softmax(x, 1) + x)
    failed: list[int] = []

    def work(number: int) -> None:
        for _ in range(20):
            if _bits(F.softmax(x, 1) + x) != wanted:
                failed.append(number)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


@needs_fork
def test_children_of_forks_have_threads_of_their_own() -> None:
    """Forked while other threads of the program run spread loops, each child computes and ends."""
    program = """
import os, threading
import numpy as np
import mindtorch_v2 as torch
torch.set_num_threads(3)
x = torch.tensor(np.random.default_rng(0).standard_normal(400_000), dtype=torch.float32)
wanted = torch.tanh(x).sum().item()
stop = threading.Event()
def work():
    while not stop.is_set():
        assert torch.tanh(x).sum().item() == wanted
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        torch.set_num_threads(3)
        os._exit(0 if all(torch.tanh(x).sum().item() == wanted for _ in range(3)) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
stop.set()
for thread in threads: thread.join()
print("done")
"""
    ran = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.stdout == "done\n", ran.stderr


def _told(**environment: str) -> str:
    kept = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    program = "import mindtorch_v2 as torch; print(torch.get_num_threads())"
    return subprocess.run(
        [sys.executable, "-c", program], env=kept | environment, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_how_many_there_are() -> None:
    assert _told(OMP_NUM_THREADS="3") == "3"
    if hasattr(os, "sched_getaffinity"):
        assert 1 <= int(_told()) <= len(os.sched_getaffinity(0))
    torch.set_num_threads(5)
    assert torch.get_num_threads() == 5
    for wrong in (0, -1):
        with pytest.raises(RuntimeError, match="set_num_threads expects a positive integer"):
            torch.set_num_threads(wrong)


@pytest.mark.skipif(native.extension is None, reason="needs the extension")
def test_what_the_extension_takes() -> None:
    try:
        assert native.extension.use_threads(3, False) in (1, 3)  # one where there are no POSIX threads
        assert native.extension.use_threads(-4, False) == 1
        with pytest.raises(TypeError):
            native.extension.use_threads("a", False)
    finally:
        native.extension.use_threads(torch.get_num_threads(), False)
