"""The C extension gives what the Python code behind it gives: values, dtypes, strides, histories and errors.

What is compared comes from the generated modules: every function, method and operator that the extension stands before, and every
kernel that it has. Without the extension there is nothing to compare; MINDTORCH_V2_REQUIRE_NATIVE=1 makes that a failure.
"""

from __future__ import annotations

import copy
import gc
import importlib
import inspect
import json
import math
import os
import pickle
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from _native_outcomes import assert_same, needs_extension, outcome

import mindtorch_v2 as torch
from mindtorch_v2._autograd.node import Node
from mindtorch_v2._dispatch import native
from mindtorch_v2._generated import functions, methods
from mindtorch_v2._tensor import Tensor

EXAMPLES = 16
TIMES = 3
"""How often a call is made: the first time by the rule, then by the plan that was made of it."""


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
_NUMBERS = [2, -1, 2.5, math.inf, True, "a", None, 2**70]
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


def _calls(fast: Any, tensors: list[Tensor], method: bool) -> Iterator[tuple[tuple, dict]]:
    """Calls of a function in its positional and keyword forms, drawn at random from a fixed seed."""
    draw = random.Random(fast.__name__)
    signature = [text for text in fast.__doc__.split("; ") if ") ->" in text]
    if not signature:
        return  # in-place forms, which are compared as methods
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
        _compare(fast, args, keywords)


def _compare(fast: Any, args: tuple, keywords: dict) -> None:
    if "empty" in fast.__name__:
        return  # whose elements are whatever the memory held
    found = [_seeded(fast, args, keywords) for _ in range(TIMES)]
    wanted = _seeded(fast.__wrapped__, args, keywords)
    for one in found[:: TIMES - 1]:
        assert_same(one, wanted, _shown(fast, args, keywords))


def _seeded(call: Any, args: tuple, keywords: dict) -> Any:
    torch.manual_seed(7)
    return outcome(call, args, keywords)


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
        _compare(fast, args, keywords)


def _takes_operand(fast: Any) -> bool:
    """Whether what stands behind the first parameter is another operand."""
    return "Tensor self)" in fast.__doc__ or "(Tensor self, Tensor " in fast.__doc__ or fast.__name__.startswith("__")


@needs_extension
@pytest.mark.parametrize("fast", [p for p in _fast_methods() if _is_inplace(p.values[0])])
def test_inplace_method_gives_what_python_gives(fast: Any) -> None:
    draw = random.Random(fast.__name__)
    count = len(_tensors())
    operands = _operands(fast)
    for _ in range(150 if operands < 3 else 0):
        places = (
            draw.randrange(count),
            draw.randrange(count),
            draw.random() < 0.3,
            draw.choice(_NUMBERS),
            draw.random() < 0.4,
        )
        outcomes = []
        for call in (*[fast] * TIMES, fast.__wrapped__):
            tensors = _tensors()
            target = tensors[places[0]]
            base = target if target._base is None else target._base
            before = target._version
            other = places[3] if places[2] else tensors[places[1]]
            torch.manual_seed(7)
            with torch.set_grad_enabled(places[4]):
                result = outcome(call, (target, other)[:operands], {})
            assert not isinstance(result, Tensor) or result is target
            outcomes.append((result, target, base, target._version - before))
        *_, (found, changed, base, counted), (wanted, other_changed, other_base, other_counted) = outcomes
        what = _shown(fast, (changed, other), {})
        assert_same(found, wanted, what)
        assert_same(changed, other_changed, what)
        assert_same(base, other_base, what)
        assert counted == other_counted, what


def _operands(fast: Any) -> int:
    """How many tensors an in-place function takes; 3 for all that takes something else too."""
    name = fast.__name__
    if name.startswith("__"):
        return 2
    table = vars(Tensor).get(name[:-1])
    doc = getattr(table, "resolve", lambda: table)().__doc__ or "" if table is not None else ""
    if ") ->" not in doc:
        return 3
    text = doc.split("; ")[0]
    parts = _split(text[text.index("(") + 1 : text.rindex(") ->")])
    required = [part for part in parts if part != "*" and "=" not in part]
    tensors = sum(part.startswith("Tensor") for part in required)
    return tensors if tensors == len(required) and tensors < 3 else 3


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
        assert (x + 1).is_inference() and not x[0].is_inference() and not x.view(4).is_inference()
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


def test_linear_of_rows_whose_dimension_of_size_one_has_any_stride() -> None:
    x = torch.arange(8.0).view(4, 2).unsqueeze(0).transpose(0, 1)
    assert x.stride() == (2, 8, 1)
    weight = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    expected = [[[a + 2 * b, 3 * a + 4 * b, 5 * a + 6 * b]] for a, b in ((0, 1), (2, 3), (4, 5), (6, 7))]
    assert torch.nn.functional.linear(x, weight).tolist() == expected
    assert torch.matmul(x, weight.t()).tolist() == expected
