"""The dtypes that aclnn functions take (`schema/aclnn_dtypes.tsv`): the checks with which the emulator refuses all others, and the table for errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .model import Prototype

TABLE = Path("aclnn_dtypes.tsv")
NUMBERS = {
    "float32": 0, "float16": 1, "int8": 2, "int32": 3, "uint8": 4, "int16": 6, "uint16": 7, "uint32": 8, "int64": 9, "uint64": 10, "float64": 11,
    "bool": 12, "complex64": 16, "complex128": 17, "bfloat16": 27,
}  # fmt: skip
HOW = ("read", "list", "documents")


@dataclass(frozen=True)
class Row:
    """What a parameter takes; `how` says where that is from, `contradicted` what was read where documents say otherwise."""

    function: str
    parameter: str
    how: str
    dtypes: tuple[str, ...]
    contradicted: tuple[str, ...] = ()

    @property
    def mask(self) -> str:
        """A bit for each dtype's number in ACL."""
        return f"0x{sum(1 << NUMBERS[name] for name in self.dtypes):x}u"


@dataclass(frozen=True)
class Check:
    """The checks of a function: rows by C parameter, and the prototype's parameters as C declares them."""

    function: str
    declared: str
    passed: str
    rows: tuple[tuple[str, str, Row], ...]  # (kind, C parameter, row)


def read(schema_dir: Path) -> tuple[Row, ...]:
    """The rows of the table; none where there is no table. ValueError, with the place, for a line that is none."""
    file = schema_dir / TABLE
    if not file.exists():
        return ()
    found = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = line.split("\t")
        unknown = [name for part in parts[3:] for name in part.split() if name not in NUMBERS]
        if len(parts) not in (4, 5) or parts[2] not in HOW or unknown or len(parts) == 5 and parts[2] != "documents":
            raise ValueError(
                f"{file}:{number}: not a function, a parameter, one of {', '.join(HOW)}, and dtypes: {line!r}"
            )
        more = tuple(parts[4].split()) if len(parts) == 5 else ()
        found.append(Row(parts[0], parts[1], parts[2], tuple(parts[3].split()), more))
    return tuple(found)


def checks(rows: tuple[Row, ...], prototypes: Mapping[str, Prototype]) -> list[Check]:
    """The checks of each function that has a prototype: of named parameters, and of the first tensor where the row is a whole file's."""
    by_function: dict[str, list[Row]] = {}
    for row in rows:
        by_function.setdefault(row.function, []).append(row)
    found = []
    for function, of_function in sorted(by_function.items()):
        prototype = prototypes.get(function)
        if prototype is None:
            continue
        placed = [placed for row in of_function if (placed := _placed(row, prototype)) is not None]
        if placed:
            declared = ", ".join(f"{p.type} {p.name}" for p in prototype.parameters)
            passed = ", ".join(p.name for p in prototype.parameters)
            found.append(Check(function, declared, passed, tuple(placed)))
    return found


def _placed(row: Row, prototype: Prototype) -> tuple[str, str, Row] | None:
    kinds = {"constaclTensor*": "tensor", "aclTensor*": "tensor", "constaclScalar*": "scalar", "aclScalar*": "scalar"}
    for parameter in prototype.parameters:
        kind = kinds.get(parameter.type.replace(" ", ""))
        if kind == "tensor" and row.parameter == "*" or kind is not None and parameter.name == row.parameter:
            return kind, parameter.name, row
    return None
