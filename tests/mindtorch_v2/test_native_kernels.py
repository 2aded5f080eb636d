"""The kernels of the C extension give what the numpy kernels behind them give."""

from __future__ import annotations

import importlib
import inspect
import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _native_outcomes import assert_close, needs_extension, outcome

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import native
from mindtorch_v2._tensor import Tensor

_OPS = Path(inspect.getfile(native)).parent.parent / "_backends/cpu/ops"
# test_native_resize.py, test_native_creation.py, test_native_random.py, test_native_moves.py, test_native_indexing.py, test_native_products.py, test_native_windows.py, test_sampling.py
_ELSEWHERE = (
    "creation",
    "random",
    "conversion",
    "shape",
    "view",
    "indexing",
    "matmul",
    "pool",
    "sorting",
    "conv",
    "upsample",
    "grid",
)


def _kernels() -> Iterator[Any]:
    if native.extension is None:
        return
    for path in sorted(_OPS.glob("*.py")):
        if path.stem in _ELSEWHERE:
            continue
        module = importlib.import_module(f"mindtorch_v2._backends.cpu.ops.{path.stem}")
        for name, value in sorted(vars(module).items()):
            if isinstance(value, native.extension.Kernel) and value.__module__ == module.__name__:
                yield pytest.param(value, id=f"{path.stem}.{name}")


def _arrays() -> Iterator[np.ndarray]:
    generator = np.random.default_rng(5)
    for dtype in (np.float32, np.float64):
        for shape in ((4, 4), (7,), (3, 5, 33), (2, 768), (300, 130), (1, 1), (0, 4), ()):
            yield (generator.normal(size=shape) * 3).astype(dtype)
        odd = (generator.normal(size=(4, 16)) * 30).astype(dtype)
        odd[0, 3], odd[1, 5], odd[2, :], odd[3, 0] = np.inf, np.nan, -np.inf, -0.0
        yield odd
        yield odd.T
        yield odd[:, ::2]
    yield np.arange(12, dtype=np.float16).reshape(3, 4)


def _kernel_arguments(kernel: Any) -> Iterator[tuple]:
    """Arguments by the names of the parameters of the Python kernel."""
    generator = np.random.default_rng(7)
    names = list(inspect.signature(kernel).parameters)
    for x in _arrays():
        last = x.shape[-1] if x.ndim else 1
        rows = x.shape[:-1]
        like = generator.normal(size=x.shape).astype(x.dtype)
        weight = generator.normal(size=last).astype(x.dtype)
        statistics = (*rows, 1) if x.ndim else ()
        matrix = generator.normal(size=(last, 3)).astype(x.dtype)
        choices: dict[str, list] = {
            "self": [x],
            "input": [x],
            "grad_output": [like],
            "grad_out": [like],
            "output": [1 / (1 + np.exp(-x))],
            "dim": [-1, 0] if x.ndim else [0],
            "keepdim": [False, True],
            "correction": [None, 0],
            "ord": [2, 1, 0, math.inf],
            "other": [matrix, matrix.T.copy().T],
            "mat2": [matrix],
            "dtype": [None],
            "input_dtype": [None],
            "approximate": ["none", "tanh"],
            "threshold": [0, 0.5],
            "normalized_shape": [(last,)] if x.ndim else [()],
            "weight": [weight, None] if x.ndim else [None],
            "bias": [weight * 2, None] if x.ndim else [None],
            "eps": [1e-5],
            "mean": [np.zeros(statistics, x.dtype) + x.dtype.type(0.3)],
            "rstd": [np.ones(statistics, x.dtype) * x.dtype.type(0.7)],
            "output_mask": [(True, True, True), [True, False, True], (False, True, False)],
            "out": [None],
        }
        if not set(names) <= set(choices):
            return
        yield from itertools.product(*(choices[name] for name in names))


# Kernels that no arguments are made for here: compared below, or in a file of their own.
_BY_HAND = {
    "cholesky_ex",
    "inv_ex",
    "add_rows",
    "sum_bags",
    "where",
    "adam_step",
    "sgd_step",
    "nll_loss_forward",
    "nll_loss_backward",
    "some_fast",
    "truth_fast",
    "flash_attention",
    "flash_attention_backward",
    "forward",
    "backward",
    "div_mode",
    "mse_loss",
    "smooth_l1_loss",
    "huber_loss",
    "soft_margin_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "native_batch_norm",
    "native_batch_norm_backward",
    "native_group_norm",
    "native_group_norm_backward",
    "lu_in_place",
    "substituted",
    "solved",
    "det",
    "slogdet",
    "eigh",
    "clamp_max",
    "clamp_min",
    "layer_norm",
    "nan_to_num",
    "svd",
    "fft_c2c",
    "fft_c2r",
    "fft_r2c",
    "left_shift",
    "right_shift",
    "complex_",
    "polygamma",
}
_SUMS = {
    "native_layer_norm_backward",
    "softmax_backward_data",
    "log_softmax_backward_data",
    "log_softmax",
    "native_layer_norm",
    "logsumexp",
    "mean",
    "mean_dim",
    "prod",
    "prod_dim",
    "std",
    "std_mean",
    "sum",
    "sum_dim",
    "sum_dim_fast",
    "var",
    "var_mean",
    "vector_norm",
    "mean_dim_fast",
}


@needs_extension
def test_kernels_that_are_named_are_there() -> None:
    assert {*_BY_HAND, *_SUMS} <= {param.values[0].__name__ for param in _kernels()}


@needs_extension
@pytest.mark.parametrize("kernel", list(_kernels()))
def test_kernel_gives_what_numpy_gives(kernel: Any, vectors: None) -> None:
    compared = 0
    for args in _kernel_arguments(kernel):
        shown = [f"{a.dtype}{a.shape}" if isinstance(a, np.ndarray) else a for a in args]
        what = f"{kernel.__name__}({shown})"
        with np.errstate(all="ignore"):
            found, wanted = outcome(kernel, args, {}), outcome(kernel.__wrapped__, args, {})
            if isinstance(wanted, tuple) and wanted and isinstance(wanted[0], type):
                assert found == wanted, what
                continue
            pairs = zip(found, wanted) if isinstance(wanted, tuple) else [(found, wanted)]
            for one, other in pairs:
                # A short cut in C may take what the one in Python leaves to the general path.
                assert (one is None) == (other is None) or "fast" in kernel.__name__, what
                if one is None or other is None:
                    continue
                one, other = np.asarray(one), np.asarray(other)
                if other.dtype == np.float16 and one.dtype == np.float32:
                    one = one.astype(np.float16)  # who called rounds the results of what reads half types
                assert one.dtype == other.dtype and one.shape == other.shape, what
                assert_close(one, other, what, 400 if kernel.__name__ in _SUMS else 40)
                compared += 1
    assert (compared == 0) == (kernel.__name__ in _BY_HAND)


@needs_extension
@pytest.mark.parametrize("kernel", list(_kernels()))
def test_kernel_writes_where_it_is_told(kernel: Any) -> None:
    names = list(inspect.signature(kernel).parameters)
    rest = ["none"] if "approximate" in names else []
    if names[-1] != "out" or len(names) != 2 + len(rest):  # of one operand
        return
    x = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)
    for out in (np.empty_like(x), np.empty((4, 3), np.float32).T, x.copy()):
        source = out if out.base is None and np.array_equal(out, x) else x
        wanted = kernel.__wrapped__(x, *rest)
        assert kernel(source, *rest, out=out) is out
        assert_close(out, wanted, kernel.__name__, 40)


@needs_extension
def test_functions_of_one_variable_are_accurate(vectors: None) -> None:
    special = pytest.importorskip("scipy.special")
    from mindtorch_v2._backends.cpu.ops import elements

    x = np.concatenate([np.linspace(-12, 12, 40001), np.logspace(-30, 1, 2000)]).astype(np.float32)
    exact = x.astype(np.float64)
    eps = np.finfo(np.float32).eps
    for found, wanted, relative in (
        (elements.error_function(x), special.erf(exact), 2 * eps),
        (elements.sigmoid(x), special.expit(exact), 3 * eps),
        (elements.silu(x), exact * special.expit(exact), 3 * eps),
    ):
        assert (np.abs(found - wanted) <= relative * np.abs(wanted)).all()
    gelu = exact * special.ndtr(exact)
    assert (np.abs(elements.gelu(x) - gelu) <= 2 * eps * np.maximum(np.abs(exact), 1e-3)).all()
    grad = special.ndtr(exact) + exact * np.exp(-exact * exact / 2) / math.sqrt(2 * math.pi)
    assert (np.abs(elements.gelu_slope(x) - grad) <= 4 * eps).all()
    rows = np.linspace(-103, 88.5, 50001, dtype=np.float64)[:, None] * [0, 1]
    for dtype, limit in ((np.float32, 4), (np.float64, 4)):
        given = rows.astype(dtype)
        from mindtorch_v2._backends.cpu.ops import softmax

        found = softmax.softmax(given, -1)
        wanted = special.softmax(given.astype(np.longdouble), axis=-1)
        normal = wanted > np.finfo(dtype).tiny
        assert (np.abs(found - wanted)[normal] <= limit * np.finfo(dtype).eps * wanted[normal]).all()


@needs_extension
def test_embedding_and_added_rows() -> None:
    from mindtorch_v2._backends.cpu.ops import nn

    weight = np.arange(12, dtype=np.float32).reshape(4, 3)
    for indices in (np.array([[0, 3], [1, 1]]), np.array([2], np.int32)):
        found = torch.nn.functional.embedding(torch.from_numpy(indices), torch.from_numpy(weight))
        assert np.array_equal(found.numpy(), weight[indices])
    for indices in ([4], [-1]):
        with pytest.raises(IndexError, match="index out of range in self"):
            torch.nn.functional.embedding(torch.tensor(indices), torch.from_numpy(weight))
    rows = np.array([0, 2, 2, 0, 3], np.intp)
    for dtype in (np.float32, np.float64, np.int64):
        values = np.arange(15).reshape(5, 3).astype(dtype)
        found, wanted = np.ones((4, 3), dtype), np.ones((4, 3), dtype)
        assert nn.add_rows(found, rows, values) is None
        nn.add_rows.__wrapped__(wanted, rows, values) if native.extension else None
        assert np.array_equal(found, wanted)


@needs_extension
@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_losses_of_classes(reduction: int, weighted: bool, dtype: Any) -> None:
    from mindtorch_v2._backends.cpu.ops import loss

    generator = np.random.default_rng(3)
    scores = generator.normal(size=(6, 5)).astype(dtype)
    weight = generator.random(5).astype(dtype) if weighted else None
    for target in (np.array([0, 4, -100, 2, 2, 1]), np.array([-100] * 6), np.array([0, 4, 5, 0, 0, 0])):
        args = (scores, target, weight, reduction, -100)
        found, wanted = outcome(loss.nll_loss_forward, args, {}), outcome(loss.nll_loss_forward.__wrapped__, args, {})
        if not isinstance(wanted[0], np.ndarray):
            assert found == wanted
            continue
        for one, other in zip(found, wanted):
            assert one.dtype == other.dtype and one.shape == other.shape
            assert_close(one, other, "nll_loss_forward")
        grad = generator.normal(size=() if reduction else 6).astype(dtype)
        args = (np.asarray(grad), *args, np.asarray(wanted[1], dtype))
        assert_close(loss.nll_loss_backward(*args), loss.nll_loss_backward.__wrapped__(*args), "nll_loss_backward")


@needs_extension
@pytest.mark.parametrize(
    "options", [{}, {"weight_decay": 0.1}, {"weight_decay": 0.1, "maximize": True}, {"amsgrad": True}]
)
@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD", "momentum", "nesterov"])
def test_optimizers_step_as_in_python(name: str, options: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    from mindtorch_v2.optim import adam, sgd

    if "amsgrad" in options and not name.startswith("Adam"):
        return
    more = {
        "SGD": {},
        "momentum": {"momentum": 0.9, "dampening": 0.2},
        "nesterov": {"momentum": 0.9, "nesterov": True},
    }.get(name, {})
    cls = torch.optim.SGD if name not in ("Adam", "AdamW") else getattr(torch.optim, name)

    def run(dtype: Any) -> list:
        torch.manual_seed(1)
        params = [torch.nn.Parameter(torch.randn(shape, dtype=dtype)) for shape in ((3, 4), (5,), ())]
        params[0].grad = None
        optimizer = cls(params, lr=0.1, **options, **more)
        versions = []
        for step in range(4):
            for number, param in enumerate(params):
                param.grad = None if number == 1 and step == 0 else torch.randn(param.shape, dtype=dtype)
            optimizer.step()
            versions.append([p._version for p in params])
        state = [
            v for entries in optimizer.state_dict()["state"].values() for v in entries.values() if isinstance(v, Tensor)
        ]
        return [versions, *(t.detach().numpy() for t in (*params, *state))]

    for dtype in (torch.float32, torch.float64):
        found = run(dtype)
        with monkeypatch.context() as patch:
            patch.setattr(adam, "adam_step", adam.adam_step.__wrapped__)
            patch.setattr(sgd, "sgd_step", sgd.sgd_step.__wrapped__)
            wanted = run(dtype)
        assert all(a > b for later, former in zip(found[0][1:], found[0]) for a, b in zip(later, former))
        for one, other in zip(found[1:], wanted[1:]):
            assert_close(np.asarray(one), np.asarray(other), name)
