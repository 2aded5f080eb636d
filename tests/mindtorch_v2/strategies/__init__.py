"""How arguments are drawn: one strategy per meta rule, and a general one from parameter types and hints.

A strategy is a function of a `Picker` and a `Row`. Hypothesis drives it in the property tests, a seed in the tests of derivatives and in the
recording of values, so that all three speak of the same arguments. This package imports neither the library nor PyTorch.
"""

from __future__ import annotations

from . import (
    backward,
    bags,
    creation,
    fft,
    fused,
    indexing,
    joining,
    linalg,
    lists,
    matmul,
    nn,
    pointwise,
    reduction,
    view,
    vision,
)
from .cases import STRATEGIES, Case, draw_case
from .operands import Operand, Place, Symbol, pack, unpack
from .picking import Picker, seeded
from .table import Parameter, Row, read_rows

MODULES = (
    backward,
    bags,
    creation,
    fft,
    fused,
    indexing,
    joining,
    linalg,
    lists,
    matmul,
    nn,
    pointwise,
    reduction,
    view,
    vision,
)

__all__ = [
    "MODULES",
    "STRATEGIES",
    "Case",
    "Operand",
    "Parameter",
    "Picker",
    "Place",
    "Row",
    "Symbol",
    "draw_case",
    "pack",
    "read_rows",
    "seeded",
    "unpack",
]
