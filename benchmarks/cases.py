"""The cases of `wide.py`: what is measured on both libraries, by family.

A case makes, of a library, a function of no argument that does the work once and returns what it gives. Arguments are numpy's numbers, so both libraries compute the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Make = Callable[[Any], Callable[[], Any]]


@dataclass(frozen=True)
class Case:
    """One case; `drawn`: its results are random, or free to differ, and are not compared."""

    family: str
    name: str
    make: Make
    drawn: bool = False


CASES: list[Case] = []


def add(family: str, name: str, make: Make, drawn: bool = False) -> None:
    """Append a case."""
    CASES.append(Case(family, name, make, drawn))


def normal(lib: Any, *shape: int, seed: int = 0, dtype: str = "float32", grad: bool = False) -> Any:
    """Normal numbers of a seed."""
    made = lib.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))
    if dtype != "float32":
        made = made.to(getattr(lib, dtype))
    return made.requires_grad_() if grad else made


def whole(lib: Any, below: int, *shape: int, seed: int = 0) -> Any:
    """Integers from 0 on."""
    return lib.from_numpy(np.random.default_rng(seed).integers(0, below, shape))


def of(*operands: Callable[[Any], Any]) -> Callable[[Callable[..., Any]], Make]:
    """A decorator-like helper: the function of a library and operands becomes a case's `make`."""

    def bound(work: Callable[..., Any]) -> Make:
        def make(lib: Any) -> Callable[[], Any]:
            values = [operand(lib) for operand in operands]
            return lambda: work(lib, *values)

        return make

    return bound


def rows(*shape: int, **options: Any) -> Callable[[Any], Any]:
    """Normal numbers as an operand."""
    return lambda lib: normal(lib, *shape, **options)


def positive(*shape: int, **options: Any) -> Callable[[Any], Any]:
    """Numbers above 0.5."""
    return lambda lib: normal(lib, *shape, **options).abs() + 0.5


# ---------------------------------------------------------------------------------------------------------- pointwise

for count in (1_000, 100_000, 1_000_000, 10_000_000):
    family = f"pointwise {count:.0e}".replace("e+0", "e")
    for op in ("neg", "exp", "log", "tanh", "sqrt", "sin") if count < 10_000_000 else ("neg", "tanh"):
        add(family, op, of(positive(count))(lambda T, x, op=op: getattr(T, op)(x)))
    for op in ("add", "mul", "div", "maximum"):
        add(family, op, of(rows(count), positive(count, seed=1))(lambda T, x, y, op=op: getattr(T, op)(x, y)))
    for op in ("gelu", "silu", "relu") if count < 10_000_000 else ("gelu",):
        add(family, op, of(rows(count))(lambda T, x, op=op: getattr(T.nn.functional, op)(x)))

MILLION = 1_000_000
for kind in ("float64", "bfloat16", "float16"):
    add("dtypes", f"{kind} add", of(rows(MILLION, dtype=kind), rows(MILLION, dtype=kind))(lambda T, x, y: x + y))
    add("dtypes", f"{kind} tanh", of(rows(MILLION, dtype=kind))(lambda T, x: T.tanh(x)))
    add("dtypes", f"{kind} sum of rows", of(rows(1000, 1000, dtype=kind))(lambda T, x: x.sum(1)))
    add("dtypes", f"float32 to {kind}", of(rows(MILLION))(lambda T, x, kind=kind: x.to(getattr(T, kind))))
    add("dtypes", f"{kind} to float32", of(rows(MILLION, dtype=kind))(lambda T, x: x.float()))
add("dtypes", "int64 add", of(lambda T: whole(T, 99, MILLION))(lambda T, x: x + x))
add("dtypes", "int64 to float32", of(lambda T: whole(T, 99, MILLION))(lambda T, x: x.float()))
add("dtypes", "bool and", of(lambda T: normal(T, MILLION) > 0)(lambda T, x: x & x))
add("layouts", "row added", of(rows(1000, 1000), rows(1000))(lambda T, x, y: x + y))
add("layouts", "column multiplied", of(rows(1000, 1000), rows(1000, 1))(lambda T, x, y: x * y))
add("layouts", "column of 64 multiplied", of(rows(16384, 64), rows(16384, 1))(lambda T, x, y: x * y))
add("layouts", "transposed added", of(rows(1000, 1000), rows(1000, 1000))(lambda T, x, y: x.t() + y))
add("layouts", "every second", of(rows(1000, 2000))(lambda T, x: x[:, ::2] * 2))
add("layouts", "in place", of(rows(MILLION), rows(MILLION))(lambda T, x, y: x.mul_(0.5).add_(y)), drawn=True)
add("layouts", "channels last", of(rows(8, 56, 56, 64))(lambda T, x: x.permute(0, 3, 1, 2) * 2))

# --------------------------------------------------------------------------------------------------------- reductions

for name, work in {
    "sum": lambda T, x: x.sum(),
    "sum of columns": lambda T, x: x.sum(0),
    "mean of rows": lambda T, x: x.mean(1),
    "variance of rows": lambda T, x: x.var(1),
    "maximum with place": lambda T, x: x.max(1),
    "amax of columns": lambda T, x: x.amax(0),
    "argmax of rows": lambda T, x: x.argmax(1),
    "norm": lambda T, x: x.norm(),
    "logsumexp": lambda T, x: x.logsumexp(1),
    "cumsum": lambda T, x: x.cumsum(1),
    "softmax": lambda T, x: x.softmax(-1),
    "softmax of columns": lambda T, x: x.softmax(0),
}.items():
    add("reductions", name, of(rows(1000, 1000))(work))
    if name in ("sum", "mean of rows", "softmax"):
        add("reductions", f"{name}, short rows", of(rows(20000, 48))(work))

# ----------------------------------------------------------------------------------------------------------- movement

INDEX = lambda below, *shape: lambda T: whole(T, below, *shape, seed=2)  # noqa: E731
SQUARE = rows(1000, 1000)
for name, make in {
    "cat": of(SQUARE)(lambda T, x: T.cat([x, x], 1)),
    "stack": of(SQUARE)(lambda T, x: T.stack([x, x])),
    "transposed copy": of(SQUARE)(lambda T, x: x.t().contiguous()),
    "heads to the front": of(rows(8, 128, 12, 64))(lambda T, x: x.permute(0, 2, 1, 3).contiguous()),
    "rows by index": of(SQUARE, INDEX(1000, 1000))(lambda T, x, i: x[i]),
    "gather": of(SQUARE, INDEX(1000, 1000, 1000))(lambda T, x, i: x.gather(1, i)),
    "scatter_add": of(SQUARE, INDEX(1000, 1000, 1000))(lambda T, x, i: T.zeros(1000, 1000).scatter_add_(1, i, x)),
    "index_add": of(SQUARE, INDEX(1000, 1000))(lambda T, x, i: T.zeros(1000, 1000).index_add_(0, i, x)),
    "masked_fill": of(SQUARE)(lambda T, x: x.masked_fill(x > 0, 0.0)),
    "where": of(SQUARE)(lambda T, x: T.where(x > 0, x, -x)),
    "by mask": of(SQUARE)(lambda T, x: x[x > 0]),
    "sort": of(rows(1000, 300))(lambda T, x: x.sort(1)[0]),
    "topk": of(rows(8, 50257))(lambda T, x: x.topk(50)[0]),
    "flip": of(SQUARE)(lambda T, x: x.flip(1)),
    "roll": of(SQUARE)(lambda T, x: x.roll(7, 1)),
    "pad": of(rows(8, 16, 64, 64))(lambda T, x: T.nn.functional.pad(x, (1, 1, 1, 1))),
    "rotary": of(rows(1, 12, 256, 64), rows(256, 64), rows(256, 64))(
        lambda T, q, c, s: q * c + T.cat((-q[..., 32:], q[..., :32]), -1) * s
    ),
    "zeros": of()(lambda T: T.zeros(1000, 1000)),
    "arange": of()(lambda T: T.arange(MILLION)),
    "clone": of(SQUARE)(lambda T, x: x.clone()),
}.items():
    add("movement", name, make)

# ----------------------------------------------------------------------------------------------------- linear algebra


def definite(n: int) -> Callable[[Any], Any]:
    """A matrix that has a Cholesky factor."""
    return lambda T: (lambda a: a @ a.t() + n * T.eye(n))(normal(T, n, n))


for side in (32, 128, 512):
    add("linear algebra", f"matmul {side}", of(rows(side, side), rows(side, side, seed=1))(lambda T, a, b: a @ b))
for name, make in {
    "one row by 4096 x 4096": of(rows(1, 4096), rows(4096, 4096))(lambda T, x, w: T.nn.functional.linear(x, w)),
    "one row by 4096 x 4096, bfloat16": of(rows(1, 4096, dtype="bfloat16"), rows(4096, 4096, dtype="bfloat16"))(
        lambda T, x, w: T.nn.functional.linear(x, w)
    ),
    "8 rows by 768 x 3072": of(rows(8, 768), rows(3072, 768))(lambda T, x, w: T.nn.functional.linear(x, w)),
    "scores of heads": of(rows(96, 128, 64), rows(96, 128, 64))(lambda T, a, b: a @ b.transpose(1, 2)),
    "einsum": of(rows(4, 64, 12, 64), rows(4, 64, 12, 64))(lambda T, a, b: T.einsum("bqhd,bkhd->bhqk", a, b)),
    "cholesky 200": of(definite(200))(lambda T, a: T.linalg.cholesky(a)),
    "solve 200": of(definite(200), rows(200, 8))(lambda T, a, b: T.linalg.solve(a, b)),
    "inverse 200": of(definite(200))(lambda T, a: T.linalg.inv(a)),
    "singular values 100": of(rows(100, 100))(lambda T, a: T.linalg.svdvals(a)),
    "transform of 10 x 16384": of(rows(10, 16384))(lambda T, a: T.fft.rfft(a).abs()),
}.items():
    add("linear algebra", name, make)

# ------------------------------------------------------------------------------------------------------ nn, both ways


def both(name: str, shapes: list[tuple[int, ...]], work: Callable[..., Any]) -> None:
    """A case without gradients, and one with a backward pass from the sum."""

    def forward(T: Any) -> Callable[[], Any]:
        values = [normal(T, *shape, seed=k) for k, shape in enumerate(shapes)]

        def run() -> Any:
            with T.no_grad():
                return work(T, *values)

        return run

    def backward(T: Any) -> Callable[[], Any]:
        values = [normal(T, *shape, seed=k, grad=True) for k, shape in enumerate(shapes)]

        def run() -> Any:
            for value in values:
                value.grad = None
            work(T, *values).sum().backward()
            return values[0].grad

        return run

    add("nn forward", name, forward)
    add("nn forward and backward", name, backward)


F = lambda T: T.nn.functional  # noqa: E731
both("linear and gelu", [(256, 256), (1024, 256), (1024,)], lambda T, x, w, b: F(T).gelu(F(T).linear(x, w, b)))
both("layer_norm", [(1024, 768), (768,), (768,)], lambda T, x, w, b: F(T).layer_norm(x, (768,), w, b))
both("rms_norm", [(1024, 768), (768,)], lambda T, x, w: F(T).rms_norm(x, (768,), w))
both("group_norm", [(4, 64, 32, 32), (64,), (64,)], lambda T, x, w, b: F(T).group_norm(x, 8, w, b))
both("swiglu", [(1024, 768), (1024, 768)], lambda T, x, y: F(T).silu(x) * y)
both("convolution 3 x 3", [(1, 64, 56, 56), (64, 64, 3, 3)], lambda T, x, w: F(T).conv2d(x, w, padding=1))
both("convolution 1 x 1", [(4, 256, 14, 14), (256, 256, 1, 1)], lambda T, x, w: F(T).conv2d(x, w))
both("depthwise", [(2, 96, 28, 28), (96, 1, 3, 3)], lambda T, x, w: F(T).conv2d(x, w, padding=1, groups=96))
both("max_pool2d", [(2, 64, 112, 112)], lambda T, x: F(T).max_pool2d(x, 3, 2, 1))
both("attention", [(4, 12, 128, 64)], lambda T, q: F(T).scaled_dot_product_attention(q, q, q))
both("attention, causal", [(1, 12, 256, 64)], lambda T, q: F(T).scaled_dot_product_attention(q, q, q, is_causal=True))
both("interpolate", [(2, 32, 56, 56)], lambda T, x: F(T).interpolate(x, scale_factor=2, mode="bilinear"))


def module(name: str, build: Callable[[Any], Any], shape: tuple[int, ...]) -> None:
    """The same of a module."""

    def work(T: Any, x: Any, kept: dict = {}) -> Any:  # noqa: B006 - one module for each library and case
        key = (T.__name__, name)
        if key not in kept:
            T.manual_seed(0)
            kept[key] = build(T.nn)
        made = kept[key](x)
        return made[0] if isinstance(made, tuple) else made

    both(name, [shape], work)


module("LSTM 64", lambda nn: nn.LSTM(64, 64), (16, 8, 64))
module("GRU 64", lambda nn: nn.GRU(64, 64), (16, 8, 64))
module("encoder layer", lambda nn: nn.TransformerEncoderLayer(128, 4, 256, 0.0, batch_first=True), (4, 32, 128))

# ------------------------------------------------------------------------------------------------ losses and training


def training(layers: list[int], rows_: int, optimizer: str) -> Make:
    """A step of a stack of linear layers."""

    def make(T: Any) -> Callable[[], Any]:
        T.manual_seed(0)
        parts: list[Any] = []
        for a, b in zip(layers, layers[1:]):
            parts += [T.nn.Linear(a, b), T.nn.ReLU()]
        net = T.nn.Sequential(*parts[:-1])
        steps = getattr(T.optim, optimizer)(net.parameters(), lr=1e-4)
        x, y = normal(T, rows_, layers[0]), whole(T, layers[-1], rows_)

        def run() -> Any:
            steps.zero_grad()
            loss = T.nn.functional.cross_entropy(net(x), y)
            loss.backward()
            steps.step()
            return loss.detach()

        return run

    return make


add(
    "training", "cross entropy of 8000", of(rows(128, 8000), INDEX(8000, 128))(lambda T, x, y: F(T).cross_entropy(x, y))
)
add("training", "tiny step, AdamW", training([8, 16, 4], 4, "AdamW"))
add("training", "step of 256, SGD", training([256, 256, 10], 64, "SGD"))
add("training", "step of 512, AdamW", training([512, 512, 512, 10], 64, "AdamW"))

# ------------------------------------------------------------------------------------------------------------- random

for name, make in {
    "randn": of()(lambda T: T.randn(MILLION)),
    "rand": of()(lambda T: T.rand(MILLION)),
    "randint": of()(lambda T: T.randint(0, 100, (MILLION,))),
    "randperm": of()(lambda T: T.randperm(100_000)),
    "bernoulli": of(lambda T: T.full((MILLION,), 0.3))(lambda T, p: T.bernoulli(p)),
    "dropout": of(rows(1024, 768))(lambda T, x: F(T).dropout(x, 0.1, True)),
    "kaiming_uniform_": of(rows(1000, 1000))(lambda T, x: T.nn.init.kaiming_uniform_(x)),
}.items():
    add("random", name, make, drawn=True)

# -------------------------------------------------------------------------------------------------------------- calls

FEW = rows(4, 4)
for name, make in {
    "add": of(FEW, rows(4, 4, seed=1))(lambda T, x, y: x + y),
    "add number": of(FEW)(lambda T, x: x + 1),
    "row added": of(FEW, rows(4))(lambda T, x, y: x + y),
    "bfloat16 add": of(rows(4, 4, dtype="bfloat16"))(lambda T, x: x + x),
    "int64 add": of(INDEX(9, 4, 4))(lambda T, x: x + x),
    "sum": of(FEW)(lambda T, x: x.sum()),
    "matmul": of(FEW)(lambda T, x: x @ x),
    "softmax": of(FEW)(lambda T, x: x.softmax(-1)),
    "view": of(FEW)(lambda T, x: x.view(16)),
    "transpose": of(FEW)(lambda T, x: x.transpose(0, 1)),
    "x[1:3]": of(FEW)(lambda T, x: x[1:3]),
    "x[:, 0]": of(FEW)(lambda T, x: x[:, 0]),
    "item": of(FEW)(lambda T, x: x[0, 0].item()),
    "cat": of(FEW)(lambda T, x: T.cat([x, x])),
    "zeros": of()(lambda T: T.zeros(3)),
    "tensor of list": of()(lambda T: T.tensor([1.0, 2.0, 3.0])),
    "linear with gradient": of(rows(4, 4, grad=True), FEW)(lambda T, x, w: F(T).linear(x, w)),
    "backward": of(rows(4, 4, grad=True))(lambda T, x: T.autograd.grad((x * x).sum(), x)),
    "in place": of(FEW)(lambda T, x: x.mul_(1.0)),
}.items():
    add("calls on 4 x 4", name, make)

# ------------------------------------------------------------------------------------ what PyTorch does in another way


def block(lib: Any, x: Any, w: Any, c: Any, y: Any) -> Any:
    """Root mean square norm, rotary embedding and SwiGLU."""
    h = w * (x * lib.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))
    half = h.shape[-1] // 2
    h = h * c + lib.cat((-h[..., half:], h[..., :half]), -1) * c
    return lib.nn.functional.silu(h) * y + x


def gelu(lib: Any, x: Any, w: Any, c: Any, y: Any) -> Any:
    """GELU of a product and a sum, written out."""
    h = x * y + x
    return 0.5 * h * (1 + lib.tanh(0.7978845608 * (h + 0.044715 * h * h * h)))


def compiled(work: Callable[..., Any], heads: int) -> Make:
    """Our compiled function, beside PyTorch's eager one."""

    def make(T: Any) -> Callable[[], Any]:
        values = [normal(T, *s) for s in ((heads, 2048, 64), (64,), (2048, 64), (heads, 2048, 64))]
        called = (lambda *args: work(T, *args)) if T.__name__ == "torch" else T.compile(lambda *args: work(T, *args))

        def run() -> Any:
            with T.no_grad():
                return called(*values)

        for _ in range(10):
            run()
        return run

    return make


def byte_weights(count: int) -> Make:
    """Rows by 4096 x 4096 weights of bytes, beside PyTorch's product in float32."""

    def make(T: Any) -> Callable[[], Any]:
        linear = T.nn.Linear(4096, 4096)
        module = linear if T.__name__ == "torch" else T.quantize_weights(linear)
        x = normal(T, count, 4096)

        def run() -> Any:
            with T.no_grad():
                return module(x)

        return run

    return make


for work in (block, gelu):
    for heads, size in ((8, "1e6"), (32, "4e6")):
        add("compiled, beside eager torch", f"{work.__name__} {size}", compiled(work, heads))
for count in (1, 4, 8):
    add("weights of bytes, beside float32", f"{count} by 4096 x 4096", byte_weights(count), drawn=True)
