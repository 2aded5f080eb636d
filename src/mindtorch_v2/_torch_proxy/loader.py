"""The loaders: of tier 1, one module object under two names; of tiers 2 and 3, modules that are made of a table.

Note [Alias]
The import system sets `__spec__` on whatever module a loader creates. A loader that created the real module would thus
overwrite its spec, and `importlib.reload` and `python -m` would look for the wrong name. So the loader lets the import
system create an empty module, and `exec_module` replaces it in `sys.modules`, which is where the import system reads
its result.

Note [Hidden modules]
A package may put a function in the place of the module that has it: `torch.autograd.gradcheck`. The import system, which sets a
submodule on its package when it loads it, would set the module again with the first `import torch.autograd.gradcheck`. So a
module that is hidden like that is served as loaded already.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import CodeType, ModuleType

from mindtorch_v2._generated.proxy import index


class AliasLoader:
    """Loads `torch.X` by importing the real module and giving that very object."""

    def __init__(self, real: str) -> None:
        self.real = real

    def create_module(self, spec: object) -> None:
        """None: the import system makes the placeholder of Note [Alias]."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the real module in the place of `module`."""
        name, real = module.__name__, importlib.import_module(self.real)
        sys.modules[name] = real
        for attribute, value in list(vars(real).items()):  # Note [Hidden modules]
            hidden = sys.modules.get(f"{self.real}.{attribute}")
            if hidden is not None and hidden is not value and not isinstance(value, ModuleType):
                sys.modules.setdefault(f"{name}.{attribute}", hidden)

    def get_code(self, fullname: str) -> CodeType | None:
        """The code of the real module, for `python -m`."""
        spec = importlib.util.find_spec(self.real)
        get_code = getattr(spec.loader, "get_code", None) if spec is not None else None
        return None if get_code is None else get_code(self.real)

    def get_source(self, fullname: str) -> str | None:
        """The source of the real module, for `inspect` and tracebacks."""
        spec = importlib.util.find_spec(self.real)
        get_source = getattr(spec.loader, "get_source", None) if spec is not None else None
        return None if get_source is None else get_source(self.real)

    def is_package(self, fullname: str) -> bool:
        """Whether the real module is a package."""
        spec = importlib.util.find_spec(self.real)
        return spec is not None and spec.submodule_search_locations is not None

    def __repr__(self) -> str:
        return f"AliasLoader({self.real!r})"


class StubLoader:
    """Loads `torch.<name>` from its row of the table."""

    def __init__(self, name: str) -> None:
        self.name = name

    def create_module(self, spec: object) -> None:
        """None: the import system makes the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its names."""
        from .making import fill

        fill(self.name, vars(module))

    def is_package(self, fullname: str) -> bool:
        """Whether modules may be below it."""
        return self.name in index.PACKAGES

    def get_source(self, fullname: str) -> str:
        """What stands for the source that there is not: what the module is."""
        from .making import document

        return f'"""{document(self.name)}"""\n'

    def get_code(self, fullname: str) -> CodeType:
        """The code of that, for `python -m`, which does nothing."""
        return compile(self.get_source(fullname), f"<{fullname}>", "exec")

    def __repr__(self) -> str:
        return f"StubLoader({self.name!r})"
