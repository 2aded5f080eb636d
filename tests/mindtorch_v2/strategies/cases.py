"""One call of one operator as plain data, and the registry of strategies by rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from . import operands
from .operands import Operand
from .picking import Picker
from .table import Parameter, Row

SPECIAL_FAMILIES = (
    "comparison",
    "conversion",
    "indexing",
    "pointwise",
    "reduction",
    "scan",
    "shape",
    "sorting",
    "view",
)
INTERNAL = (
    "native_",
    "_scaled_dot_product_flash",
    "_weight_norm",
    "_ctc_loss",
    "_softmax_backward",
    "_log_softmax_backward",
)
Strategy = Callable[[Picker, Row], dict[str, Any]]
STRATEGIES: dict[str, Strategy] = {}


def strategy(*rules: str) -> Callable[[Strategy], Strategy]:
    """Registers a function as the strategy of rules (or of composites: `module.function`)."""

    def register(function: Strategy) -> Strategy:
        for rule in rules:
            if rule in STRATEGIES:
                raise ValueError(f"rule {rule!r} has two strategies")
            STRATEGIES[rule] = function
        return function

    return register


@dataclass(frozen=True, repr=False)
class Case:
    """The arguments of one call by parameter name; those left out have their defaults."""

    row: Row
    arguments: Mapping[str, Any]

    def __repr__(self) -> str:
        return self.show()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self.show())

    def split(self) -> tuple[list[tuple[Parameter, Any]], list[tuple[Parameter, Any]]]:
        """The positional and the keyword arguments. A gap among the positional ones makes the rest keywords."""
        positional, keywords, gap = [], [], False
        for parameter in self.row.parameters:
            if parameter.name not in self.arguments:
                gap = True
                continue
            pair = (parameter, self.arguments[parameter.name])
            (keywords if gap or parameter.keyword else positional).append(pair)
        return positional, keywords

    def build(self, torch: Any, device: str = "cpu") -> tuple[list, dict]:
        """Positional and keyword arguments for `torch`, freshly made."""
        positional, keywords = self.split()
        return (
            [operands.build(value, torch, device) for _, value in positional],
            {p.name: operands.build(value, torch, device) for p, value in keywords},
        )

    def show(self, callee: str = "", device: str = "cpu") -> str:
        """The call as a line of Python."""
        positional, keywords = self.split()
        parts = [operands.show(value, device) for _, value in positional]
        parts += [f"{p.name}={operands.show(value, device)}" for p, value in keywords]
        if not callee:
            name = self.row.public
            callee = f"torch.{name}" if self.row.namespace == "torch" else f"torch.{self.row.namespace}.{name}"
            if not self.row.has("function"):
                return f"({parts[0]}).{name}({', '.join(parts[1:])})"
        return f"{callee}({', '.join(parts)})"

    def pack(self) -> dict:
        """The arguments as JSON data."""
        return {name: operands.pack(value) for name, value in self.arguments.items()}

    @property
    def first(self) -> Operand | None:
        """The first argument, if it is a tensor."""
        name = self.row.parameters[0].name if self.row.parameters else ""
        value = self.arguments.get(name)
        return value if isinstance(value, Operand) else None


def draw_case(pick: Picker, row: Row) -> Case:
    """A case by the strategy of the operator's rule, or by the types of its parameters."""
    from .generic import complete
    from .variation import vary

    pick.special = not pick.valid and row.family in SPECIAL_FAMILIES and not row.base_name.startswith(("var", "std"))
    pick.plain = row.base_name.startswith(INTERNAL)
    arguments = STRATEGIES.get(row.rule, complete)(pick, row)
    if pick.variety and not (pick.plain or pick.spoilt) and pick.chance(pick.variety):
        arguments = vary(pick, row, arguments)
    order = [p.name for p in row.parameters]
    unknown = set(arguments) - set(order)
    if unknown:
        raise ValueError(f"{row.name}: the strategy of {row.rule} gives unknown arguments {sorted(unknown)}")
    return Case(row, {name: arguments[name] for name in order if name in arguments})
