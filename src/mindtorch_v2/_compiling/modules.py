"""`torch.compile` of a module: a module around it, as programs expect that look for `_orig_mod`; it computes what the module does."""

from __future__ import annotations

from typing import Any

from ..nn.modules.module import Module
from .choice import Compiled

_INNER = "_orig_mod"
_COMPILED = "_compiled"


class OptimizedModule(Module):
    """Stands for the module `_orig_mod`: calls, attributes and the mode of training are that module's."""

    def __init__(self, mod: Module, dynamo_ctx: Any = None) -> None:
        super().__init__()
        self._modules[_INNER] = mod
        self.__dict__[_COMPILED] = Compiled(mod)

    @property
    def training(self) -> bool:
        """Whether the module is in training mode."""
        return self._orig_mod.training

    @training.setter
    def training(self, mode: bool) -> None:
        inner = self.__dict__.get("_modules", {}).get(_INNER)
        if inner is not None:
            inner.training = mode

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__dict__[_COMPILED](*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        return self.__dict__[_COMPILED](*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        modules = self.__dict__.get("_modules", {})
        if name == _INNER:
            if _INNER not in modules:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return modules[_INNER]
        return getattr(modules[_INNER], name) if _INNER in modules else super().__getattr__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        modules = self.__dict__.get("_modules", {})
        if name in _OWN or _INNER not in modules:
            super().__setattr__(name, value)
        else:
            setattr(modules[_INNER], name, value)

    def __delattr__(self, name: str) -> None:
        if name in _OWN:
            super().__delattr__(name)
        else:
            delattr(self._orig_mod, name)

    def __len__(self) -> int:
        return len(self._orig_mod)  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        return OptimizedModule, (self._orig_mod,)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})


OptimizedModule.__module__ = "torch._dynamo.eval_frame"
_OWN = frozenset({"training", _INNER, _COMPILED, *vars(OptimizedModule(Module()))})
"""What is the wrapper's own: its tables of hooks, parameters and modules, and the mode, which goes to the module by itself."""
