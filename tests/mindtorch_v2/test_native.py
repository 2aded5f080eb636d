"""The C extension gives what the Python code behind it gives: values, dtypes, strides, histories and errors.

What is compared comes from the generated modules: every function, method and operator that the extension stands before, and every
kernel that it has. Without the extension there is nothing to compare; MINDTORCH_V2_REQUIRE_NATIVE=1 makes that a failure.
"""

from __future__ import annotations

import copy
import gc
import importlib
import inspect
import itertools
import json
import math
import os
import pickle
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._autograd.node import VIEW, Node
from mindtorch_v2._dispatch import native
from mindtorch_v2._generated import functions, methods
from mindtorch_v2._tensor import Tensor

needs_extension = pytest.mark.skipif(
    native.extension is None, reason="the C extension is not built, or MINDTORCH_V2_NATIVE=0 leaves it out"
)
EXAMPLES = 60


def test_extension_is_there_when_it_is_required() -> None:
    if os.environ.get("MINDTORCH_V2_REQUIRE_NATIVE") == "1":
        assert native.extension is not None


def test_environment_leaves_it_out() -> None:
    code = "from mindtorch_v2._dispatch import native; import mindtorch_v2 as t; print(native.extension, t.ones(2).add(1).tolist())"
    environment = {**os.environ, "MINDTORCH_V2_NATIVE": "0"}
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    assert done.stdout.split(maxsplit=1) == ["None", "[2.0, 2.0]\n"]


# What stands before what


def _is_fast(value: Any) -> bool:
    return native.extension is not None and isinstance(value, native.extension.Fast)


def _fast_functions() -> Iterator[Any]:
    for family in sorted(set(functions.FAMILIES.values())):
        module = importlib.import_module(f"{functions.__name__}._{family}")
        for name, value in sorted(vars(module).items()):
            if _is_fast(value):
                yield pytest.param(value, id=f"{family}.{name}")


def _fast_methods() -> Iterator[Any]:
    for family in sorted(methods.NAMES):
        table = importlib.import_module(f"{methods.__name__}.{family}").METHODS
        for name, value in sorted(table.items()):
            if _is_fast(value):
                yield pytest.param(value, id=f"{family}.{name}")
    getitem = inspect.getattr_static(Tensor, "__getitem__")
    if native.extension is not None:
        yield pytest.param(getattr(getitem, "resolve", lambda: getitem)(), id="__getitem__")


def _is_inplace(fast: Any) -> bool:
    name = fast.__name__
    return name.endswith("_") and not name.startswith("__") or name.startswith("__i") and name != "__invert__"


@needs_extension
def test_there_is_much_to_compare() -> None:
    assert len(list(_fast_functions())) > 60 and len(list(_fast_methods())) > 80


# Arguments


def _tensors() -> list[Tensor]:
    """Plain operands, and such as the extension leaves to Python."""
    base = torch.arange(1.0, 17.0).view(4, 4) / 7
    special = torch.tensor([[1.0, -0.0, math.inf, -math.inf], [math.nan, 2.5, -3.5, 1e30]])
    leaf = base.clone().requires_grad_()
    view_of_leaf = (leaf * 1)[:, 1:3]
    return [
        base,
        base,
        base * -1,
        base.double(),
        special,
        base.t(),
        base[1:3],
        base[:, :1],
        base[::2, 1:],
        base[0],
        torch.tensor(2.5),
        torch.tensor([1.5]),
        torch.zeros(0, 4),
        torch.ones(2, 1, 4),
        torch.ones(2, 4, 4),
        torch.ones(4, 1, 1),
        base.expand(3, 4, 4),
        leaf,
        leaf * 2,
        view_of_leaf,
        leaf.detach(),
        torch.nn.Parameter(base.clone()),
        torch.arange(4),
        torch.tensor([[0, 3], [1, 0]]),
        torch.ones(4, 4, dtype=torch.bool),
        base.to(torch.bfloat16),
        base.to(torch.complex64),
        torch.empty(4, 4, device="meta"),
    ]


_DIMS = [0, 1, -1, -2, 2, 5, -5, None, (0,), [1], (0, 1), True, "a"]
_SIZES = [
    (2, 8),
    [8, 2],
    (4, 4),
    (-1,),
    (2, -1, 2),
    (16,),
    16,
    (3, 5),
    (4, 1, 4),
    (-1, -1),
    (1, 4, 4),
    (3, 4, 4),
    (2, 4, -1),
    (),
    (4, -2),
    ("a",),
]
_VALUES: dict[str, list] = {
    "dim": _DIMS,
    "dim0": _DIMS,
    "dim1": _DIMS,
    "axis0": _DIMS,
    "axis1": _DIMS,
    "keepdim": [False, True, False, 1],
    "dtype": [None, None, torch.float64],
    "alpha": [1, 1, 1, 2, 0.5, 1.0, True],
    "size": _SIZES,
    "shape": _SIZES,
    "dims": [(1, 0), [0, 1], (-1, 0), (0, 0), (2, 0, 1), (0,), (5, 1)],
    "index": [0, 1, -1, 3, 7, -9, None],
    "start": [None, 0, 1, -3, 9],
    "end": [None, 3, -1, 0, 100],
    "step": [1, 1, 2, 3, 0, -1],
    "implicit": [False],
    "normalized_shape": [(4,), [4], (4, 4), (3,), ()],
    "eps": [1e-5, 1e-5, 0.1],
    "cudnn_enable": [True],
    "approximate": ["none", "tanh", "other"],
    "beta": [1, 1, 2, 0.5],
    "value": [0, 1.5, -1],
    "padding_idx": [-1, 0],
    "scale_grad_by_freq": [False],
    "sparse": [False],
    "out": [None],
}
_NUMBERS = [2, -1, 2.5, math.inf, True, "a", None, 10**400]
_INDICES = [
    0,
    -1,
    7,
    slice(1, 3),
    slice(None),
    slice(None, None, 2),
    slice(3, 1),
    slice(None, None, -1),
    (0, slice(1, 3)),
    (slice(1, 3), 0),
    (slice(None), 1),
    (..., 0),
    (0, ...),
    (None, 0),
    (slice(None), None, 0),
    (0, 0),
    (0, 0, 0),
    (..., ...),
    (),
    None,
    ...,
    True,
    (0, True),
    [0, 1],
    1.5,
    (slice("a"), 0),
]


def _candidates(name: str, annotation: str, tensors: list[Tensor]) -> list:
    if annotation == "Tensor":
        return tensors
    return _VALUES.get(name, [None])


def _calls(fast: Any, tensors: list[Tensor], method: bool) -> Iterator[tuple[tuple, dict]]:
    """Calls of a function in its positional and keyword forms, drawn at random from a fixed seed."""
    draw = random.Random(fast.__name__)
    signature = fast.__doc__.split("; ")
    for _ in range(EXAMPLES):
        text = draw.choice(signature)
        inner = text[text.index("(") + 1 : text.rindex(") ->")]
        positional: list = []
        keywords: dict = {}
        is_keyword = False
        for part in _split(inner):
            if part == "*":
                is_keyword = True
                continue
            declared, _, default = part.partition("=")
            kind, _, name = declared.rpartition(" ")
            is_tensor = kind.startswith("Tensor")
            if (default or "?" in kind) and draw.random() < 0.5 and (default or is_keyword):
                is_keyword = True
                continue
            options = list(tensors) if is_tensor else _VALUES.get(name, [None, 1])
            if is_tensor and positional:
                options += _NUMBERS
            if is_tensor and "?" in kind:
                options += [None] * len(options)
            value = draw.choice(options)
            if is_keyword or (positional and draw.random() < 0.2):
                is_keyword = True
                keywords[name] = value
            elif not is_tensor and isinstance(value, (tuple, list)) and method and draw.random() < 0.5:
                positional += value
            else:
                positional.append(value)
        yield tuple(positional), keywords


def _split(text: str) -> list[str]:
    parts, depth, current = [], 0, ""
    for character in text:
        depth += (character in "[(") - (character in "])")
        if character == "," and not depth:
            parts.append(current.strip())
            current = ""
        else:
            current += character
    return [*parts, current.strip()] if current.strip() else parts


# Outcomes


def _history(tensor: Tensor) -> Any:
    assert tensor.grad_fn is None or tensor.requires_grad  # a view looks at its base when it is asked
    node = tensor._node
    if node is None or node is VIEW:
        return repr(node)
    described: list = [node.name(), repr(node.outputs)]
    for edge in node.edges:
        described.append(None if edge is None else (edge[0].name(), edge[1]))
    described.append(_plain(node.saved))
    described.append([_plain(_alone(const)) for const in node.consts or ()])
    return described


def _alone(value: Any) -> Any:
    """A dimension, alone or as a list of one, is the same to the formulas."""
    return value[0] if isinstance(value, (tuple, list)) and len(value) == 1 and isinstance(value[0], int) else value


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [type(value).__name__ if isinstance(value, torch.Size) else "sequence", *map(_plain, value)]
    if isinstance(value, Tensor):
        return ("tensor", value.dtype, tuple(value.shape))
    if type(value).__name__ == "SavedOutput":
        return (type(value).__name__, value.dtype, value.version, value.number)
    return value.name() if isinstance(value, Node) else repr(value)


def _outcome(call: Callable, args: tuple, keywords: dict) -> Any:
    with np.errstate(all="ignore"):
        try:
            return call(*args, **keywords)
        except Exception as error:  # noqa: BLE001 (the error is what is compared)
            return type(error), str(error)


def _assert_same(found: Any, wanted: Any, what: str) -> None:
    assert type(found) is type(wanted), f"{what}: {found!r} where Python gives {wanted!r}"
    if isinstance(wanted, tuple) and wanted and isinstance(wanted[0], Tensor):
        for one, other in zip(found, wanted):
            _assert_same(one, other, what)
        return
    if not isinstance(found, Tensor):
        assert found == wanted, what
        return
    assert found.dtype is wanted.dtype and found.shape == wanted.shape and found.device == wanted.device, what
    if found.numel():
        assert found.stride() == wanted.stride() and found.storage_offset() == wanted.storage_offset(), what
    assert (found._base is None) == (wanted._base is None), what
    if found._base is not None:
        assert found._base.shape == wanted._base.shape and found._version == wanted._version, what
    assert _history(found) == _history(wanted), what
    assert (found._nr, found._epoch, found._inference) == (wanted._nr, wanted._epoch, wanted._inference), what
    if found.device.type == "cpu":
        _assert_close(found._data, wanted._data, what)


def _assert_close(found: np.ndarray, wanted: np.ndarray, what: str, ulps: float = 64) -> None:
    if found.dtype.kind == "V":  # bfloat16
        found, wanted = found.astype(np.float32), wanted.astype(np.float32)
    if found.dtype.kind != "f":
        assert np.array_equal(found, wanted, equal_nan=found.dtype.kind == "c"), what
        return
    with np.errstate(all="ignore"):
        finite = wanted[np.isfinite(wanted)]
        scale = max(1, np.abs(finite).max()) if finite.size else 1
        bound = ulps * np.finfo(found.dtype).eps * (np.abs(wanted) + scale / 8)
        same = (found == wanted) | (np.isnan(found) & np.isnan(wanted)) | (np.abs(found - wanted) <= bound)
    assert same.all(), f"{what}: {found[~same]} where Python gives {wanted[~same]}"


def _shown(fast: Any, args: tuple, keywords: dict) -> str:
    def show(value: Any) -> str:
        if isinstance(value, Tensor):
            return f"<{value.dtype} {tuple(value.shape)} {value.stride()}{' grad' if value.requires_grad else ''}>"
        return repr(value)

    parts = [*map(show, args), *(f"{name}={show(value)}" for name, value in keywords.items())]
    return f"{fast.__name__}({', '.join(parts)})"


@needs_extension
@pytest.mark.parametrize("fast", list(_fast_functions()))
def test_function_gives_what_python_gives(fast: Any) -> None:
    tensors = _tensors()
    for args, keywords in _calls(fast, tensors, method=False):
        what = _shown(fast, args, keywords)
        _assert_same(_outcome(fast, args, keywords), _outcome(fast.__wrapped__, args, keywords), what)


@needs_extension
@pytest.mark.parametrize("fast", [p for p in _fast_methods() if not _is_inplace(p.values[0])])
def test_method_gives_what_python_gives(fast: Any) -> None:
    tensors = _tensors()
    if fast.__name__ == "__getitem__":
        calls: Iterator = (((x, index), {}) for x in tensors for index in _INDICES)
    elif fast.__name__.startswith("__"):
        count = fast.__wrapped__.__code__.co_argcount
        others = [*tensors, *_NUMBERS]
        calls = (((x, other)[:count], {}) for x in tensors for other in others)
    else:
        calls = _calls(fast, tensors, method=True)
    for args, keywords in calls:
        what = _shown(fast, args, keywords)
        _assert_same(_outcome(fast, args, keywords), _outcome(fast.__wrapped__, args, keywords), what)


@needs_extension
@pytest.mark.parametrize("fast", [p for p in _fast_methods() if _is_inplace(p.values[0])])
def test_inplace_method_gives_what_python_gives(fast: Any) -> None:
    draw = random.Random(fast.__name__)
    count = len(_tensors())
    unary = fast.__wrapped__.__code__.co_argcount == 1
    for _ in range(150):
        places = (
            draw.randrange(count),
            draw.randrange(count),
            draw.random() < 0.3,
            draw.choice(_NUMBERS),
            draw.random() < 0.4,
        )
        outcomes = []
        for call in (fast, fast.__wrapped__):
            tensors = _tensors()
            target = tensors[places[0]]
            base = target if target._base is None else target._base
            before = target._version
            other = places[3] if places[2] else tensors[places[1]]
            with torch.set_grad_enabled(places[4]):
                result = _outcome(call, (target,) if unary else (target, other), {})
            assert not isinstance(result, Tensor) or result is target
            outcomes.append((result, target, base, target._version - before))
        (found, changed, base, counted), (wanted, other_changed, other_base, other_counted) = outcomes
        what = _shown(fast, (changed, other), {})
        _assert_same(found, wanted, what)
        _assert_same(changed, other_changed, what)
        _assert_same(base, other_base, what)
        assert counted == other_counted, what


@needs_extension
def test_operators_of_numbers_and_tensors() -> None:
    x = torch.tensor([0.5, 2.0, -4.0], requires_grad=True)
    for found, wanted, name in (
        (1 - x, [0.5, -1.0, 5.0], "RsubBackward1"),
        (2 / x, [4.0, 1.0, -0.5], "DivBackward0"),
        (1.5 + x, [2.0, 3.5, -2.5], "AddBackward0"),
        (2 * x, [1.0, 4.0, -8.0], "MulBackward0"),
    ):
        assert found.tolist() == wanted and found.grad_fn.name() == name
        (grad,) = torch.autograd.grad(found.sum(), x)
        assert grad.shape == (3,)
    assert torch.autograd.grad((2 / x).sum(), x)[0].tolist() == [-8.0, -0.5, -0.125]


# Gradients, states, threads


@needs_extension
def test_backward_through_every_kind_of_path() -> None:
    def run(lib: Any) -> list:
        x = torch.arange(1.0, 17.0).view(4, 4).div(10).requires_grad_()
        w = torch.arange(16.0).view(4, 4).div(7).requires_grad_()
        b = torch.ones(4, requires_grad=True)
        y = torch.nn.functional.linear(x * 2 - 1, w, b)
        y = torch.nn.functional.layer_norm(y, (4,), b, b) + torch.nn.functional.gelu(y)
        y = torch.softmax(y.reshape(2, 8).transpose(0, 1)[1:7], -1) @ torch.relu(w[:2])
        y = y[:, None].sum(1).mean() + torch.sigmoid(x[0, 1:3]).max() + (1 / (w + 1))[..., -1].sum()
        y.backward()
        return [x.grad.tolist(), w.grad.tolist(), b.grad.tolist()]

    here = run(torch)
    code = inspect.getsource(run).replace("    def run", "def run", 1)
    lines = [line[4:] if line.startswith("    ") else line for line in code.splitlines()]
    script = (
        "import json, mindtorch_v2 as torch\nfrom typing import Any\n"
        + "\n".join(lines)
        + "\nprint(json.dumps(run(torch)))"
    )
    environment = {**os.environ, "MINDTORCH_V2_NATIVE": "0"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    for found, wanted in zip(here, json.loads(done.stdout)):
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6)


def test_special_states_are_respected() -> None:
    x = torch.ones(2, 2)
    with torch.inference_mode():
        assert (x + 1).is_inference() and x[0].is_inference() and x.view(4).is_inference()
    with torch.no_grad():
        leaf = torch.ones(2, requires_grad=True)
        assert not (leaf * 2).requires_grad and (leaf * 2).grad_fn is None and not leaf[0].requires_grad
    with torch.device("meta"):
        assert (torch.ones(2) + 1).device.type == "meta"
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (x @ x).dtype is torch.bfloat16

    class Counted(torch.Tensor):
        calls = 0

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.calls += 1
            return super().__torch_function__(func, types, args, kwargs or {})

    y = x.as_subclass(Counted)
    before = Counted.calls
    assert type(x + y) is Counted and type(y[0]) is Counted and type(torch.relu(y)) is Counted
    assert Counted.calls >= before + 3


def test_saved_tensor_hooks_see_what_is_saved() -> None:
    packed = []
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t.shape) or t, lambda t: t):
        y = (x * x).exp()
    y.sum().backward()
    assert len(packed) == 3


def test_changes_of_saved_tensors_are_noticed() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    y = torch.softmax(x * 1, 0)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_views_of_views_follow_their_base() -> None:
    x = torch.zeros(4, 4)
    v = x.view(16).view(2, 8)[1]
    w = torch.ones(4, 4, requires_grad=True)
    x.mul_(w)
    assert v.requires_grad and v.grad_fn is not None
    v.sum().backward()
    assert w.grad is not None


def test_reference_cycles_and_versions_of_results() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    reference = __import__("weakref").ref(y)
    del y
    assert reference() is None  # a node that saves its result does not keep the tensor


def test_threads() -> None:
    failures: list = []

    def work() -> None:
        x = torch.ones(64, 64, requires_grad=True)
        for _ in range(200):
            y = ((x + 1) * 2).reshape(-1)[5:60].sum()
            if y.item() != 220:
                failures.append(y)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# Functions stay functions


@needs_extension
def test_accelerated_functions_look_like_functions() -> None:
    add = torch.add
    assert (
        add.__name__ == "add"
        and add.__module__ == functions.__name__ + "._pointwise"
        and add.__doc__.startswith("add.Tensor(")
    )
    assert list(inspect.signature(add).parameters)[:2] == ["input", "other"]
    assert pickle.loads(pickle.dumps(add)) is add and copy.deepcopy(add) is add
    assert callable(add) and repr(add).startswith("<function add")
    bound = torch.ones(2).add
    assert bound.__name__ == "add" and bound(1).tolist() == [2.0, 2.0]
    add.mark = 1
    assert add.mark == 1
    del add.mark
    assert Tensor.__add__(torch.ones(1), 1).item() == 2 and Tensor.__dict__["__add__"] is Tensor.__add__
    with pytest.raises(TypeError):
        native.extension.Fast(len, ((1, 2),))


@needs_extension
def test_the_extension_is_connected_once() -> None:
    with pytest.raises((RuntimeError, TypeError)):
        native.extension.connect()


# Kernels

_OPS = Path(inspect.getfile(native)).parent.parent / "_backends/cpu/ops"


def _kernels() -> Iterator[Any]:
    if native.extension is None:
        return
    for path in sorted(_OPS.glob("*.py")):
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
        choices: dict[str, list] = {
            "self": [x],
            "input": [x],
            "grad_output": [like],
            "grad_out": [like],
            "output": [1 / (1 + np.exp(-x))],
            "dim": [-1, 0] if x.ndim else [0],
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


_BY_HAND = {"add_rows", "adam_step", "sgd_step", "nll_loss_forward", "nll_loss_backward"}  # below
_SUMS = {
    "gelu_backward",
    "native_layer_norm_backward",
    "softmax_backward_data",
    "log_softmax_backward_data",
    "log_softmax",
    "native_layer_norm",
}


@needs_extension
@pytest.mark.parametrize("kernel", list(_kernels()))
def test_kernel_gives_what_numpy_gives(kernel: Any) -> None:
    compared = 0
    for args in _kernel_arguments(kernel):
        shown = [f"{a.dtype}{a.shape}" if isinstance(a, np.ndarray) else a for a in args]
        what = f"{kernel.__name__}({shown})"
        with np.errstate(all="ignore"):
            found, wanted = _outcome(kernel, args, {}), _outcome(kernel.__wrapped__, args, {})
            if isinstance(wanted, tuple) and wanted and isinstance(wanted[0], type):
                assert found == wanted, what
                continue
            pairs = zip(found, wanted) if isinstance(wanted, tuple) else [(found, wanted)]
            for one, other in pairs:
                assert (one is None) == (other is None), what
                if one is None:
                    continue
                one, other = np.asarray(one), np.asarray(other)
                assert one.dtype == other.dtype and one.shape == other.shape, what
                _assert_close(one, other, what, 400 if kernel.__name__ in _SUMS else 40)
                compared += 1
    assert compared or kernel.__name__ in _BY_HAND


@needs_extension
@pytest.mark.parametrize("kernel", list(_kernels()))
def test_kernel_writes_where_it_is_told(kernel: Any) -> None:
    names = list(inspect.signature(kernel).parameters)
    if names[-1] != "out":
        return
    x = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)
    rest = ["none"] if "approximate" in names else []
    for out in (np.empty_like(x), np.empty((4, 3), np.float32).T, x.copy()):
        source = out if out.base is None and np.array_equal(out, x) else x
        wanted = kernel.__wrapped__(x, *rest)
        assert kernel(source, *rest, out=out) is out
        _assert_close(out, wanted, kernel.__name__, 40)


@needs_extension
def test_functions_of_one_variable_are_accurate() -> None:
    special = pytest.importorskip("scipy.special")
    from mindtorch_v2._backends.cpu.ops import nn, pointwise, special as ours

    x = np.concatenate([np.linspace(-12, 12, 40001), np.logspace(-30, 1, 2000)]).astype(np.float32)
    exact = x.astype(np.float64)
    eps = np.finfo(np.float32).eps
    for found, wanted, relative in (
        (ours.erf(x), special.erf(exact), 2 * eps),
        (pointwise.sigmoid(x), special.expit(exact), 3 * eps),
        (nn.silu(x), exact * special.expit(exact), 3 * eps),
    ):
        assert (np.abs(found - wanted) <= relative * np.abs(wanted)).all()
    gelu = exact * special.ndtr(exact)
    assert (np.abs(nn.gelu(x, "none") - gelu) <= 2 * eps * np.maximum(np.abs(exact), 1e-3)).all()
    grad = special.ndtr(exact) + exact * np.exp(-exact * exact / 2) / math.sqrt(2 * math.pi)
    assert (np.abs(nn.gelu_backward(np.ones_like(x), x, "none") - grad) <= 4 * eps).all()
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
        found, wanted = _outcome(loss.nll_loss_forward, args, {}), _outcome(loss.nll_loss_forward.__wrapped__, args, {})
        if not isinstance(wanted[0], np.ndarray):
            assert found == wanted
            continue
        for one, other in zip(found, wanted):
            assert one.dtype == other.dtype and one.shape == other.shape
            _assert_close(one, other, "nll_loss_forward")
        grad = generator.normal(size=() if reduction else 6).astype(dtype)
        args = (np.asarray(grad), *args, np.asarray(wanted[1], dtype))
        _assert_close(loss.nll_loss_backward(*args), loss.nll_loss_backward.__wrapped__(*args), "nll_loss_backward")


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
            _assert_close(np.asarray(one), np.asarray(other), name)


# References


@needs_extension
def test_nothing_leaks() -> None:
    functional = torch.nn.functional
    x = torch.ones(4, 4)
    leaf = torch.ones(4, 4, requires_grad=True)

    def work() -> None:
        for a in (x, leaf):
            results = (
                a + x, 1 - a, a * 2.5, a.view(2, 8), a.reshape(16), a[1:3, None], a[0, 0], a.sum(), a.mean(1), a.max(), a @ x,
                functional.softmax(a, -1), functional.layer_norm(a, (4,)), functional.gelu(a), a.shape, a.dim(), a == x,
            )  # fmt: skip
            del results
            for wrong in (
                lambda a=a: a + torch.ones(3),
                lambda a=a: a[9],
                lambda a=a: a.view(3),
                lambda a=a: a @ torch.ones(3, 3),
            ):
                with pytest.raises((RuntimeError, IndexError)):
                    wrong()
        functional.softmax(functional.gelu(leaf * x)[1:], -1).sum().backward()
        leaf.grad = None

    def blocks() -> int:
        gc.collect()
        return sys.getallocatedblocks()

    for _ in range(20):
        work()
    before, none, size = blocks(), sys.getrefcount(Node), sys.getrefcount(Tensor)
    for _ in range(100):
        work()
    assert blocks() - before < 400
    assert abs(sys.getrefcount(Node) - none) < 5 and abs(sys.getrefcount(Tensor) - size) < 5
