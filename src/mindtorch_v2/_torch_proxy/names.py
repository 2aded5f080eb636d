"""What the source of a package writes of torch, and what of that is there: for `python -m mindtorch_v2 doctor --names`."""

from __future__ import annotations

import ast
import importlib
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .placeholders import reason


@dataclass
class Counts:
    """Dotted names by what they are here."""

    real: set[str] = field(default_factory=set)
    import_only: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)


def _is_torch(name: str) -> bool:
    return name == "torch" or name.startswith("torch.")


def written(source: str) -> set[str]:
    """The dotted names below torch that a module writes: what it imports, and attributes of what it imports."""
    tree = ast.parse(source)
    aliases: dict[str, str] = {}
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if _is_torch(alias.name):
                    found.add(alias.name)
                    aliases[alias.asname or "torch"] = alias.name if alias.asname else "torch"
        elif isinstance(node, ast.ImportFrom) and not node.level and _is_torch(node.module or ""):
            for alias in node.names:
                if alias.name != "*":
                    found.add(f"{node.module}.{alias.name}")
                    aliases[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    inner: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and id(node) not in inner and isinstance(node.ctx, ast.Load):
            parts: list[str] = []
            at: ast.expr = node
            while isinstance(at, ast.Attribute):
                inner.add(id(at))
                parts.append(at.attr)
                at = at.value
            if isinstance(at, ast.Name) and at.id in aliases:
                found.add(".".join([aliases[at.id], *reversed(parts)]))
    return found


def _modules(place: str, packages: tuple[str, ...]) -> Iterator[str]:
    for package in packages:
        single = os.path.join(place, f"{package}.py")
        if os.path.isfile(single):
            yield single
        for folder, _, files in os.walk(os.path.join(place, package)):
            yield from (os.path.join(folder, file) for file in files if file.endswith(".py"))


def _found(name: str) -> tuple[str, Any] | None:
    """The first name of a dotted one that is not there, and None; or the name and what it is. None where it ends in an object."""
    parts = name.split(".")
    value: Any = importlib.import_module("torch")
    for end, part in enumerate(parts[1:], 2):
        try:
            value = getattr(value, part)
        except AttributeError:
            if not hasattr(value, "__path__"):
                # The attributes of classes and functions belong to their authors, but a module's names are torch's.
                return (".".join(parts[:end]), None) if type(value).__name__ == "module" else None
            try:
                value = importlib.import_module(".".join(parts[:end]))
            except ImportError:
                return ".".join(parts[:end]), None
    return name, value


def of_packages(place: str, packages: tuple[str, ...]) -> Counts:
    """The names of torch that installed packages write. It serves torch in this process to look them up."""
    from . import install

    install()
    names: set[str] = set()
    for path in _modules(place, packages):
        with open(path, encoding="utf-8", errors="replace") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the package's source
            try:
                names |= written(file.read())
            except (SyntaxError, ValueError):  # a template, or of another Python
                continue
    counts = Counts()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that go out of use
        for name in names:
            found = _found(name)
            if found is None:
                continue
            if found[1] is None:
                counts.missing.add(found[0])
            elif reason(found[1]) is not None:
                counts.import_only.add(name)
            else:
                counts.real.add(name)
    return counts
