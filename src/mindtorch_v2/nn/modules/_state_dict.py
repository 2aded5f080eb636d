"""Saving and loading of a module's state."""

from __future__ import annotations

import itertools
import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from numpy import ndarray

import mindtorch_v2 as torch

from ..._state import PLAIN
from ..._tensor import Tensor, bump_version
from ...utils.hooks import RemovableHandle
from ..parameter import Parameter, is_lazy
from ._hooks import _register, _WrappedHook
from ._movement import swaps

if TYPE_CHECKING:
    pass

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What ``load_state_dict`` did not find, and what it found too much."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


def _quoted(keys: list[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)


def _swap(own: Tensor, given: Any, assign: bool) -> None:
    """Let a parameter or buffer become what its `module_load` makes of the given tensor."""
    made = own.module_load(given, assign=assign)
    if made is given or made is own:
        raise RuntimeError(
            "module_load returned one of self or other, please .detach() the result if returning one of the inputs in module_load"
        )
    if isinstance(own, Parameter):
        if isinstance(made, Parameter):
            made.requires_grad_(own.requires_grad)
        else:
            made = Parameter(made, requires_grad=own.requires_grad)
    torch.utils.swap_tensors(own, made)


class StateDictMethods:
    """The part of :class:`Module` that writes and reads state dicts."""

    T_destination = TypeVar("T_destination", bound=dict[str, Any])

    _version: int = 1
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]  # Any, since programs resolve the annotations of Module's subclasses
    _non_persistent_buffers_set: set[str]
    _state_dict_hooks: OrderedDict[int, Callable]
    _state_dict_pre_hooks: OrderedDict[int, Callable]
    _load_state_dict_pre_hooks: OrderedDict[int, Callable]
    _load_state_dict_post_hooks: OrderedDict[int, Callable]

    def get_extra_state(self) -> Any:
        """What a subclass wants in its state dict besides tensors; to be overridden together with its counterpart."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state: Any) -> None:
        """Take up what :meth:`get_extra_state` gave."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    # Hooks

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return _register(self._state_dict_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` when the module's part was written."""
        marked: Any = hook
        marked._from_public_api = True
        return _register(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before the module's part is written."""
        return _register(self._state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., None], with_module: bool = False
    ) -> RemovableHandle:
        wrapped = _WrappedHook(hook, self if with_module else None)
        return _register(self._load_state_dict_pre_hooks, wrapped)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)``
        before the module's part is read."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after the module's part was read; it may change the keys in place."""
        return _register(self._load_state_dict_post_hooks, hook)

    # Writing

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Write the own parameters, persistent buffers and extra state into ``destination``."""
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        if buffers := self._buffers:
            fleeting = self._non_persistent_buffers_set
            for name, buffer in buffers.items():
                if buffer is not None and name not in fleeting:
                    destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if type(self).get_extra_state is not base.get_extra_state:
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """A dict of all parameters and persistent buffers by dotted name, detached unless ``keep_vars``."""
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.",
                FutureWarning,
                stacklevel=2,
            )
            if destination is None:
                destination = args[0]
            if len(args) > 1 and prefix == "":
                prefix = args[1]
            if len(args) > 2 and keep_vars is False:
                keep_vars = args[2]
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        return self._write_state(destination, prefix, keep_vars)

    def _write_state(self, destination: Any, prefix: str, keep_vars: bool) -> Any:
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is None:
                continue
            if type(module).state_dict is StateDictMethods.state_dict and "state_dict" not in module.__dict__:
                module._write_state(destination, f"{prefix}{name}.", keep_vars)
            else:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if not getattr(hook, "_from_public_api", False):
                if result is not None:
                    destination = result
            elif result is not None:
                raise RuntimeError("state_dict post-hook must return None")
        return destination

    # Reading

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Read the own parameters, persistent buffers and extra state; problems go into the three lists."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        persistent = (item for item in self._buffers.items() if item[0] not in self._non_persistent_buffers_set)
        local_state = {
            name: tensor for name, tensor in itertools.chain(self._parameters.items(), persistent) if tensor is not None
        }
        for name, tensor in local_state.items():
            key = prefix + name
            if key in state_dict:
                problem = self._load_one(name, key, tensor, state_dict[key], assign)
                if problem is not None:
                    error_msgs.append(problem)
            elif strict:
                missing_keys.append(key)

        extra_key = prefix + _EXTRA_STATE_KEY_SUFFIX
        if type(self).set_extra_state is not base.set_extra_state:
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)

        if strict:
            for key in state_dict:
                if not key.startswith(prefix) or key == extra_key:
                    continue
                head, dot, _ = key[len(prefix) :].partition(".")
                if head not in (self._modules if dot else local_state):
                    unexpected_keys.append(key)

    def _load_one(self, name: str, key: str, own: Tensor, given: Any, assign: bool) -> str | None:
        """Copy or assign one tensor; the sentence of the problem, if there is one."""
        if (
            not assign
            and own.__class__ in PLAIN
            and given.__class__ in PLAIN
            and own._payload is given._payload
            and own._payload.__class__ is ndarray
        ):  # the module's own state: the same elements
            bump_version(own)
            return None
        if not (isinstance(given, Tensor) or hasattr(given, "__torch_function__")):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
                f"checkpoint but received {type(given)}"
            )
        lazy = is_lazy(own)
        if not lazy and own.dim() == 0 and given.dim() == 1:
            # Old checkpoints hold scalars as tensors of one element.
            given = given[0]
        if not lazy and given.shape != own.shape:
            return (
                f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, "
                f"the shape in current model is {own.shape}."
            )
        if own.is_meta and not given.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current "
                "model, which is a no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary "
                "to their corresponding key in the module instead of copying them in place?)",
                stacklevel=2,
            )
        try:
            with torch.no_grad():
                if swaps():
                    _swap(own, given, assign)
                    return None
                if not assign:
                    own.copy_(given)
                    return None
                if isinstance(own, Parameter):
                    if isinstance(given, Parameter):
                        given.requires_grad_(own.requires_grad)
                    else:
                        given = Parameter(given, requires_grad=own.requires_grad)
                setattr(self, name, given)
        except Exception as error:  # noqa: BLE001 (all problems are reported together)
            sizes = "" if lazy else f"{own.size()}"
            return (
                f'While {"swapping" if swaps() else "copying"} the parameter named "{key}", whose dimensions in the model are {sizes} and whose '
                f"dimensions in the checkpoint are {given.size()}, an exception occurred : {error.args}."
            )
        return None

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copy (with ``assign``: put) the tensors of ``state_dict`` into the module and its submodules.

        Returns the missing and the unexpected keys. Raises RuntimeError with all problems; with ``strict`` keys that
        do not match are such.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing_keys: list[str] = []
        unexpected_keys: list[str] = []
        error_msgs: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        given: Any = OrderedDict(state_dict)
        if metadata is not None:
            given._metadata = metadata

        def load(module: Any, part: Any, prefix: str = "") -> None:
            local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                local_metadata["assign_to_params_buffers"] = assign
            module._load_from_state_dict(part, prefix, local_metadata, True, missing_keys, unexpected_keys, error_msgs)
            for name, child in module._modules.items():
                if child is not None:
                    child_prefix = f"{prefix}{name}."
                    child_part = {key: value for key, value in part.items() if key.startswith(child_prefix)}
                    load(child, child_part, child_prefix)
            incompatible = _IncompatibleKeys(missing_keys, unexpected_keys)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, incompatible) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                        "values, if incompatible_keys need to be modified, it should be done inplace."
                    )

        load(self, given)
        if strict:
            if unexpected_keys:
                error_msgs.insert(0, f"Unexpected key(s) in state_dict: {_quoted(unexpected_keys)}. ")
            if missing_keys:
                error_msgs.insert(0, f"Missing key(s) in state_dict: {_quoted(missing_keys)}. ")
        if error_msgs:
            problems = "\n\t".join(error_msgs)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{problems}")
        return _IncompatibleKeys(missing_keys, unexpected_keys)


base: type[StateDictMethods] = StateDictMethods
"""The class whose extra-state methods mean that there is none: Module, which puts itself here, so that patches of it count."""
