"""Runs every operator that is bound to CANN against the CPU, times the common ones, and prints a report of one page.

    python -m mindtorch_v2.npu.check [--all] [--seconds 90]

It needs an NPU, CANN and this package, nothing else. Arguments are drawn by the types of an operator's parameters, until the CPU takes them; an operator whose arguments cannot be
found this way is not tried, and counted. The exit status is 0 where nothing differs, failed or is missing without a reason.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import math
import platform
import random
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import mindtorch_v2 as torch

from .. import version
from .._backends.npu import chips
from .._backends.npu.function import Function
from .._backends.npu.runtime import NpuError, get_runtime
from .._dispatch.dispatcher import call_converted
from .._dispatch.operator import Operator
from .._pending import settled
from .._tensor import Tensor

__all__ = ["main"]

KINDS = ("float32", "int64", "bool")
DTYPES = ("float32", "float16", "bfloat16", "int64", "int32", "bool", "complex64")
LIMITS = {"float32": 2e-4, "float16": 5e-3, "bfloat16": 4e-2, "complex64": 1e-4, "float64": 1e-4, "complex128": 1e-4}
SHAPES = ((3, 4), (4, 4), (2, 3, 4), (2, 3, 8, 8), (4,), (2, 3, 8), (2, 3, 4, 8, 8), ())
REFUSED = "161002"
_STATISTICS = ("save_mean", "save_invstd", "mean", "rstd")  # of which derivatives are not defined without them
_ATTEMPTS, _FEWER = 40, 8
_WORDS = {
    "approximate": "none",
    "indexing": "ij",
    "mode": "constant",
    "rotary_mode": "half",
    "input_layout": "BNSD",
    "reduce": "add",
    "reduction": "sum",
    "equation": "ij->ji",
}


@dataclass
class Report:
    """What was found; texts by kind."""

    same: int = 0
    refused: dict[str, set[str]] = field(default_factory=dict)
    undocumented: dict[str, str] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    untried: list[str] = field(default_factory=list)
    operators: int = 0


# Arguments


def _value(draw: random.Random, op: Operator, index: int, shape: tuple, dtype: str) -> Any:
    """An argument by the type and the name of its parameter."""
    param = op.params[index]
    base, name = param.type, param.name
    if param.optional and name not in _STATISTICS and draw.random() < 0.6:
        return None
    if base == "Tensor":
        return (
            [_tensor(draw, name, shape, dtype) for _ in range(2)]
            if param.is_list
            else _tensor(draw, name, shape, dtype)
        )
    if param.is_list:
        return _list(draw, name, base, param.size or draw.choice((1, 2, len(shape) or 1)), shape)
    plain: dict[str, Any] = {
        "int": lambda: draw.choice((0, 1, -1, 2)), "SymInt": lambda: draw.choice((1, 2, 0, 3)), "bool": lambda: draw.random() < 0.5,
        "float": lambda: draw.choice((0.5, 1e-5, 1.0)), "Scalar": lambda: draw.choice((1, 2, 0.5)), "str": lambda: _WORDS.get(name, "none"),
        "ScalarType": lambda: getattr(torch, dtype),
    }  # fmt: skip
    return plain[base]() if base in plain else None


def _list(draw: random.Random, name: str, base: str, count: int, shape: tuple) -> list[Any]:
    if base == "bool":
        return [True] * count
    if name == "normalized_shape":
        return list(shape[-1:])
    if name in ("size", "shape", "sizes", "self_size", "input_size", "output_size", "input_sizes"):
        return list(shape)
    if name in ("dim", "dims", "axis"):
        return list(range(count)) if draw.random() < 0.5 else [-1]
    return [draw.choice((1, 2)) if base != "float" else 1.0 for _ in range(count)]


def _tensor(draw: random.Random, name: str, shape: tuple, dtype: str) -> Tensor:
    if name in ("index", "indices", "target", "repeats", "offsets") or name.endswith(("_idx", "_indices")):
        bound = max(min((*shape, 3)), 1) if shape else 1
        return torch.tensor(np.array([draw.randrange(bound) for _ in range(math.prod(shape))], np.int64).reshape(shape))
    if name in ("mask", "condition"):
        dtype = "bool"
    if (
        name
        in (
            "weight",
            "bias",
            "running_mean",
            "running_var",
            "gamma",
            "mean",
            "rstd",
            "invstd",
            "save_mean",
            "save_invstd",
        )
        and len(shape) > 1
    ):
        shape = draw.choice((shape[-1:], shape[1:2], shape, (shape[0], shape[1], *((3,) * (len(shape) - 2)))))
    count = math.prod(shape)
    if dtype == "bool":
        made = np.array([draw.random() < 0.5 for _ in range(count)])
    else:
        whole = draw.sample(range(1, count + 9), count)  # no two alike: which of equal ones comes first is not said
        made = np.array(whole if dtype.startswith("int") else [draw.uniform(0.1, 2.0) for _ in range(count)])
    if name == "sorted_sequence":
        made = np.sort(made.reshape(shape))
    return torch.tensor(made.reshape(shape)).to(getattr(torch, dtype))


_worked: dict[
    str, int
] = {}  # which draw was taken by the CPU, by operator: most likely the one of another dtype is taken too


def _drawn(op: Operator, dtype: str) -> tuple[list[Any], Any] | None:
    """(arguments, what the CPU gives) of the first draw that the CPU takes; None where none was found."""
    before = _worked.get(op.full_name)
    attempts = range(_ATTEMPTS) if before is None else [before, *range(_FEWER)]
    for attempt in attempts:
        draw = random.Random(f"{op.full_name} {dtype} {attempt}")
        shape = SHAPES[attempt % len(SHAPES)]
        try:
            args = []
            for index, param in enumerate(op.params):
                keep = param.name == "pin_memory" or not param.required and draw.random() < 0.7
                args.append(param.default if keep else _value(draw, op, index, shape, dtype))
            if not any(isinstance(v, Tensor) for v in itertools.chain(args, *(a for a in args if isinstance(a, list)))):
                return None
            with np.errstate(all="ignore"):
                found = call_converted(op, tuple(_copied(args, "cpu")))
        except (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
            continue
        if _leaves(found):
            _worked[op.full_name] = attempt
            return args, found
    return None


def _copied(value: Any, device: str) -> Any:
    if isinstance(value, Tensor):
        return value.to(device) if device != "cpu" else value.clone()
    if isinstance(value, list):
        return [_copied(item, device) for item in value]
    return value


def _leaves(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, (tuple, list)) else []


# Comparison


def _difference(expected: Any, found: Any) -> str | None:
    pairs = list(itertools.zip_longest(_leaves(expected), _leaves(found)))
    for a, b in pairs:
        if a is None or b is None:
            return "another number of results"
        if a.dtype is not b.dtype or a.shape != b.shape:
            return f"{str(a.dtype)[6:]}{list(a.shape)} became {str(b.dtype)[6:]}{list(b.shape)}"
        first, second = (np.asarray(settled(t.detach().cpu())) for t in (a, b))
        limit = LIMITS.get(str(a.dtype)[6:])
        if limit is None:
            if not np.array_equal(first, second):
                return f"{int(np.sum(first != second))} of {first.size} elements differ"
            continue
        wide = np.complex128 if a.dtype.is_complex else np.float64
        first, second = first.astype(wide), second.astype(wide)
        fine = np.isclose(first, second, rtol=limit, atol=limit, equal_nan=True)
        if not fine.all():
            return f"{int(np.sum(~fine))} of {fine.size} elements differ, by at most {np.nanmax(np.abs(first - second)):.2g}"
    return None


def _of_vectors(parts: Any) -> list[Tensor]:
    """[singular values, the matrix that they and the vectors give]: the vectors themselves are determined up to a phase."""
    left, values, right = (part.cpu() for part in parts)
    count = values.shape[-1]
    return [values, (left[..., :count] * values.unsqueeze(-2)) @ right[..., :count, :]]


def _try(op: Operator, dtype: str, report: Report) -> bool:
    """One operator with one dtype; whether arguments were found."""
    drawn = _drawn(op, dtype)
    if drawn is None:
        return False
    args, expected = drawn
    name = f"{op.full_name} {dtype}"
    try:
        found = call_converted(op, tuple(_copied(args, "npu")))
        torch.npu.synchronize()
    except (NpuError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
        first = str(error).split("\n", 1)[0]
        if isinstance(error, NotImplementedError):
            report.refused.setdefault(dtype, set()).add(op.full_name)
        elif "not supported on an NPU" in first:
            report.refused.setdefault(dtype, set()).add(op.full_name)
        elif REFUSED in first:
            report.refused.setdefault(dtype, set()).add(op.full_name)
            if "does not take" not in first and dtype in ("float32", "float16"):
                report.undocumented[name] = first
        else:
            report.failed[name] = f"{type(error).__name__}: {first}"
        return True
    if "random" in op.tags or "uninitialized" in op.tags or op.name.startswith(("empty", "new_empty")):
        report.same += 1
        return True
    if op.name == "_linalg_svd" and expected[0].numel():
        expected, found = _of_vectors(expected), _of_vectors(found)
    problem = _difference(expected, found)
    if problem is None:
        report.same += 1
    else:
        report.wrong[name] = problem
    return True


def _bound() -> Iterator[Operator]:
    families = importlib.import_module("mindtorch_v2._generated.npu").FAMILIES
    from .._generated.tables import operators

    for op in operators():
        if op.full_name in families and not op.is_inplace and "data_dependent" not in op.tags:
            yield op


# Times


def _timed(run: Callable[[], Any], repeats: int = 20) -> float:
    """Milliseconds of a call, the median of five, with the device's work."""
    run()
    found = []
    for _ in range(5):
        torch.npu.synchronize()
        started = time.perf_counter()
        for _ in range(repeats):
            run()
        torch.npu.synchronize()
        found.append((time.perf_counter() - started) / repeats * 1000)
    return statistics.median(found)


def _times(size: int) -> list[tuple[str, float, str]]:
    """(what, milliseconds, what that means)."""
    functional = torch.nn.functional
    small = torch.ones(4, 4, device="npu")
    a = torch.randn(size, size, device="npu", dtype=torch.float16)
    heads = torch.randn(1, 8, size // 4, 64, device="npu", dtype=torch.float16)
    host = torch.ones(1 << 20)
    rows: list[tuple[str, Callable[[], Any], float, str]] = [
        ("x + y [4, 4]", lambda: small + small, 0, ""),
        (f"matmul float16 [{size}]", lambda: a @ a, 2 * size**3, "TFLOP/s"),
        (f"softmax float16 [{size}]", lambda: torch.softmax(a, -1), 4 * size * size, "TB/s"),
        (f"layer_norm float16 [{size}]", lambda: functional.layer_norm(a, (size,)), 4 * size * size, "TB/s"),
        (
            f"attention float16 [1, 8, {size // 4}, 64]",
            lambda: functional.scaled_dot_product_attention(heads, heads, heads),
            4 * 8 * (size // 4) ** 2 * 64,
            "TFLOP/s",
        ),
        ("to the device, 4 MiB", lambda: host.npu(), 4 << 20, "TB/s"),
    ]
    found = []
    for name, run, work, unit in rows:
        spent = _timed(run)
        found.append((name, spent, f"{work / spent / 1e9:.3g} {unit}" if work else ""))
    return found


# The page


def _cut(lines: list[str], most: int) -> list[str]:
    return lines if len(lines) <= most else [*lines[:most], f"    ... and {len(lines) - most} more (--all)"]


def _missing() -> list[str]:
    functions = importlib.import_module("mindtorch_v2._generated.npu.functions")
    runtime = get_runtime()
    named = [f.name for f in vars(functions).values() if isinstance(f, Function)]
    return sorted(name for name in named if not runtime.has(f"{name}GetWorkspaceSize"))


def page(report: Report, missing: list[str], times: list[tuple[str, float, str]], seconds: float, whole: bool) -> str:
    """The report as text."""
    most = 10**9 if whole else 8
    libraries = get_runtime().libraries
    emulator = " (the emulator: nothing here is said of hardware)" if libraries.emulator else ""
    lines = [
        f"mindtorch_v2 {version.__version__} on {platform.machine()}, Python {platform.python_version()}",
        f"CANN {libraries.version or 'of unknown version'} in {libraries.home}, chip {chips.soc_name() or 'unknown'}, {torch.npu.device_count()} devices{emulator}",
        f"{report.operators} operators with {', '.join(DTYPES)} in {seconds:.0f} s: {report.same} calls as on the CPU, {len(report.wrong)} differ, {len(report.failed)} failed",
        f"refused dtypes: {', '.join(f'{dtype} by {len(names)}' for dtype, names in sorted(report.refused.items())) or 'none'}",
        f"not tried, since no arguments were found: {len(report.untried)}",
    ]
    for title, found in (
        ("differ", report.wrong),
        ("failed", report.failed),
        ("refused, though the table says nothing of it", report.undocumented),
    ):
        if found:
            lines += [f"{title}:", *_cut([f"    {name}: {text[:150]}" for name, text in sorted(found.items())], most)]
    if missing:
        lines += [f"functions that this CANN lacks ({len(missing)}):", *_cut([f"    {name}" for name in missing], most)]
    if whole and report.untried:
        lines += ["not tried:", *(f"    {name}" for name in report.untried)]
    lines += ["times:", *(f"    {name}: {spent:.3f} ms{'  ' + rate if rate else ''}" for name, spent, rate in times)]
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Run the check; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m mindtorch_v2.npu.check",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--all", action="store_true", help="long lists whole")
    parser.add_argument("--seconds", type=float, default=90, help="how long operators are tried at most")
    parser.add_argument("--operator", action="append", help="only operators of this name")
    options = parser.parse_args(argv)
    if not torch.npu.is_available():
        from .._backends.npu import unavailable_reason

        print(unavailable_reason(), file=sys.stderr)
        return 2
    report = Report()
    started = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for op in _bound():
            if options.operator and op.name not in options.operator:
                continue
            if time.monotonic() - started > options.seconds:
                report.untried.append(f"{op.full_name} (no time)")
                continue
            report.operators += 1
            tried = [_try(op, dtype, report) for dtype in KINDS]
            if any(tried):
                for dtype in DTYPES:
                    if dtype not in KINDS:
                        _try(op, dtype, report)
            else:
                report.untried.append(op.full_name)
        spent = time.monotonic() - started
        times = _times(256 if get_runtime().libraries.emulator else 4096)
    missing = _missing()
    print(page(report, missing, times, spent, options.all))
    return 1 if report.wrong or report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
