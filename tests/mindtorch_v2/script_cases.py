"""Programs that PyTorch scripts for `record_scripts.py`: each shows a part of TorchScript. Only PyTorch imports this.

CASES has modules, or classes of them, with tuples of arguments; a method is `forward`.
"""

import enum
import math
from typing import Any, NamedTuple, Optional, Union

import torch
from torch import Tensor, nn
from torch.nn import functional

CASES: list[tuple[str, Any, tuple]] = []


def case(*inputs):
    def keep(module):
        CASES.append((module.__name__.lower(), module, inputs))
        return module

    return keep


def ramp(*shape: int) -> Tensor:
    return torch.arange(math.prod(shape), dtype=torch.float32).reshape(shape).sub(2).div(4)


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Pair(NamedTuple):
    a: Tensor
    n: int


@torch.jit.script
class Stack:
    def __init__(self, n: int):
        self.n = n
        self.items: list[int] = []

    def push(self, k: int) -> int:
        self.items.append(k)
        self.n += k
        return self.n

    def __lt__(self, other: "Stack") -> bool:
        return self.n < other.n


@torch.jit.interface
class Layer(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


def scaled(x: Tensor, n: int = 2, flag: bool = True) -> Tensor:
    return x * n if flag else x


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(ramp(3))
        self.register_buffer("b", torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.w + self.b


@case((ramp(2, 3),), (-ramp(2, 3) - 9,))
class Branches(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            return x * 2
        y = x - 1
        if bool(y.mean() > -1e9) and not bool(y.max() > 0):
            y = y + 3
            return y.relu()
        return y


@case((5,), (0,), (20,))
class Loops(nn.Module):
    def forward(self, n: int) -> tuple[int, list[int], list[tuple[int, str]]]:
        s = 0
        out: list[int] = []
        for i in range(n):
            if i % 3 == 0:
                continue
            for j in range(i, 0, -2):
                if j > 7:
                    break
                s += j * i
            if s > 300:
                break
            out.append(s)
        k = n
        while k > 0:
            k = k // 2
            out.append(k)
            if k == 3:
                return s, out, [(k, "three")]
        return s, out, [(i, str(i)) for i in out]


@case(([3, 1, 2],), ([7],))
class Lists(nn.Module):
    def forward(self, a: list[int]):
        b = a.copy()
        b.sort()
        b.extend([4, 8])
        b.insert(1, 100)
        p, q = b.pop(), b.pop(0)
        d = b[::-1] + b[1:3] + [1] * 3
        b.reverse()
        b[0] = -1
        b[-1] += 5
        del b[0]
        e = [(i, v) for i, v in enumerate(a)], [x / 2 for x in a], [x for x, y in zip(a, d)]
        return (
            b,
            p,
            q,
            d,
            e,
            3 in a,
            sum(a),
            min(a),
            max(a),
            a.index(a[0]),
            a.count(1),
            sorted(a),
            a == [7],
            list(range(0, 10, 3)),
        )


@case(({"a": 1, "b": 2},), ({"z": 26},))
class Dicts(nn.Module):
    def forward(self, d: dict[str, int]):
        e: dict[int, str] = {}
        for k, v in d.items():
            e[v] = k
        x, y, z = d.get("a", 17), d.get("q"), d.setdefault("new", 5)
        d.update({"u": 8})
        p = d.pop("u")
        return e, x, y, z, p, list(d.keys()), list(d.values()), len(d), "a" in d, {k: v * 2 for k, v in d.items()}


@case((None, 3), (ramp(2), 4), (ramp(2),))
class Optionals(nn.Module):
    def forward(self, x: Optional[Tensor], k: Optional[int] = None) -> tuple[Tensor, int]:
        y = torch.ones(2) if x is None else x + 1
        assert k is not None
        return y, k + x.size(0) if x is not None else k


@case(("hello World", 3, 2.5))
class Texts(nn.Module):
    def forward(self, s: str, n: int, f: float):
        a = s.upper() + s.title() + s.replace("o", "0") + s.strip("h") + "-".join(s.split(" "))
        b = "%s|%d|%f|%e|%%" % (s, n, f, f) + f"{n} {f} {True} {[1, 2]}" + f"{n} {(1, 2.0)}"  # noqa: UP031  (TorchScript has both)
        c = str(f) + str([1.5, 2.0]) + str({"a": n}) + str(1e20 * f) + str(f / 25) + str(-3.0 * n)
        return (
            a,
            b,
            c,
            s[1],
            s[1:4],
            s[-2:],
            len(s),
            int("12") + int(f),
            "o" in s,
            s.find("o"),
            s.startswith("he"),
            "é\n\"'",
        )


@case(("привет é", "é"), ("ab", "b"))
class Bytes(nn.Module):
    def forward(self, s: str, t: str):
        parts = "".join([s[i : i + 1] for i in range(4)])
        counts = len(s), s.find(t), s.rfind(t), s.count(t), ord(s[0]), t in s
        return (
            parts,
            counts,
            s.upper(),
            s.title(),
            s.center(19, "*"),
            s.split(" "),
            s.isalpha(),
            s[0:1] + s[1:2],
            s.strip("п"),
        )


@case((7, 3, 2.5, -1.5))
class Numbers(nn.Module):
    def forward(self, a: int, b: int, x: float, y: float):
        ints = (
            a - b,
            a * b,
            -a // b,
            -a % b,
            a**b,
            a & b,
            a ^ b,
            a << b,
            -a,
            abs(-a),
            a * 1000000007 * 1000000007 * 1000000007,
        )
        floats = x * y, x / y, x // y, y % x, x**2.0, abs(y), a / b, b**x, a // x, b - y, max(a, x), min(x, y)
        maths = (
            math.sqrt(x),
            math.log(x - 2.5),
            math.log(x, 2),
            math.sqrt(y),
            math.floor(y),
            math.ceil(y),
            math.fmod(x, 2.0),
        )
        return ints, floats, maths, round(x), int(y), float(a), bool(0.0), a < b, a == 7.0, 1j * x


@case((ramp(4, 5),))
class Slices(nn.Module):
    def forward(self, x: Tensor):
        a = x[0], x[-1], x[:, 1], x[1:, :-1], x[None, 0], x[..., 0], x[:, None, ::2], x[torch.tensor([1, 0])], x[x > 2]
        y = x.clone()
        y[0] = 1.0
        y[:, 1] = torch.arange(4).float()
        y[y > 1.5] = -2.0
        y[torch.tensor([0, 1])] += 1
        y[..., -1] *= 2
        p, q = x.chunk(2)
        values, indices = x.max(dim=1)
        return a, y, p, q, values, indices, [t.shape for t in x.unbind(1)]


@case((ramp(3), 4))
class Classes(nn.Module):
    def make(self, x: Tensor, n: int) -> Pair:
        return Pair(x, n)

    def forward(self, x: Tensor, n: int):
        stack, other = Stack(n), Stack(1)
        for i in range(n):
            stack.push(i)
        both = [stack, other]
        both.sort()
        p = self.make(x, n)
        a, b = p
        c = Color.BLUE if n > 2 else Color.RED
        return stack.n, stack.items, both[0].n, stack < other, p, p.a + a, b, c.value, c.name, c == Color.RED


@case((3,), (-1,), (100,), (4,))
class Raises(nn.Module):
    def forward(self, k: int) -> int:
        if k < 0:
            raise ValueError(f"negative {k}")
        assert k < 50, "too large"
        if k == 3:
            return k
        raise RuntimeError("no")


@case((ramp(2, 3),))
class Kinds(nn.Module):
    def forward(self, x: Tensor):
        a = (
            x.to(torch.float64),
            x.to(torch.int32),
            x.double(),
            x.to(x.device),
            x.to(x),
            x.to(device=x.device, dtype=torch.float16),
        )
        b = (
            x.dtype == torch.float32,
            x.dtype,
            x.dim(),
            x.numel(),
            x.size(),
            x.size(1),
            x.stride(),
            int(x[1, 2]),
            float(x[0, 0]),
            x.sum().item(),
        )
        c = (
            torch.tensor([1, 2]),
            torch.tensor(2.5),
            torch.tensor([1.0], dtype=torch.float64),
            torch.full([2], 3),
            torch.zeros_like(x),
            x.new_ones([2]),
        )
        v: list[list[float]] = torch.jit.annotate(list[list[float]], x.tolist())
        return a, b, c, v


@case((1,), ("s",), (2.5,))
class Unions(nn.Module):
    def forward(self, x: Union[int, str, float]) -> str:
        if isinstance(x, int):
            return "int" + str(x + 1)
        elif isinstance(x, str):
            return "str" + x
        return "float" + str(x * 2)


@case((ramp(2, 3),), (ramp(2, 3),))
class Modules(nn.Module):
    impl: Layer
    d: dict[str, int]
    o: Optional[Tensor]

    def __init__(self):
        super().__init__()
        self.impl = Scale()
        self.layers = nn.ModuleList([Scale(), Scale()])
        self.named = nn.ModuleDict({"a": Scale(), "b": nn.GELU()})
        self.seq = nn.Sequential(nn.Softmax(dim=-1), nn.Tanh())
        self.d, self.o, self.count, self.f, self.names = {"x": 1}, None, 0, 0.5, ["p", "q"]
        self.t, self.c, self.cx = (1, 2.5, "s"), Color.RED, 1 + 2j

    @property
    def twice(self) -> int:
        return self.count * 2

    @torch.jit.export
    def bump(self, k: int = 2) -> int:
        self.count += k
        self.d["x"] += 1
        return self.count

    def forward(self, x: Tensor):
        y = x
        for i, m in enumerate(self.layers):
            y = m(y) + i
        for m in self.seq:
            y = m(y)
        for _, m in self.named.items():
            y = m(y)
        y = self.impl.forward(y)
        if self.o is None:
            self.o = x
        self.count += 1
        return (
            y,
            self.count,
            self.d,
            self.t,
            self.names,
            self.twice,
            self.bump(3),
            self.f,
            self.c.value,
            self.cx,
            "a" in self.named,
        )


@case((ramp(3, 4),))
class Gradients(nn.Module):
    def forward(self, x: Tensor):
        y = x.detach().requires_grad_()
        with torch.no_grad():
            z = y * 2
        w = (y * y).sum()
        w.backward()
        return z, z.requires_grad, y.grad


@case((ramp(2),))
class Forks(nn.Module):
    def work(self, x: Tensor, k: int) -> Tensor:
        return x * k

    def forward(self, x: Tensor):
        futures: list[torch.jit.Future[Tensor]] = []
        for i in range(3):
            futures.append(torch.jit.fork(self.work, x, i))
        return [torch.jit.wait(f) for f in futures], scaled(x), scaled(x, 3, False)


@case((ramp(2, 3), ramp(3, 2)))
class Operators(nn.Module):
    def forward(self, x: Tensor, y: Tensor):
        a = (
            x @ y,
            torch.einsum("ij,jk->ik", [x, y]),
            torch.cat([x, x], 1),
            torch.stack((x, x), dim=-1),
            x.view(-1),
            x.permute(1, 0),
            x.mean([0, 1], keepdim=True),
        )
        b = (
            x.std(),
            x.norm(),
            x.argmax(1),
            x.softmax(-1),
            torch.clamp(x, min=0),
            2**x,
            1 - x,
            x // 2,
            x % 2,
            ~(x > 0),
            x.masked_fill(x > 0, -math.inf),
        )
        c = (
            x.split([1, 2], 1),
            functional.pad(x, [1, 1]),
            functional.normalize(x),
            torch.where(x > 0, x, torch.zeros_like(x)),
            torch.add(x, 1, alpha=3),
            x.flatten(),
        )
        return a, b, c


@case((ramp(2, 3, 2),))
class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(2, 2, batch_first=True)
        self.gru = nn.GRUCell(2, 2)

    def forward(self, x: Tensor):
        y, (h, c) = self.lstm(x)
        z, _ = self.lstm(x, (h, c))
        s = torch.zeros(2, 2)
        for i in range(x.size(1)):
            s = self.gru(x[:, i], s)
        return y, h, c, z, s


@case((ramp(1, 2, 4, 4),))
class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.seq = nn.Sequential(
            nn.Conv2d(2, 2, 3, padding=1, bias=False),
            nn.BatchNorm2d(2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Dropout(0.5),
        )
        self.head = nn.Linear(8, 2)
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        return functional.log_softmax(self.head(self.seq(x)), dim=-1)


class Traced(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = Scale()

    def forward(self, x: Tensor):
        y = self.scale(x).view(x.size(0), -1, 3)
        return torch.relu(y) + x.size(1), {"m": x.mean(dim=0)}


torch.manual_seed(0)
CASES.append(("traced", torch.jit.trace(Traced(), (ramp(3, 3),), strict=False), ((ramp(5, 3),),)))
