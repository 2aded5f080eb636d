"""``Module``, the base of all layers and models."""

from __future__ import annotations

import copy
import copyreg
import inspect
import sys
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any

import mindtorch_v2 as torch

from ..._dispatch import native
from ..._tensor import Tensor
from ...utils.hooks import RemovableHandle
from ..parameter import Buffer, Parameter
from . import _hooks, _state_dict
from ._functions import BackwardHook
from ._hooks import (
    HookMethods,
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_buffer_registration_hooks,
    _global_forward_hooks,
    _global_forward_hooks_always_called,
    _global_forward_hooks_with_kwargs,
    _global_forward_pre_hooks,
    _global_module_registration_hooks,
    _global_parameter_registration_hooks,
    _has_any_global_hook,
    _WrappedHook,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from ._movement import MovementMethods
from ._state_dict import _EXTRA_STATE_KEY_SUFFIX, StateDictMethods, _IncompatibleKeys
from ._tree import TreeMethods

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

# The former home of these names; programs import them from here.
_COMPATIBLE = (
    BackwardHook,
    RemovableHandle,
    _EXTRA_STATE_KEY_SUFFIX,
    _IncompatibleKeys,
    _WrappedHook,
    _global_forward_hooks_always_called,
    _global_forward_hooks_with_kwargs,
    _has_any_global_hook,
)


class _Tables(types.ModuleType):
    """This module's class. Programs assign tables of global hooks here; they replace what the one table of `_hooks` holds."""

    def __setattr__(self, name: str, value: Any) -> None:
        table = getattr(_hooks, name, None) if name.startswith("_global_") else None
        if isinstance(table, dict):
            given = dict(value)
            table.clear()
            table.update(given)
        elif name == "_global_is_full_backward_hook":
            _hooks._global_is_full_backward_hook = value
        else:
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if name == "_global_is_full_backward_hook":
            return _hooks._global_is_full_backward_hook
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


sys.modules[__spec__.name].__class__ = _Tables


def _addindent(text: str, width: int) -> str:
    """``text`` with all lines but the first indented."""
    return text.replace("\n", "\n" + " " * width)


def _forward_unimplemented(self: Module, *input: Any) -> None:
    """What the module computes; every subclass defines it."""
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


class Module(HookMethods, StateDictMethods, TreeMethods, MovementMethods):
    """Base class of layers and models: keeps parameters, buffers and submodules by attribute name.

    Subclasses call ``super().__init__()`` before they assign members, and define ``forward``.
    """

    dump_patches: bool = False
    training: bool
    call_super_init: bool = False
    __dict__: dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            if kwargs:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given"
                )
        # Straight into the instance dict: __setattr__ would look up what is not there yet.
        state = self.__dict__
        state["training"] = True
        state["_parameters"] = {}
        state["_buffers"] = {}
        state["_non_persistent_buffers_set"] = set()
        state["_backward_pre_hooks"] = OrderedDict()
        state["_backward_hooks"] = OrderedDict()
        state["_is_full_backward_hook"] = None
        state["_forward_hooks"] = OrderedDict()
        state["_forward_hooks_with_kwargs"] = OrderedDict()
        state["_forward_hooks_always_called"] = OrderedDict()
        state["_forward_pre_hooks"] = OrderedDict()
        state["_forward_pre_hooks_with_kwargs"] = OrderedDict()
        state["_state_dict_hooks"] = OrderedDict()
        state["_state_dict_pre_hooks"] = OrderedDict()
        state["_load_state_dict_pre_hooks"] = OrderedDict()
        state["_load_state_dict_post_hooks"] = OrderedDict()
        state["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    forward: Callable[..., Any] = _forward_unimplemented

    # Registration

    def _check_name(self, kind: str, name: Any, members: dict[str, Any]) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {torch.typename(name)}")
        if kind != "module" and "." in name:
            raise KeyError(f'{kind} name can\'t contain "."')
        if name == "" and kind != "module":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in members and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'module name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError('module name can\'t be empty string ""')

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Make ``tensor`` a buffer: state that is no parameter. Only persistent buffers are in the state dict."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not (isinstance(tensor, Tensor) or hasattr(tensor, "__torch_function__")):
            raise TypeError(
                f"cannot assign '{torch.typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        for hook in _global_buffer_registration_hooks.values():
            replacement = hook(self, name, tensor)
            if replacement is not None:
                tensor = replacement
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Make ``param`` a parameter of this name; None keeps the name for a parameter that is absent."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is None:
            self._parameters[name] = None
            return
        if not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{torch.typename(param)}' object to parameter '{name}' "
                "(torch.nn.Parameter or None required)"
            )
        if param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. "
                f"To express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        for hook in _global_parameter_registration_hooks.values():
            replacement = hook(self, name, param)
            if replacement is not None:
                param = replacement
        self._parameters[name] = param

    def _run_module_hooks(self, name: str, module: Module | None) -> Module | None:
        for hook in _global_module_registration_hooks.values():
            replacement = hook(self, name, module)
            if replacement is not None:
                module = replacement
        return module

    def add_module(self, name: str, module: Module | None) -> None:
        """Make ``module`` a submodule of this name."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{torch.typename(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        self._modules[name] = self._run_module_hooks(name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """The same as :meth:`add_module`."""
        self.add_module(name, module)

    # Attributes

    def __getattr__(self, name: str) -> Any:
        state = self.__dict__
        for kind in ("_parameters", "_buffers", "_modules"):
            members = state.get(kind)
            if members is not None and name in members:
                return members[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _forget(self, name: str, keep: str) -> None:
        """Remove ``name`` from everywhere but the members of kind ``keep``."""
        state = self.__dict__
        state.pop(name, None)
        for kind in ("_parameters", "_buffers", "_modules"):
            if kind != keep and kind in state:
                state[kind].pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __setattr__(self, name: str, value: Any) -> None:
        state = self.__dict__
        params = state.get("_parameters")
        # The isinstance checks of Parameter and Buffer cost a Python call, so tensors are sorted out first.
        is_tensor = isinstance(value, Tensor)
        if is_tensor and isinstance(value, Parameter):
            if params is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, keep="_parameters")
            self.register_parameter(name, value)
            return
        if params is not None and name in params:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{torch.typename(value)}' as parameter '{name}' "
                    "(torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
            return
        modules = state.get("_modules")
        if isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, keep="_modules")
            modules[name] = self._run_module_hooks(name, value) if _global_module_registration_hooks else value
            return
        if modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{torch.typename(value)}' as child module '{name}' "
                    "(torch.nn.Module or None expected)"
                )
            modules[name] = self._run_module_hooks(name, value)
            return
        buffers = state.get("_buffers")
        marked = is_tensor and isinstance(value, Buffer)
        if not marked and (buffers is None or name not in buffers):
            super().__setattr__(name, value)
            return
        self._set_buffer(name, value, marked)

    def _set_buffer(self, name: str, value: Any, marked: bool) -> None:
        persistent = value.persistent if marked else name not in self._non_persistent_buffers_set
        if value is not None and not (isinstance(value, Tensor) or hasattr(value, "__torch_function__")):
            raise TypeError(
                f"cannot assign '{torch.typename(value)}' as buffer '{name}' "
                "(torch.nn.Buffer, torch.Tensor or None expected)"
            )
        # Subclasses may have a register_buffer from the time when all buffers were persistent.
        if getattr(self.register_buffer, "__func__", None) is Module.register_buffer:
            self.register_buffer(name, value, persistent)
        elif "persistent" in inspect.signature(self.register_buffer).parameters:
            self.register_buffer(name, value, persistent)
        elif persistent:
            self.register_buffer(name, value)
        else:
            raise RuntimeError(
                "Registering a non-persistent buffer on a Module subclass that implements register_buffer() without "
                "the persistent argument is not allowed."
            )

    def __delattr__(self, name: str) -> None:
        for kind in ("_parameters", "_buffers", "_modules"):
            members = self.__dict__.get(kind, {})
            if name in members:
                del members[name]
                if kind == "_buffers":
                    self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        return sorted(name for name in names if not name[0].isdigit())

    # Calling

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # The same as _call_impl, without another frame: calls of modules without hooks are the common case.
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        if (
            self._backward_hooks
            or self._backward_pre_hooks
            or self._forward_hooks
            or self._forward_pre_hooks
            or _global_backward_pre_hooks
            or _global_backward_hooks
            or _global_forward_hooks
            or _global_forward_pre_hooks
        ):
            return self._call_with_hooks(args, kwargs)
        return self.forward(*args, **kwargs)

    _wrapped_call_impl = __call__
    _compiled_call_impl: Any = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # A class that replaces the implementation of calls is called by it.
        if "_call_impl" in cls.__dict__ and "__call__" not in cls.__dict__:
            cls.__call__ = cls._call_impl
        native.adopt_module(cls)

    def _slow_forward(self, *input: Any, **kwargs: Any) -> Any:
        return self.forward(*input, **kwargs)

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        if (
            self._backward_hooks
            or self._backward_pre_hooks
            or self._forward_hooks
            or self._forward_pre_hooks
            or _global_backward_pre_hooks
            or _global_backward_hooks
            or _global_forward_hooks
            or _global_forward_pre_hooks
        ):
            return self._call_with_hooks(args, kwargs)
        return self.forward(*args, **kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Let calls of this module be compiled; takes the arguments of ``torch.compile``."""
        from ..._compiling.functions import compiled_call

        object.__setattr__(self, "_compiled_call_impl", compiled_call(self._call_impl, *args, **kwargs))

    # Modes

    def train(self, mode: bool = True) -> Self:
        """Set training mode in the module and everything below it."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """The same as ``train(False)``."""
        return self.train(False)

    # Copying and printing

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        return state

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """What `copy.deepcopy` does by itself, without the detours for the tables of hooks, most of which are empty."""
        cls = type(self)
        if (
            cls.__reduce_ex__ is not object.__reduce_ex__
            or cls.__reduce__ is not object.__reduce__
            or cls.__getstate__ is not Module.__getstate__
            or cls in copyreg.dispatch_table
            or hasattr(cls, "__getnewargs_ex__")
            or hasattr(cls, "__getnewargs__")
        ):
            return copy._reconstruct(self, memo, *self.__reduce_ex__(4))  # type: ignore[attr-defined]
        made = memo[id(self)] = cls.__new__(cls)
        state: dict[str, Any] = {}
        for name, value in self.__dict__.items():
            kind = value.__class__
            if kind is OrderedDict and not value:
                key = id(value)
                if key not in memo:
                    memo[key] = OrderedDict()
                state[name] = memo[key]
            else:
                state[name] = value if kind is bool or kind is int or kind is str else copy.deepcopy(value, memo)
        made.__setstate__(state)
        return made

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # What modules that were pickled by older versions lack.
        own = self.__dict__
        for name in (
            "_forward_pre_hooks",
            "_forward_pre_hooks_with_kwargs",
            "_forward_hooks_with_kwargs",
            "_forward_hooks_always_called",
            "_state_dict_hooks",
            "_state_dict_pre_hooks",
            "_load_state_dict_pre_hooks",
            "_load_state_dict_post_hooks",
            "_backward_pre_hooks",
        ):
            if name not in own:
                own[name] = OrderedDict()
        own.setdefault("_non_persistent_buffers_set", set())
        own.setdefault("_is_full_backward_hook", None)

    def _replicate_for_data_parallel(self) -> Self:
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica.__dict__["_parameters"] = {}
        replica.__dict__["_buffers"] = replica._buffers.copy()
        replica.__dict__["_modules"] = replica._modules.copy()
        replica.__dict__["_is_replica"] = True
        return replica

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What a subclass shows between the parentheses of its repr."""
        return ""

    def _repr_children(self) -> Iterator[tuple[str, str]]:
        for name, module in self._modules.items():
            yield name, _addindent(repr(module), 2)

    def __repr__(self) -> str:
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        children = [f"({name}): {text}" for name, text in self._repr_children()]
        if len(extra_lines) == 1 and not children:
            return f"{self._get_name()}({extra_lines[0]})"
        lines = extra_lines + children
        if not lines:
            return f"{self._get_name()}()"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


_state_dict.base = Module


native.connect_module(
    Module,
    (_global_backward_pre_hooks, _global_backward_hooks, _global_forward_hooks, _global_forward_pre_hooks),
    _global_parameter_registration_hooks,
    _global_module_registration_hooks,
)


for _mixin in (HookMethods, StateDictMethods, TreeMethods, MovementMethods):  # what Python's sentences name
    for _name, _member in vars(_mixin).items():
        if isinstance(_member, FunctionType):
            _member.__qualname__ = f"Module.{_name}"
