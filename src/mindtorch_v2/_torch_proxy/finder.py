"""The meta-path finder that owns `torch`, `torch.*` and what PyTorch installs beside it, and nothing else.

Note [No second copy]
After a finder that answers None the import system asks the next one, and the ordinary path finder would look into
`torch.__path__`, which is the path of mindtorch_v2: it would load `mindtorch_v2/_state.py` once more under the name
`torch._state`. So for a name that is not served but whose file exists there, the finder raises instead of passing on.

Finder and loaders are no subclasses of importlib.abc's classes, which take longer to import than all of this.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING

import mindtorch_v2
from mindtorch_v2._generated.proxy import index

from . import naming, spawn
from .loader import AliasLoader, StubLoader

if TYPE_CHECKING:  # each is imported with the first question of its kind
    from importlib.metadata import DistributionFinder

    from .metadata import TorchDistribution

PACKAGE = naming.PACKAGE
TABLE = index.__file__.replace("index.py", "table.py")


def real_name(name: str) -> str | None:
    """The module of mindtorch_v2 that serves `torch.<name>` as tier 1, or None; it need not exist."""
    if name in index.STUBS:
        return None
    if name in index.ALIASES:
        return f"{PACKAGE}.{index.ALIASES[name]}"
    head = name.partition(".")[0]
    return f"{PACKAGE}.{name}" if head in index.TREES else None


def companion(name: str) -> str | None:
    """The module of mindtorch_v2 that serves a module beside torch, or None: of another name, and where there is no NPU."""
    head, rest = name, ""
    while head not in index.COMPANIONS:
        head, dot, last = head.rpartition(".")
        if not dot:
            return None
        rest = f".{last}{rest}"
    return f"{PACKAGE}.{index.COMPANIONS[head]}{rest}" if mindtorch_v2.npu.is_available() else None


class ProxyFinder:
    """Finds the modules and the package metadata of torch."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of `fullname`, or None when it is not below torch or torch has no such module."""
        if fullname == "torch":
            return self._alias(fullname, PACKAGE)
        if fullname == spawn.WATCHED:
            return spawn.find_spec(fullname, path, self)
        if fullname in index.BESIDE:
            return self._stub(fullname, fullname)
        if fullname.partition(".")[0] in index.COMPANIONS:
            real = companion(fullname)
            return None if real is None else self._alias(fullname, real)
        if not fullname.startswith("torch."):
            return naming.find_spec(fullname, path) if fullname.startswith(f"{PACKAGE}.") else None
        name = fullname.removeprefix("torch.")
        if name in index.STUBS:
            return self._stub(fullname, name)
        real = real_name(name)
        spec = None if real is None else self._alias(fullname, real)
        if spec is None and path is not None and PathFinder.find_spec(fullname, path) is not None:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)  # Note [No second copy]
        return spec

    def _stub(self, fullname: str, name: str) -> ModuleSpec:
        spec = ModuleSpec(fullname, StubLoader(name), origin=TABLE, is_package=name in index.PACKAGES)
        spec.has_location = True
        return spec

    def _alias(self, fullname: str, real: str) -> ModuleSpec | None:
        spec = importlib.util.find_spec(real)
        if spec is None:
            return None
        alias = ModuleSpec(fullname, AliasLoader(real), origin=spec.origin)
        alias.has_location = spec.has_location
        if spec.submodule_search_locations is not None:
            alias.submodule_search_locations = list(spec.submodule_search_locations)
        return alias

    def find_distributions(self, context: DistributionFinder.Context | None = None) -> Iterator[TorchDistribution]:
        """The metadata of the distributions torch and, where there is an NPU, torch_npu, when they or every distribution are asked for."""
        name = None if context is None or context.name is None else context.name.lower().replace("-", "_")
        if name is None or name == "torch" or (name in index.COMPANIONS and companion(name) is not None):
            from .metadata import TorchDistribution

            yield TorchDistribution(name or "torch")

    def invalidate_caches(self) -> None:
        """Nothing is cached."""
