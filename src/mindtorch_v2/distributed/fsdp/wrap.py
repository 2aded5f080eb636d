"""Which modules FullyShardedDataParallel wraps by themselves: policies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import mindtorch_v2 as torch

__all__ = ["CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "enable_wrap", "lambda_auto_wrap_policy", "size_based_auto_wrap_policy", "transformer_auto_wrap_policy", "wrap"]  # fmt: skip

nn = torch.nn


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Every module."""
    return True


class _Policy:
    def chosen(self, root: Any) -> dict[Any, dict[str, Any]]:
        """The modules below a root, and options of each."""
        raise NotImplementedError


class ModuleWrapPolicy(_Policy):
    """All modules of some classes."""

    def __init__(self, module_classes: Iterable[type]) -> None:
        self._module_classes = frozenset(module_classes)
        self._module_classes_str = str(set(self._module_classes))

    def chosen(self, root: Any) -> dict[Any, dict[str, Any]]:
        return {
            module: {}
            for module in root.modules()
            if module is not root and isinstance(module, tuple(self._module_classes))
        }

    def __call__(self, module: Any, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return recurse or isinstance(module, tuple(self._module_classes))

    def __repr__(self) -> str:
        return f"ModuleWrapPolicy({self._module_classes_str})"


class CustomPolicy(_Policy):
    """The modules for which a function gives True, or a dict of options. ValueError for anything else that it gives."""

    def __init__(self, lambda_fn: Callable[[Any], Any]) -> None:
        self._lambda_fn = lambda_fn

    def chosen(self, root: Any) -> dict[Any, dict[str, Any]]:
        found = {}
        for module in root.modules():
            said = self._lambda_fn(module)
            if not isinstance(said, (dict, bool)):
                raise ValueError(f"The lambda_fn passed to CustomPolicy should return False/True or a kwarg dict, but it returned {said}")  # fmt: skip
            if said and module is not root:
                found[module] = said if isinstance(said, dict) else {}
        return found


def lambda_auto_wrap_policy(module: Any, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable) -> bool:
    """The modules for which a function gives True."""
    return recurse or lambda_fn(module)


def transformer_auto_wrap_policy(
    module: Any, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: set[type]
) -> bool:
    """The modules of some classes."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def _or_policy(module: Any, recurse: bool, nonwrapped_numel: int, policies: Iterable[Callable]) -> bool:
    return any(policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for policy in policies)


def size_based_auto_wrap_policy(
    module: Any,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = int(1e8),
    force_leaf_modules: set[type] | None = None,
    exclude_wrap_modules: set[type] | None = None,
) -> bool:
    """The modules with at least `min_num_params` elements that no module below them has taken."""
    leaves = force_leaf_modules or {nn.MultiheadAttention}
    excluded = exclude_wrap_modules or {nn.ModuleList, nn.ModuleDict}
    large = nonwrapped_numel >= min_num_params
    if recurse:
        return large and not isinstance(module, tuple(leaves))
    return large and not isinstance(module, tuple(excluded))


size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES = {nn.ModuleList, nn.ModuleDict}  # type: ignore[attr-defined]
size_based_auto_wrap_policy.FORCE_LEAF_MODULES = {nn.MultiheadAttention}  # type: ignore[attr-defined]


def modules_to_wrap(root: Any, policy: Any, ignored: set) -> dict[Any, dict[str, Any]]:
    """The modules below a root that a policy chooses, those further below first, and options of each."""
    if isinstance(policy, _Policy):
        found = policy.chosen(root)
        order = [module for module in root.modules() if module in found]
        return {module: found[module] for module in reversed(order) if module not in ignored}
    chosen: dict[Any, dict[str, Any]] = {}

    def visit(module: Any) -> int:
        size = sum(p.numel() for p in module.parameters())
        if module in ignored or not policy(module=module, recurse=True, nonwrapped_numel=size):
            return 0
        taken = sum(visit(child) for child in module.children())
        if module is not root and policy(module=module, recurse=False, nonwrapped_numel=size - taken):
            chosen.setdefault(module, {})
            return size
        return taken

    visit(root)
    return chosen


class _Wrapping:
    stack: list[tuple[Any, dict[str, Any]]] = []


@contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Iterator[None]:
    """Inside, `wrap` wraps modules in this class."""
    _Wrapping.stack.append((wrapper_cls, wrapper_kwargs))
    try:
        yield
    finally:
        _Wrapping.stack.pop()


def wrap(module: Any, **wrap_overrides: Any) -> Any:
    """The module in the class of `enable_wrap`; outside of one, as it is."""
    if not _Wrapping.stack:
        return module
    made, options = _Wrapping.stack[-1]
    return made(module, **{**options, **wrap_overrides})


def _wrap_module_cls_individually(module: Any, module_classes: Any, recurse: bool, *args: Any, **kwargs: Any) -> bool:
    return recurse or isinstance(module, tuple(module_classes))
