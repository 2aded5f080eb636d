"""`ScriptModule`: a module of a TorchScript file. Parameters, buffers and submodules are those of any module; its methods are the file's code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .. import nn
from .._above import above
from .._tensor import Tensor
from .kinds import Unfit, fitted
from .objects import ScriptClass

if TYPE_CHECKING:
    from .library import Library


class ScriptModule(nn.Module):
    """A module that was loaded from a file.

    Attributes that are neither tensors of the state nor modules are the file's values; setting one checks its type. It cannot be pickled: `save` writes it.
    """

    _script_class: ScriptClass
    _library: Library

    def __init__(self) -> None:
        super().__init__()
        self.__dict__["_attributes"] = {}

    @classmethod
    def _of(cls, script_class: ScriptClass, library: Library) -> ScriptModule:
        """An empty module of a class of the file; `_fill` gives it its attributes."""
        made = cls()
        made.__dict__["_script_class"] = script_class
        made.__dict__["_library"] = library
        return made

    def _fill(self, state: dict[str, Any]) -> None:
        """Give the module the values of a file by their names."""
        kind = self._script_class
        parameters, buffers = set(kind.parameters), set(kind.buffers)
        for name, value in state.items():
            if isinstance(value, nn.Module):
                self._modules[name] = value
            elif name in parameters and (value is None or isinstance(value, Tensor)):
                # what requires no gradient is a parameter as well
                self._parameters[name] = (
                    None if value is None else nn.Parameter(value, requires_grad=value.requires_grad)
                )
            elif name in buffers and (value is None or isinstance(value, Tensor)):
                self._buffers[name] = value
            elif name == "training":
                self.__dict__["training"] = bool(value)
            elif name != "_is_full_backward_hook":
                self._attributes[name] = value

    # what the file's code asks for

    def _script_get(self, name: str) -> Any:
        own = self.__dict__
        for kind in ("_attributes", "_modules", "_parameters", "_buffers"):
            found = own[kind]
            if name in found:
                return found[name]
        if name == "training":
            return own["training"]
        constants = self._script_class.constants
        if name in constants:
            return constants[name]
        if name == "_is_full_backward_hook":
            return None
        raise AttributeError(f"{self._script_class.name} has no attribute {name}")

    def _script_set(self, name: str, value: Any) -> None:
        own = self.__dict__
        if name == "training":
            own["training"] = value
            return
        for kind in ("_parameters", "_buffers", "_modules"):
            if name in own[kind]:
                own[kind][name] = value
                return
        own["_attributes"][name] = value

    # what programs ask for

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for kind in ("_parameters", "_buffers", "_modules", "_attributes"):
            found = own.get(kind)
            if found is not None and name in found:
                return found[name]
        cls = own.get("_script_class")
        if cls is not None:
            if name in cls.constants:
                return cls.constants[name]
            method = cls.methods.get(name)
            if method is not None:
                return method.bound(self)
            getter = cls.methods.get(f"__{name}_getter")
            if getter is not None:
                return getter.call(self, (), {})
        raise AttributeError(f"'{self._get_name()}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        attributes = own.get("_attributes")
        if attributes is None or name not in attributes:
            super().__setattr__(name, value)
            return
        kind = self._script_class.kind_of_field(name)
        try:
            attributes[name] = value if kind is None else fitted(value, kind)
        except Unfit:
            raise RuntimeError(f"the attribute {name} has the type {kind}, but got {type(value).__name__}") from None

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the file's `forward` computes. NotImplementedError where it has none."""
        method = self._script_class.methods.get("forward")
        if method is None:
            raise NotImplementedError(f"{self._script_class.name} has no forward")
        before, after = self._script_class.hooks
        if not before and not after:
            return method.call(self, args, kwargs)
        given: Any = tuple(method._bound(self, args, kwargs)[1:])
        for name in before:
            changed = self._script_class.methods[name].call(self, (given,), {})
            given = given if changed is None else changed if isinstance(changed, tuple) else (changed,)
        result = method.call(self, given, {})
        for name in after:
            changed = self._script_class.methods[name].call(self, (given, result), {})
            result = result if changed is None else changed
        return result

    @property
    def original_name(self) -> str:
        """The name of the class that was scripted."""
        return self._script_class.short

    @property
    def code(self) -> str:
        """The source of `forward`."""
        method = self._script_class.methods.get("forward")
        return "" if method is None else self._library.text(method)

    @property
    def graph(self) -> str:
        """The source of `forward`, which is what runs: there is no other form of it."""
        return self.code

    inlined_graph = graph

    def save(self, f: Any, _extra_files: dict[str, Any] | None = None, **_ignored: Any) -> None:
        """Write the module, as it is now, to a path or a file; see `torch.jit.save`."""
        above("script_writer")(self, f, _extra_files)

    def save_to_buffer(self, _extra_files: dict[str, Any] | None = None) -> bytes:
        """The file's content that `save` writes."""
        import io

        buffer = io.BytesIO()
        self.save(buffer, _extra_files)
        return buffer.getvalue()

    def copy(self) -> ScriptModule:
        """A module of the same values."""
        import copy

        return copy.deepcopy(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> ScriptModule:
        import copy

        made = memo[id(self)] = type(self)()
        for name, value in self.__dict__.items():
            made.__dict__[name] = value if name in ("_script_class", "_library") else copy.deepcopy(value, memo)
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError("a ScriptModule cannot be pickled; torch.jit.save writes it to a file")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._attributes, *self._script_class.methods})

    def extra_repr(self) -> str:
        return f"original_name={self.original_name}" if "_script_class" in self.__dict__ else ""

    def __len__(self) -> int:
        method = self._script_class.methods.get("__len__")
        if method is None:
            raise TypeError(f"object of type '{self.original_name}' has no len()")
        return method.call(self, (), {})

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, str):
            return self._modules[index]
        return list(self._modules.values())[index]

    def __contains__(self, name: Any) -> bool:
        return name in self._modules


class RecursiveScriptModule(ScriptModule):
    """What `torch.jit.load` gives."""


class TracedModule(ScriptModule):
    """What a trace of a submodule gives."""


class TopLevelTracedModule(TracedModule):
    """What `torch.jit.trace` gives of a module."""


def freeze(mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Any:
    """A copy of a module of TorchScript whose parameters ask for no gradient. RuntimeError for any other module, and for one in training."""
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script your 'nn.Module'."
        )
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before freezing."
        )
    return mod.copy().requires_grad_(False)


def optimize_for_inference(mod: Any, other_methods: Any = None) -> Any:
    """A frozen copy of a module in evaluation mode: there is nothing more to optimise."""
    return freeze(mod.eval())
