"""The generated files on disk: what would change, and the writing of it.

A file whose content is the same is not touched, so that its time stays and nothing is rebuilt for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

GENERATED = Path("generated")
STUBS = Path("src/mindtorch_v2/_generated")


@dataclass(frozen=True)
class Change:
    """A file that is not what the schema says. `old` is None for a new file, `new` for one that is no product any more."""

    path: str
    old: str | None
    new: str | None

    @property
    def kind(self) -> str:
        if self.old is None:
            return "added"
        return "removed" if self.new is None else "changed"


def changes(root: Path, products: Mapping[str, str]) -> list[Change]:
    """What differs between the products (by path relative to the root) and the disk, sorted by path."""
    found = []
    for path, text in products.items():
        old = _read(root / path)
        if old != text:
            found.append(Change(path, old, text))
    found += [Change(path, _read(root / path), None) for path in _generated(root) if path not in products]
    return sorted(found, key=lambda change: change.path)


def write(root: Path, found: list[Change]) -> None:
    """Write, or remove, each file of `found`."""
    for change in found:
        file = root / change.path
        if change.new is None:
            file.unlink()
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(change.new, encoding="utf-8", newline="\n")


def _generated(root: Path) -> list[str]:
    found = [*(root / GENERATED).rglob("*"), *(root / STUBS).rglob("*.pyi")]
    files = (file for file in found if file.is_file() and "__pycache__" not in file.parts)
    return [file.relative_to(root).as_posix() for file in files]


def _read(file: Path) -> str | None:
    return file.read_bytes().decode("utf-8") if file.is_file() else None
