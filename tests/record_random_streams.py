"""Record what PyTorch draws, for tests/mindtorch_v2/test_random_streams.py.

Run in an environment with PyTorch, from the root of the repository: `python tests/record_random_streams.py`. It
rewrites tests/mindtorch_v2/data/random_streams.json. On Intel processors PyTorch draws `bernoulli` and `exponential`
from another library; record elsewhere.

A case is one call: the stream's name in `mindtorch_v2._random.streams`, its arguments, the seed, whether a normal
number is waiting when the call is made, and of the outcome either the bytes (short ones) or their digest, and the
digest of the generator's state afterwards. `ulps` is what a result may differ by: 0 where the numbers follow from exact
rules alone, 1 where the C library's functions have a part.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import sys
import warnings
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

TARGET = Path(__file__).parent / "mindtorch_v2" / "data" / "random_streams.json"
FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
SHORT = 48

cases: list[dict[str, Any]] = []
_seeds = itertools.count(20250101, 7919)


def raw(t: torch.Tensor) -> bytes:
    t = t.detach().contiguous()
    if t.numel() == 0:
        return b""
    return t.reshape(-1).view(torch.uint8).numpy().tobytes()


def array(t: torch.Tensor) -> dict[str, Any]:
    """A tensor as JSON. A transposed matrix keeps its layout."""
    transposed = t.dim() == 2 and not t.is_contiguous()
    stored = t.t() if transposed else t
    return {
        "dtype": str(t.dtype).removeprefix("torch."),
        "shape": list(stored.shape),
        "transposed": transposed,
        "hex": raw(stored).hex(),
    }


def record(stream: str, call: Callable[..., torch.Tensor], ulps: int = 0, **arguments: Any) -> None:
    """Call with the keyword `generator` and keep what was drawn."""
    seed = next(_seeds)
    generator = torch.Generator().manual_seed(seed)
    waiting = len(cases) % 3 == 0
    if waiting:
        torch.empty(1, dtype=torch.float64).normal_(generator=generator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = call(generator=generator)
    data = raw(result)
    case = {
        "stream": stream,
        "seed": seed,
        "waiting": waiting,
        "arguments": {k: array(v) if isinstance(v, torch.Tensor) else v for k, v in arguments.items()},
        "dtype": str(result.dtype).removeprefix("torch."),
        "shape": list(result.shape),
        "ulps": ulps,
        "state": hashlib.sha256(raw(generator.get_state())).hexdigest(),
    }
    if result.numel() <= SHORT or ulps:
        case["hex"] = data.hex()
    else:
        case["sha256"] = hashlib.sha256(data).hexdigest()
    cases.append(case)


def empty(n: int, dtype: str) -> torch.Tensor:
    return torch.empty(n, dtype=getattr(torch, dtype))


def record_continuous() -> None:
    for d in FLOATS:
        double = int(d == "float64")
        for n in (0, 1, 7, 40, 5000):
            record("uniform", empty(n, d).uniform_, shape=[n], dtype=d)
            record("uniform", partial(empty(n, d).uniform_, -1.3, 2.9), shape=[n], dtype=d, low=-1.3, high=2.9)
        for n in (0, 1, 2, 15, 16, 17, 32, 40, 48, 20011):
            if n > SHORT and double:
                continue
            for mean, std in ((0.0, 1.0), (3.1, 0.7)):
                ulps = 1 if n < 16 or double else 0
                record("normal", partial(empty(n, d).normal_, mean, std), ulps, shape=[n], dtype=d, mean=mean, std=std)
        for n in (5, 40):
            record(
                "normal",
                partial(empty(2 * n, d)[::2].normal_, 0.5, 0.02),
                ulps=1,
                shape=[n],
                dtype=d,
                mean=0.5,
                std=0.02,
                contiguous=False,
            )
            record("log_normal", partial(empty(n, d).log_normal_, 0.3, 0.7), 1, shape=[n], dtype=d, mean=0.3, std=0.7)
            record("exponential", partial(empty(n, d).exponential_, 0.7), 1, shape=[n], dtype=d, rate=0.7)
            record("cauchy", partial(empty(n, d).cauchy_, 0.3, 0.7), 1, shape=[n], dtype=d, median=0.3, sigma=0.7)
        mean, std = torch.linspace(-2, 2, 40).to(getattr(torch, d)), torch.linspace(0, 3, 40).to(getattr(torch, d))
        for pair in ((mean, std), (mean, 0.7), (0.7, std)):
            record("normal_like", partial(torch.normal, *pair), double, mean=pair[0], std=pair[1], dtype=d)
    for d in ("complex64", "complex128"):
        kind = getattr(torch, d)
        record("uniform", partial(torch.rand, 9, dtype=kind), shape=[9], dtype=d)
        record("normal", partial(torch.randn, 9, dtype=kind), int(d == "complex128"), shape=[9], dtype=d)


def record_discrete() -> None:
    for d in (*FLOATS, *INTEGERS, "bool"):
        record("random", empty(40, d).random_, shape=[40], dtype=d)
        record("bernoulli", partial(empty(3000, d).bernoulli_, 0.3), shape=[3000], dtype=d, p=0.3)
        for p in (torch.linspace(0, 1, 40), torch.linspace(0, 1, 40, dtype=torch.float64)):
            record("bernoulli_tensor", partial(empty(40, d).bernoulli_, p), p=p, dtype=d)
        if d != "bool":
            record("geometric", partial(empty(40, d).geometric_, 0.2), shape=[40], dtype=d, p=0.2)
            record("randperm", partial(torch.randperm, 100, dtype=getattr(torch, d)), n=100, dtype=d)
    for n in (0, 1, 2, 4096, 4097, 5000, 30000, 100000):
        record("randperm", partial(torch.randperm, n), n=n, dtype="int64")
    for d in (*FLOATS, *INTEGERS, "uint16", "uint32", "uint64"):
        for low, high in (
            (0, 10),
            (3, 100),
            (0, 64),
            (-5, 6),
            (0, 2**28 - 1),
            (0, 2**28),
            (-(2**31), 2**31),
            (0, 3 * 2**61),
            (7, None),
        ):
            try:
                record("randint", partial(empty(20, d).random_, low, high), shape=[20], dtype=d, low=low, high=high)
            except RuntimeError:
                continue  # out of the dtype's range
    record(
        "randint",
        partial(empty(20, "int64").random_, -(2**63), None),
        shape=[20],
        dtype="int64",
        low=-(2**63),
        high=None,
    )
    record(
        "dropout_mask",
        lambda generator: torch.empty(2000).bernoulli_(0.9, generator=generator).bool(),
        shape=[2000],
        keep=0.9,
    )


def record_choices() -> None:
    weights = torch.Generator().manual_seed(99)
    for d in ("float32", "float64"):
        for shape in ((50,), (3, 40)):
            w = torch.rand(shape, dtype=getattr(torch, d), generator=weights)
            w[..., ::3] = 0
            for layout in [w] if w.dim() == 1 else [w, w.t().contiguous().t()]:
                for k, replacement in ((1, False), (1, True), (8, False), (8, True)):
                    record(
                        "multinomial",
                        partial(torch.multinomial, layout, k, replacement),
                        weights=layout,
                        num_samples=k,
                        replacement=replacement,
                    )
        for scale in (0, 3, 9.9, 10, 500):
            rates = torch.rand(40, dtype=getattr(torch, d), generator=weights) * scale
            record("poisson", partial(torch.poisson, rates), rates=rates)


def exchange() -> dict[str, Any]:
    """A state in the middle of a stream, with a normal number waiting, and what comes next."""
    generator = torch.Generator().manual_seed(2**40 + 5)
    torch.rand(700, generator=generator)
    torch.randn(3, generator=generator)
    state = raw(generator.get_state())
    return {
        "state": base64.b64encode(zlib.compress(state, 9)).decode(),
        "initial_seed": generator.initial_seed(),
        "normal": raw(torch.randn(4, dtype=torch.float64, generator=generator)).hex(),
        "randint": torch.randint(0, 10**6, (2000,), generator=generator)[-8:].tolist(),
    }


def layouts() -> list[dict[str, Any]]:
    """In-place fills of targets with strides: the elements in the order of their indices."""
    targets = {
        "transposed": lambda: torch.empty(3, 4).t(),
        "permuted": lambda: torch.empty(2, 3, 4).permute(2, 0, 1),
        "every other": lambda: torch.empty(3, 8)[:, ::2],
        "channels last": lambda: torch.empty(2, 3, 2, 2).to(memory_format=torch.channels_last),
    }
    out = []
    for name, make in targets.items():
        t = make().uniform_(generator=torch.Generator().manual_seed(31))
        out.append({"name": name, "shape": list(t.shape), "strides": list(t.stride()), "hex": raw(t).hex()})
    return out


def main() -> int:
    torch.set_num_threads(1)
    record_continuous()
    record_discrete()
    record_choices()
    text = json.dumps(
        {"torch": torch.__version__, "cases": cases, "exchange": exchange(), "layouts": layouts()}, indent=0
    )
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(text + "\n")
    print(f"{len(cases)} cases, {TARGET.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
