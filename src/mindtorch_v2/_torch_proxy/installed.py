"""Which torch an environment has, and which of its distributions ask for torch: from what is on the path, nothing is imported."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import PathFinder
from importlib.metadata import Distribution, MetadataPathFinder
from pathlib import Path

MARK = "mindtorch"


@dataclass(frozen=True)
class Torch:
    """A distribution called torch."""

    version: str
    place: str
    ours: bool


def distributions(name: str | None = None) -> Iterator[Distribution]:
    """The distributions on the path, or those of a name; not what the proxy tells of."""
    from importlib.metadata import DistributionFinder

    context = DistributionFinder.Context() if name is None else DistributionFinder.Context(name=name)
    yield from MetadataPathFinder.find_distributions(context)


def torches() -> list[Torch]:
    """The distributions called torch; the first is the one that `import torch` finds, if no folder stands before it."""
    return [
        Torch(found.version, str(found.locate_file("")), found.version.partition("+")[2] == MARK)
        for found in distributions("torch")
    ]


def imported_torch() -> tuple[str, bool] | None:
    """The file that `import torch` runs in a process without the proxy, and whether that is mindtorch_v2; None if there is none."""
    spec = PathFinder.find_spec("torch", sys.path)
    if spec is None:
        return None
    if spec.origin is None:
        return str(next(iter(spec.submodule_search_locations or ["an unknown place"]))), False
    text = Path(spec.origin).read_text(encoding="utf-8", errors="replace")
    return spec.origin, "mindtorch_v2._torch_proxy" in text


@dataclass(frozen=True)
class Dependent:
    """A distribution that asks for torch."""

    name: str
    version: str
    requirement: str


_REQUIREMENT = re.compile(r"torch(?![\w.-])\s*\(?(?P<versions>[^;)]*)\)?\s*(?:;(?P<marker>.*))?", re.IGNORECASE)


def dependents() -> list[Dependent]:
    """The distributions that ask for torch themselves, not for one of their extras, by name."""
    found: dict[str, Dependent] = {}
    for distribution in distributions():
        name = distribution.metadata["Name"]
        for requirement in distribution.requires or ():
            asked = _REQUIREMENT.fullmatch(requirement.strip())
            if name is None or asked is None or "extra" in (asked["marker"] or ""):
                continue
            found.setdefault(name, Dependent(name, distribution.version, asked["versions"].strip()))
    return sorted(found.values(), key=lambda one: one.name.lower())


def packages_of(name: str) -> tuple[str, tuple[str, ...]] | None:
    """Where a distribution lies, and its top-level packages; None if it is not installed."""
    for distribution in distributions(name):
        return str(distribution.locate_file("")), _packages(distribution)
    return None


def _packages(distribution: Distribution) -> tuple[str, ...]:
    """The top-level packages of a distribution."""
    files = distribution.files or ()
    tops = {file.parts[0] for file in files if len(file.parts) > 1 and file.suffix == ".py"}
    tops |= {file.stem for file in files if len(file.parts) == 1 and file.suffix == ".py"}
    return tuple(sorted(top for top in tops if top.isidentifier()))
