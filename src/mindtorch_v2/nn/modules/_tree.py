"""Walking over a module's tree: members by name, submodules by path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

from ..._tensor import Tensor
from ..parameter import Parameter

if TYPE_CHECKING:
    from .module import Module


class TreeMethods:
    """The part of :class:`Module` that lists and finds submodules, parameters and buffers."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]  # Any, since programs resolve the annotations of Module's subclasses

    if TYPE_CHECKING:  # of Module

        def _get_name(self) -> str: ...

    def _child(self, name: str) -> Module:
        if not hasattr(self, name):
            raise AttributeError(f"{self._get_name()} has no attribute `{name}`")
        child = getattr(self, name)
        if not isinstance(child, TreeMethods):
            raise AttributeError(f"`{name}` is not an nn.Module")
        return cast("Module", child)

    def get_submodule(self, target: str) -> Module:
        """The submodule at the dotted path ``target``; the module itself for ''. Raises AttributeError."""
        module: Any = self
        if target:
            for name in target.split("."):
                module = TreeMethods._child(module, name)
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put ``module`` at the dotted path ``target``; with ``strict`` there must be a module already."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        *path, name = target.split(".")
        if not isinstance(module, TreeMethods):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        parent = self.get_submodule(".".join(path)) if path else self
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), TreeMethods):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at the dotted path ``target``. Raises AttributeError."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        param = getattr(module, name)
        if not isinstance(param, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return param

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at the dotted path ``target``. Raises AttributeError."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return getattr(module, name)

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """Names and members of the module and, with ``recurse``, of its submodules; each member once."""
        seen: set[Any] = set()
        modules: Any
        if recurse:
            modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        else:
            modules = [(prefix, self)]
        for path, module in modules:
            for name, member in get_members_fn(module):
                if member is None or member in seen:
                    continue
                if remove_duplicate:
                    seen.add(member)
                yield (f"{path}.{name}" if path else name), member

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once."""
        if type(self).named_parameters is TreeMethods.named_parameters:
            return self._members("_parameters", recurse)
        return (param for _, param in self.named_parameters(recurse=recurse))

    def _members(self, kind: str, recurse: bool) -> Iterator[Any]:
        """What `_named_members` gives, without names."""
        seen: set[Any] = set()
        for module in self.modules() if recurse else (self,):
            for member in getattr(module, kind).values():
                if member is not None and member not in seen:
                    seen.add(member)
                    yield member

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their dotted names."""
        return self._named_members(
            lambda module: module._parameters.items(),
            prefix=prefix,
            recurse=recurse,
            remove_duplicate=remove_duplicate,
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once."""
        if type(self).named_buffers is TreeMethods.named_buffers:
            return self._members("_buffers", recurse)
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their dotted names."""
        return self._named_members(
            lambda module: module._buffers.items(),
            prefix=prefix,
            recurse=recurse,
            remove_duplicate=remove_duplicate,
        )

    def children(self) -> Iterator[Module]:
        """The direct submodules, each once."""
        if type(self).named_children is not TreeMethods.named_children:
            yield from (module for _, module in self.named_children())
            return
        seen: set[Any] = set()
        for module in self._modules.values():
            if module is not None and module not in seen:
                seen.add(module)
                yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct submodules with their names."""
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """The module itself and all below it."""
        return (module for _, module in self.named_modules(remove_duplicate=remove_duplicate))

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """The module itself and all below it, with dotted names; the own name is ``prefix``.

        Submodules with a `named_modules` of their own are asked for it.
        """
        if memo is None:
            memo = set()
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, cast("Module", self)
        path = prefix
        below = iter(self._modules.items())
        above = []
        while True:
            for name, module in below:
                if module is None:
                    continue
                here = f"{path}.{name}" if path else name
                if type(module).named_modules is not TreeMethods.named_modules:
                    yield from module.named_modules(memo, here, remove_duplicate)
                elif module not in memo:
                    if remove_duplicate:
                        memo.add(module)
                    yield here, module
                    if module._modules:
                        above.append((path, below))
                        path, below = here, iter(module._modules.items())
                        break
            else:
                if not above:
                    return
                path, below = above.pop()
