"""What wrong calls that are written by hand (data/wrong_calls_by_hand.txt) are made of: short names, and how a call is answered. For the tests, and for what records PyTorch's answers."""

from __future__ import annotations

import importlib
import io
import re
import warnings
from pathlib import Path
from typing import Any

BY_HAND = Path(__file__).parent / "data" / "wrong_calls_by_hand.txt"
RECORD = BY_HAND.with_suffix(".json")


def calls() -> list[str]:
    """One a line."""
    return [line for line in BY_HAND.read_text(encoding="utf-8").splitlines() if line]


MODULES = (
    "nn.utils.parametrize nn.utils.prune nn.utils.stateless distributions func optim.lr_scheduler optim.swa_utils sparse nested amp autograd.functional "
    "autograd.gradcheck utils.data utils.dlpack utils.checkpoint quasirandom"
).split()


def prepare(T: Any) -> None:
    """Import what calls use of PyTorch or this library."""
    for name in MODULES:
        importlib.import_module(f"{T.__name__}.{name}")


def words(T: Any) -> dict[str, Any]:
    """The names that calls use, over PyTorch or this library."""

    def tensor(dtype: Any = None, **more: Any) -> Any:
        return lambda *shape: T.ones(*shape, dtype=dtype, **more)

    return {
        "T": T, "nn": T.nn, "F": T.nn.functional, "O": T.optim, "D": T.distributions, "P": T.nn.Parameter, "io": io,
        "X": tensor(), "I": tensor(T.int64), "B": tensor(T.bool), "C": tensor(T.complex64), "L": tensor(requires_grad=True),
    }  # fmt: skip


def answer(T: Any, call: str) -> tuple[str, str]:
    """The class of the error and its text, without addresses and blanks at will; "no error" where there is none."""
    T.manual_seed(0)
    names = words(T)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            try:
                code = compile(call, "call", "eval")
            except SyntaxError:  # several steps
                code = compile(call, "call", "exec")
            eval(code, names)
        except Exception as error:  # noqa: BLE001 - which one it is is what is asked
            text = re.sub(r"0x[0-9a-f]{6,}", "0x", str(error).replace("mindtorch_v2", "torch"))
            return type(error).__name__, re.sub(r"\s+", " ", text).strip()
    return "no error", ""
