"""The rows of the generated table, read by path: the operators that the tests are made for."""

from __future__ import annotations

import runpy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TABLE = Path(__file__).resolve().parents[3] / "generated" / "test_table.py"


@dataclass(frozen=True)
class Parameter:
    """One parameter of an operator: `type` is that of the schema (`Tensor?`, `int[1]`)."""

    name: str
    type: str
    has_default: bool
    keyword: bool

    @property
    def is_tensor(self) -> bool:
        return self.type in ("Tensor", "Tensor?")

    @property
    def is_tensors(self) -> bool:
        return self.type.startswith("Tensor") and "[" in self.type

    @property
    def base(self) -> str:
        """The type without `?` and list marks; SymInt is int."""
        return self.type.split("[")[0].rstrip("?").replace("SymInt", "int")

    @property
    def is_list(self) -> bool:
        return "[" in self.type

    @property
    def optional(self) -> bool:
        return self.type.endswith("?")


@dataclass(frozen=True)
class Row:
    """One operator, as the tests see it."""

    name: str
    family: str
    namespace: str
    public: str
    rule: str
    forms: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    returns: tuple[str, ...]
    hints: dict[str, Any]
    tags: tuple[str, ...]
    out: tuple[str, ...]
    differentiable: tuple[str, ...]

    def __str__(self) -> str:
        return self.name

    @property
    def is_ruled(self) -> bool:
        """Whether it has a rule of its own; a composite has those of what it calls."""
        return "." not in self.rule

    @property
    def names_a_file(self) -> bool:
        """Whether it reads or writes a file, which is nothing to draw."""
        return any(p.name == "filename" for p in self.parameters)

    @property
    def base_name(self) -> str:
        return self.name.split(".")[0]

    @property
    def tensors(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.is_tensor)

    @property
    def is_inplace(self) -> bool:
        """The signature itself writes to `self`."""
        return self.base_name.endswith("_") and not self.base_name.endswith("__")

    @property
    def is_random(self) -> bool:
        return (
            self.family == "random"
            or "random" in self.tags
            or any(p.type.startswith("Generator") for p in self.parameters)
        )

    @property
    def takes_numbers(self) -> bool:
        """Whether a number may stand for a tensor other than the first."""
        return ("pointwise" in self.tags or "numbers" in self.tags) and "tensors" not in self.tags

    def parameter(self, name: str) -> Parameter | None:
        return next((p for p in self.parameters if p.name == name), None)

    def has(self, form: str) -> bool:
        return form in self.forms


def read_rows(path: Path = TABLE) -> list[Row]:
    """All operators of the schema."""
    rows = runpy.run_path(str(path))["ROWS"]
    return [Row(**{**row, "parameters": tuple(Parameter(*p) for p in row["parameters"])}) for row in rows]
