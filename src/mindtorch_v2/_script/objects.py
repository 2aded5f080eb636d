"""Classes of a TorchScript file, and their instances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class ScriptClass:
    """A class that the code of a file declares.

    flavour: "module", "class", "tuple", "enum" or "interface". fields: annotated attributes in order, by name the annotation. constants: values of `Final`
    attributes. methods: functions by name (`_script.functions.Function`). members: of an enum.
    """

    def __init__(self, name: str, flavour: str):
        self.name = name
        self.flavour = flavour
        self.fields: dict[str, Any] = {}
        self.defaults: dict[str, Any] = {}
        self.constants: dict[str, Any] = {}
        self.methods: dict[str, Any] = {}
        self.parameters: list[str] = []
        self.buffers: list[str] = []
        self.hooks: tuple[list[str], list[str]] = ([], [])
        self.members: dict[str, Member] = {}
        self.kind_of_field: Callable[[str], Any] = lambda name: None

    @property
    def short(self) -> str:
        return self.name.rpartition(".")[2]

    def kinds(self) -> list[Any]:
        """The types of the fields, in order."""
        return [self.kind_of_field(name) for name in self.fields]

    def covers(self, other: ScriptClass) -> bool:
        """Whether a class has all methods of this interface."""
        return self.methods.keys() <= other.methods.keys()

    def __deepcopy__(self, memo: Any) -> ScriptClass:
        return self


class Instance:
    """An instance of a class that is no module: `torch.jit.script`ed classes. Its attributes and methods are the file's."""

    __slots__ = ("_attributes", "_script_class")

    def __init__(self, cls: ScriptClass):
        self._script_class = cls
        self._attributes: dict[str, Any] = {}

    def _script_get(self, name: str) -> Any:
        try:
            return self._attributes[name]
        except KeyError:
            raise AttributeError(f"{self._script_class.name} has no attribute {name}") from None

    def _script_set(self, name: str, value: Any) -> None:
        self._attributes[name] = value

    def __getattr__(self, name: str) -> Any:
        if name in ("_attributes", "_script_class") or name.startswith("__"):
            raise AttributeError(name)
        if name in self._attributes:
            return self._attributes[name]
        method = self._script_class.methods.get(name)
        if method is None:
            raise AttributeError(f"'{self._script_class.short}' object has no attribute '{name}'")
        return method.bound(self)

    def __lt__(self, other: Any) -> bool:
        return bool(self._script_class.methods["__lt__"](self, other))

    def __repr__(self) -> str:
        return f"<torch.ScriptObject of {self._script_class.name}>"


class Named(tuple):
    """A tuple with names for its elements."""

    _script_class: ScriptClass

    def __new__(cls, script_class: ScriptClass, values: tuple) -> Named:
        made = super().__new__(cls, values)
        made._script_class = script_class
        return made

    @property
    def _fields(self) -> tuple[str, ...]:
        return tuple(self._script_class.fields)

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._script_class.fields, self))

    def _script_get(self, name: str) -> Any:
        for field, value in zip(self._script_class.fields, self):
            if field == name:
                return value
        raise AttributeError(f"{self._script_class.name} has no field {name}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_script_class":
            raise AttributeError(name)
        return self._script_get(name)

    def __reduce__(self) -> tuple:
        return tuple, (tuple(self),)

    def __deepcopy__(self, memo: Any) -> Named:
        import copy

        return Named(self._script_class, tuple(copy.deepcopy(v, memo) for v in self))

    def __repr__(self) -> str:
        return f"{self._script_class.short}({', '.join(f'{n}={v!r}' for n, v in self._asdict().items())})"


class Member:
    """A member of an enum: name and value. There is one object for each."""

    __slots__ = ("_script_class", "name", "value")

    def __init__(self, cls: ScriptClass, name: str, value: Any):
        self._script_class = cls
        self.name = name
        self.value = value

    def _script_get(self, name: str) -> Any:
        if name not in ("name", "value"):
            raise AttributeError(f"{self._script_class.name} has no attribute {name}")
        return self.name if name == "name" else self.value

    def __deepcopy__(self, memo: Any) -> Member:
        return self

    def __repr__(self) -> str:
        return f"{self._script_class.short}.{self.name}"
