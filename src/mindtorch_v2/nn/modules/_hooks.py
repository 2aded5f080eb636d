"""Hooks of modules: the global ones, the registering methods, and the slow way to call a module that has some."""

from __future__ import annotations

import functools
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..._tensor import Tensor
from ...utils.hooks import RemovableHandle
from ._functions import BackwardHook

if TYPE_CHECKING:
    from .module import Module

_global_buffer_registration_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_module_registration_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_parameter_registration_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_backward_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_backward_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_forward_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_forward_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_forward_hooks_always_called: OrderedDict[int, bool] = OrderedDict()
_global_forward_hooks_with_kwargs: OrderedDict[int, bool] = OrderedDict()
_global_is_full_backward_hook: bool | None = None

_CALL_HOOKS = (_global_backward_pre_hooks, _global_backward_hooks, _global_forward_hooks, _global_forward_pre_hooks)


def _has_any_global_hook() -> bool:
    """Whether a call of any module has to run global hooks."""
    return any(_CALL_HOOKS)


class _WrappedHook:
    """A hook that knows its module by a weak reference, so that registering it makes no reference cycle."""

    def __init__(self, hook: Callable, module: Any = None) -> None:
        self.hook = hook
        functools.update_wrapper(self, hook)
        self.with_module = module is not None
        if module is not None:
            self.module = weakref.ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        state = {"hook": self.hook, "with_module": self.with_module}
        if self.with_module:
            state["module"] = self.module()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.hook = state["hook"]
        self.with_module = state["with_module"]
        if self.with_module:
            if state["module"] is None:
                raise RuntimeError("You are trying to revive the hook of a dead Module!")
            self.module = weakref.ref(state["module"])


def _register(
    hooks: OrderedDict[int, Any], hook: Any, *flags: OrderedDict[int, Any], prepend: bool = False
) -> RemovableHandle:
    """Put ``hook`` into ``hooks`` and its id into each of ``flags``; the handle removes it from all."""
    handle = RemovableHandle(hooks, extra_dict=list(flags) if flags else None)
    hooks[handle.id] = hook
    for flag in flags:
        flag[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_module_buffer_registration_hook(hook: Callable[..., Tensor | None]) -> RemovableHandle:
    """Call ``hook(module, name, buffer)`` whenever a buffer is registered; its result replaces the buffer."""
    return _register(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Callable[..., Module | None]) -> RemovableHandle:
    """Call ``hook(module, name, submodule)`` whenever a submodule is registered; its result replaces the submodule."""
    return _register(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, param)`` whenever a parameter is registered; its result replaces the parameter."""
    return _register(_global_parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, args)`` before the forward of every module."""
    return _register(_global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args, output)`` (``args, kwargs, output`` with ``with_kwargs``) after every module's forward."""
    flags = []
    if with_kwargs:
        flags.append(_global_forward_hooks_with_kwargs)
    if always_call:
        flags.append(_global_forward_hooks_always_called)
    return _register(_global_forward_hooks, hook, *flags)


def _claim_global_kind(full: bool) -> None:
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
            "Please use only one of them."
        )
    _global_is_full_backward_hook = full


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """The former, non-full kind of :func:`register_module_full_backward_hook`."""
    _claim_global_kind(full=False)
    return _register(_global_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` before the gradients of every module are computed."""
    return _register(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` when the gradients of a module's inputs are known."""
    _claim_global_kind(full=True)
    return _register(_global_backward_hooks, hook)


class HookMethods:
    """The part of :class:`Module` that keeps its hooks."""

    forward: Callable[..., Any]
    _backward_pre_hooks: OrderedDict[int, Callable]
    _backward_hooks: OrderedDict[int, Callable]
    _is_full_backward_hook: bool | None
    _forward_hooks: OrderedDict[int, Callable]
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _forward_pre_hooks: OrderedDict[int, Callable]
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` before the gradients are computed; its result replaces ``grad_output``."""
        return _register(self._backward_pre_hooks, hook, prepend=prepend)

    def _claim_kind(self, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. "
                "Please use only one of them."
            )
        self._is_full_backward_hook = full

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The former, non-full kind of :meth:`register_full_backward_hook`: it hooks the node of the output."""
        self._claim_kind(full=False)
        return _register(self._backward_hooks, hook)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when the inputs' gradients are known; its result replaces them."""
        self._claim_kind(full=True)
        return _register(self._backward_hooks, hook, prepend=prepend)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before ``forward``; a result replaces the arguments.

        With ``with_kwargs`` it is ``hook(module, args, kwargs)``, and a result is the pair of both.
        """
        flags = (self._forward_pre_hooks_with_kwargs,) if with_kwargs else ()
        return _register(self._forward_pre_hooks, hook, *flags, prepend=prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after ``forward``; a result replaces the output.

        ``with_kwargs`` puts the keyword arguments between the two; ``always_call`` runs it when ``forward`` failed too.
        """
        flags = []
        if with_kwargs:
            flags.append(self._forward_hooks_with_kwargs)
        if always_call:
            flags.append(self._forward_hooks_always_called)
        return _register(self._forward_hooks, hook, *flags, prepend=prepend)

    def _get_backward_hooks(self) -> tuple[list[Callable], list[Callable]]:
        """The full and the non-full backward hooks, global ones first."""
        full: list[Callable] = []
        regular: list[Callable] = []
        if _global_is_full_backward_hook is not None:
            (full if _global_is_full_backward_hook else regular).extend(_global_backward_hooks.values())
        if self._is_full_backward_hook is not None:
            (full if self._is_full_backward_hook else regular).extend(self._backward_hooks.values())
        return full, regular

    def _get_backward_pre_hooks(self) -> list[Callable]:
        return [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]

    def _maybe_warn_non_full_backward_hook(self, inputs: Any, result: Any, grad_fn: Any) -> None:
        """Warn when a non-full backward hook cannot see all gradients."""
        advice = "Please use register_full_backward_hook to get the documented behavior."
        problem = None
        outputs = (result,) if isinstance(result, Tensor) else result
        given = (inputs,) if isinstance(inputs, Tensor) else inputs
        if not (isinstance(outputs, tuple) and all(isinstance(value, Tensor) for value in outputs)):
            problem = (
                "Using non-full backward hooks on a Module that does not return a single Tensor or a tuple of Tensors "
                "is deprecated and will be removed in future versions. This hook will be missing some of the "
                f"grad_output. {advice}"
            )
        elif not (isinstance(given, tuple) and all(isinstance(value, Tensor) for value in given)):
            problem = (
                "Using non-full backward hooks on a Module that does not take as input a single Tensor or a tuple of "
                "Tensors is deprecated and will be removed in future versions. This hook will be missing some of the "
                f"grad_input. {advice}"
            )
        elif any(value.grad_fn is not grad_fn for value in outputs if value.grad_fn is not None):
            problem = (
                "Using a non-full backward hook when outputs are generated by different autograd Nodes is deprecated "
                f"and will be removed in future versions. This hook will be missing some grad_output. {advice}"
            )
        else:
            inner = {value.grad_fn for value in given if value.grad_fn is not None}
            if {node for node, _ in grad_fn.next_functions} != inner:
                problem = (
                    "Using a non-full backward hook when the forward contains multiple autograd Nodes is deprecated "
                    f"and will be removed in future versions. This hook will be missing some grad_input. {advice}"
                )
        if problem is not None:
            warnings.warn(problem, FutureWarning, stacklevel=2)

    def _run_pre_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        for key, hook in (*_global_forward_pre_hooks.items(), *self._forward_pre_hooks.items()):
            if key in self._forward_pre_hooks_with_kwargs:
                changed = hook(self, args, kwargs)
                if changed is None:
                    continue
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}."
                    )
                args, kwargs = changed
            else:
                changed = hook(self, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        return args, kwargs

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call ``forward`` with all hooks around it."""
        result: Any = None
        called: set[int] = set()
        try:
            full: list[Callable] = []
            regular: list[Callable] = []
            pre: list[Callable] = []
            if self._backward_pre_hooks or _global_backward_pre_hooks:
                pre = self._get_backward_pre_hooks()
            if self._backward_hooks or _global_backward_hooks:
                full, regular = self._get_backward_hooks()
            args, kwargs = self._run_pre_hooks(args, kwargs)

            backward_hook = BackwardHook(self, full, pre) if full or pre else None
            if backward_hook is not None:
                args = backward_hook.setup_input_hook(args)
            result = self.forward(*args, **kwargs)

            for key, hook in (*_global_forward_hooks.items(), *self._forward_hooks.items()):
                if key in self._forward_hooks_always_called or key in _global_forward_hooks_always_called:
                    called.add(key)
                result = self._run_forward_hook(key, hook, args, kwargs, result)

            if backward_hook is not None:
                if not isinstance(result, (Tensor, tuple)):
                    warnings.warn(
                        "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors "
                        f"but received {type(result)}",
                        stacklevel=3,
                    )
                result = backward_hook.setup_output_hook(result)
            if regular:
                self._hook_output_node(regular, args, result)
            return result
        except Exception:  # whatever it is: hooks that must always run come first, then it is raised again
            self._run_remaining_hooks(called, args, kwargs, result)
            raise

    def _hook_output_node(self, hooks: list[Callable], args: tuple[Any, ...], result: Any) -> None:
        """Put non-full backward hooks on the node that made the (first) output."""
        output = result
        while not isinstance(output, Tensor):
            if isinstance(output, dict):
                output = next(value for value in output.values() if isinstance(value, Tensor))
            else:
                output = output[0]
        node = output.grad_fn
        if node is not None:
            for hook in hooks:
                node.register_hook(_WrappedHook(hook, self))
            self._maybe_warn_non_full_backward_hook(args, result, node)

    def _run_forward_hook(self, key: int, hook: Callable[..., Any], args: Any, kwargs: Any, result: Any) -> Any:
        """Call a hook; gives what it puts in place of the result, or the result."""
        if key in self._forward_hooks_with_kwargs or key in _global_forward_hooks_with_kwargs:
            changed = hook(self, args, kwargs, result)
        else:
            changed = hook(self, args, result)
        return result if changed is None else changed

    def _run_remaining_hooks(self, called: set[int], args: Any, kwargs: Any, result: Any) -> None:
        """After a failure: run the forward hooks that want to be called always and were not; their errors are warnings."""
        for owner, hooks, always in (
            ("global module", _global_forward_hooks, _global_forward_hooks_always_called),
            ("module", self._forward_hooks, self._forward_hooks_always_called),
        ):
            for key, hook in hooks.items():
                if key not in always or key in called:
                    continue
                try:
                    result = self._run_forward_hook(key, hook, args, kwargs, result)
                except Exception as error:  # noqa: BLE001 (any error of a hook; the first one is raised)
                    warnings.warn(
                        f"{owner} forward hook with ``always_call=True`` raised an exception that was silenced as "
                        f"another error was raised in forward: {error!s}",
                        stacklevel=3,
                    )
