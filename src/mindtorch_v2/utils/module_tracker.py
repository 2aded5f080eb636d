"""Which modules run at present, forward or backward."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from ..autograd.graph import register_multi_grad_hook
from ..nn.modules.module import Module, register_module_forward_hook, register_module_forward_pre_hook
from ._pytree import tree_leaves

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """Inside the context, `parents` holds the names of the modules that run, "Global" first; `is_bw` says whether it is a backward pass.

    The name of a module is its class's for what was called first, and that with the path behind it for its members.
    """

    def __init__(self) -> None:
        self.parents: set[str] = {"Global"}
        self._names: weakref.WeakKeyDictionary[Module, str] = weakref.WeakKeyDictionary()
        self._handles: list[Any] = []
        self._backward = False

    @property
    def is_bw(self) -> bool:
        return self._backward

    def _name(self, module: Module) -> str:
        if module not in self._names:
            root = type(module).__name__
            for path, member in module.named_modules():
                self._names[member] = f"{root}.{path}" if path else root
        return self._names[module]

    def _pusher(self, name: str, backward: bool) -> Callable[..., None]:
        def push(*args: Any) -> None:
            self._backward = self._backward or backward
            self.parents.add(name)

        return push

    def _popper(self, name: str) -> Callable[..., None]:
        def pop(*args: Any) -> None:
            self.parents.discard(name)
            self._backward = self._backward and len(self.parents) > 1

        return pop

    def _before(self, module: Module, args: Any) -> None:
        name = self._name(module)
        self.parents.add(name)
        self._watch(args, self._popper(name))

    def _after(self, module: Module, args: Any, output: Any) -> None:
        name = self._name(module)
        self.parents.discard(name)
        self._watch(output, self._pusher(name, True))

    def _watch(self, values: Any, hook: Callable[..., None]) -> None:
        tensors = [value for value in tree_leaves(values) if isinstance(value, Tensor) and value.requires_grad]
        if tensors:
            self._handles.append(register_multi_grad_hook(tensors, hook, mode="any"))

    def __enter__(self) -> ModuleTracker:
        self._handles = [register_module_forward_pre_hook(self._before), register_module_forward_hook(self._after)]
        return self

    def __exit__(self, *exc: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []
