"""What a call gave: results, or the class and first sentence of an error; and how two outcomes are compared."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mindtorch_v2._pending import settled
from mindtorch_v2._tensor import Tensor

ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    IndexError,
    KeyError,
    MemoryError,
    NameError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    UnicodeError,
    ValueError,
)


@dataclass(frozen=True)
class Failure:
    """An error: its class (of those that Python has) by name, and the first sentence of its message."""

    kind: str
    message: str
    whole: str = field(default="", compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


def first_sentence(text: str) -> str:
    """Up to the first full stop that ends a sentence, without what a build or an address may vary."""
    line = text.strip().split("\n")[0]
    found = re.match(r"(.*?[.!?])(?= [A-Z(]|$)", line)
    return (found[1] if found else line).strip()


def attempt(call: Callable[[], Any]) -> Any:
    """The result of a call, or its Failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = call()
            for leaf in leaves(result):
                if isinstance(leaf, Tensor):
                    settled(leaf)  # an operator that a pipeline recorded fails when it runs
            return result
        except ERRORS as error:
            kind = next(c for c in type(error).__mro__ if c.__module__ == "builtins")
            return Failure(kind.__name__, first_sentence(str(error)), str(error))


def is_tensor(value: Any) -> bool:
    return hasattr(value, "storage_offset") and hasattr(value, "stride")


def leaves(result: Any) -> list[Any]:
    """The results one by one."""
    if isinstance(result, (tuple, list)) and not is_tensor(result):
        return [leaf for item in result for leaf in leaves(item)]
    return [result]


def geometry(result: Any, offset: bool = False) -> Any:
    """Dtype, shape and strides (and the storage offset) of tensors; other results by their type.

    Strides count as far as they reach an element: those of dimensions of size 1, and of tensors without elements, are numpy's own.
    """
    if is_tensor(result):
        strides = tuple(step if size > 1 else "*" for size, step in zip(result.shape, result.stride()))
        found = (str(result.dtype), tuple(result.shape), strides if result.numel() else "*")
        return (*found, result.storage_offset()) if offset else found
    if isinstance(result, (tuple, list)):
        return [geometry(item, offset) for item in result]
    return result if result is None else type(result).__name__
