"""Tensors and submodules of a module by their dotted names, got, set, taken away and swapped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any

import mindtorch_v2 as torch

__all__ = ["NamedMemberAccessor", "set_tensor", "swap_submodule", "swap_tensor"]

_MISSING: Any = object()


def _owned(module: Any, name: str) -> tuple[Any, str | None]:
    """The tensor of a name without dots, and in which dict it is; `_MISSING` if there is none.

    Raises:
        TypeError: if the name is another attribute's.
    """
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if not name:
        raise KeyError('tensor name can\'t be empty string ""')
    for kind in ("_parameters", "_buffers"):
        if name in getattr(module, kind):
            return getattr(module, kind)[name], kind
    found = getattr(module, name, _MISSING)
    if found is not _MISSING and not isinstance(found, torch.Tensor):
        raise TypeError(f"{found} is not an instance of torch.Tensor")
    return found, None


def set_tensor(module: Any, name: str, tensor: Any) -> None:
    """Put `tensor` at the name, in the place of a parameter or buffer or as an attribute."""
    swap_tensor(module, name, tensor, allow_missing=True)


def swap_tensor(module: Any, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Put `tensor` at the name, and give what was there.

    `allow_missing`: nothing need be there (a sentinel is given then), and nothing is there afterwards if `tensor` is that sentinel.

    Raises:
        AttributeError: if nothing is there.
        TypeError: if what is there, or `tensor`, is no tensor.
    """
    former, kind = _owned(module, name)
    if former is _MISSING and not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    if tensor is not _MISSING and tensor is not None and not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    if tensor is _MISSING:
        if kind is not None:
            del getattr(module, kind)[name]
        elif former is not _MISSING:
            delattr(module, name)
    elif kind is not None:
        getattr(module, kind)[name] = tensor  # a plain tensor may stand for a parameter
    else:
        setattr(module, name, tensor)
    return former


def swap_submodule(module: Any, name: str, submodule: Any) -> Any:
    """Put another submodule at a name without dots, and give the one that was there.

    Raises:
        KeyError: if there is none of that name.
        TypeError: if one of them is no module.
    """
    for one in (module, submodule):
        if not isinstance(one, torch.nn.Module):
            raise TypeError(f"{one} is not an instance of torch.nn.Module")
    if "." in name:
        raise KeyError('submodule name can\'t contain "."')
    if not name:
        raise KeyError('submodule name can\'t be empty string ""')
    if name not in module._modules:
        raise KeyError(f"submodule {name} does not exist")
    former = module._modules[name]
    module._modules[name] = submodule
    return former


class NamedMemberAccessor:
    """Members of `module`, and of the modules in it, by dotted names."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.memo: dict[str, Any] = {}

    def get_submodule(self, name: str) -> Any:
        """The submodule. AttributeError if there is none."""
        if not name:
            return self.module
        if name not in self.memo:
            parent, _, last = name.rpartition(".")
            owner = self.get_submodule(parent)
            found = getattr(owner, last, None)
            if not isinstance(found, torch.nn.Module):
                raise AttributeError(f"{owner._get_name()} has no attribute `{last}`")
            self.memo[name] = found
        return self.memo[name]

    def swap_submodule(self, path: str, value: Any) -> Any:
        """Put another submodule there, and give the former."""
        parent, _, last = path.rpartition(".")
        for known in [one for one in self.memo if one == path or one.startswith(f"{path}.")]:
            del self.memo[known]
        return swap_submodule(self.get_submodule(parent), last, value)

    def get_tensor(self, name: str) -> Any:
        """The parameter, buffer or tensor. AttributeError if there is none."""
        parent, _, last = name.rpartition(".")
        owner = self.get_submodule(parent)
        found, _ = _owned(owner, last)
        if found is _MISSING:
            raise AttributeError(f"{owner._get_name()} has no attribute `{last}`")
        return found

    def set_tensor(self, name: str, value: Any) -> None:
        """Put a tensor there."""
        parent, _, last = name.rpartition(".")
        set_tensor(self.get_submodule(parent), last, value)

    def del_tensor(self, name: str) -> None:
        """Take the tensor away. AttributeError if there is none."""
        self.get_tensor(name)
        self.swap_tensor(name, _MISSING, allow_missing=True)

    def swap_tensor(self, name: str, value: Any, allow_missing: bool = False) -> Any:
        """Put a tensor there, and give the former."""
        parent, _, last = name.rpartition(".")
        return swap_tensor(self.get_submodule(parent), last, value, allow_missing=allow_missing)

    def get_tensors(self, names: Iterable[str]) -> list[Any]:
        """`get_tensor` of each name."""
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names: Iterable[str], values: Iterable[Any]) -> None:
        """`set_tensor` of each name and value, of which there must be equally many."""
        for name, value in zip([*names], [*values], strict=True):
            self.set_tensor(name, value)

    def set_tensors_dict(self, named_tensors: dict[str, Any]) -> None:
        """`set_tensor` of each item."""
        for name, value in named_tensors.items():
            self.set_tensor(name, value)

    def del_tensors(self, names: Iterable[str]) -> None:
        """`del_tensor` of each name."""
        for name in names:
            self.del_tensor(name)

    def swap_tensors(self, names: Iterable[str], values: Iterable[Any], allow_missing: bool = False) -> list[Any]:
        """`swap_tensor` of each name and value, of which there must be equally many."""
        return [
            self.swap_tensor(name, value, allow_missing=allow_missing)
            for name, value in zip([*names], [*values], strict=True)
        ]

    def swap_tensors_dict(
        self, named_tensors: dict[str, Any], allow_missing: bool = False
    ) -> tuple[dict[str, Any], list[str]]:
        """`swap_tensor` of each item: the former tensors by name, and the names that were missing.

        Raises:
            RuntimeError: with the missing names, unless they are allowed.
        """
        former: dict[str, Any] = {}
        missing: list[str] = []
        with ExitStack() as undo:
            for name, value in named_tensors.items():
                try:
                    former[name] = self.swap_tensor(name, value, allow_missing=True)
                except AttributeError:
                    former[name] = _MISSING
                else:
                    undo.callback(self.swap_tensor, name, former[name], allow_missing=True)
                if former[name] is _MISSING:
                    missing.append(name)
            if missing and not allow_missing:
                raise RuntimeError(f"Missing key(s): {', '.join(map(repr, missing))}.")
            undo.pop_all()
        return former, missing

    def check_keys(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """The names of tensors that `keys` lacks, and those of `keys` that no tensor has."""
        given = set(keys)
        known = {name for name, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(known - given), sorted(given - known)

    def named_parameters(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """The module's parameters by name."""
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """The module's buffers by name."""
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """Parameters, then buffers, by name."""
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """The modules by name, this one as ""."""
        yield from self.module.named_modules(remove_duplicate=remove_duplicate)
