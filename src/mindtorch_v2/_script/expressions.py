"""Closures of the expressions of TorchScript: see Note [Frames] in `functions`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._tensor import Tensor
from .calls import Site
from .errors import ScriptError, at
from .kinds import dotted, holds, kind_of
from .objects import Instance, Member, Named
from .source import literal, name_of
from .texts import part

if TYPE_CHECKING:
    from .library import Library

Closure = Callable[[list], Any]
LINE, RESULT, FIRST = 0, 1, 2  # places in a frame, the last one of the first variable
UNSET = type("Unset", (), {})()  # the value of a variable that was not assigned
_BUILTINS = frozenset(
    "int float bool str complex print sorted len hash hex oct bin ord chr min max abs all any sum round list dict divmod pow getattr".split()
)
_OBJECTS = (Instance, Named, Member)


class Closed:
    """A function inside another, with the variables of the frame that it was made in."""

    __slots__ = ("_body", "_frame")

    def __init__(self, body: Closure, frame: list):
        self._body = body
        self._frame = frame

    def __call__(self) -> Any:
        frame = list(self._frame)
        self._body(frame)
        return frame[RESULT]


class Expressions:
    """Makes closures of expressions. slots: the places of variables in the frame, by name."""

    def __init__(self, library: Library, path: str, names: list[str]):
        self.library = library
        self.path = path
        self.slots = {name: place for place, name in enumerate(names)}

    def slot(self, name: str) -> int:
        """The place of a variable in the frame."""
        return FIRST + self.slots.setdefault(name, len(self.slots))

    def refused(self, node: ast.AST, text: str) -> ScriptError:
        """The error of what cannot be run, with its file and line."""
        return at(self.path, getattr(node, "lineno", 0), text)

    def is_object(self, value: Any) -> bool:
        """Whether a value is an instance of a class of the file, whose attributes the code may ask for."""
        return isinstance(value, _OBJECTS) or isinstance(value, self.library.module_class)

    def expression(self, node: ast.expr) -> Closure:
        """The closure of an expression. ScriptError for one that TorchScript has not."""
        try:
            value = literal(node)
        except ValueError:
            make = getattr(self, f"_{type(node).__name__}", None)
            if make is None or isinstance(node, ast.stmt):
                raise self.refused(node, f"{type(node).__name__} is no expression of TorchScript") from None
            return make(node)
        if isinstance(value, (list, dict)) or (isinstance(value, tuple) and value):
            return getattr(self, f"_{type(node).__name__}")(node)  # a fresh one each time
        return lambda frame: value

    def condition(self, node: ast.expr) -> Closure:
        """The closure of a condition, whose value is a bool (or a tensor of one element, in files of traces)."""
        value = self.expression(node)

        def test(frame: list) -> bool:
            found = value(frame)
            return (
                bool(found) if type(found) is bool or isinstance(found, (int, float, Tensor)) else _no_condition(found)
            )

        return test

    def _Name(self, node: ast.Name) -> Closure:
        if node.id not in self.slots:
            raise self.refused(node, f"the variable {node.id} is not assigned")
        slot, name = self.slot(node.id), node.id

        def load(frame: list) -> Any:
            value = frame[slot]
            if value is UNSET:
                raise RuntimeError(f"the variable {name} is not assigned")
            return value

        return load

    def _Tuple(self, node: ast.Tuple) -> Closure:
        parts = self._parts(node.elts)
        if len(parts) == 2:
            first, second = parts
            return lambda frame: (first(frame), second(frame))
        return lambda frame: tuple([part(frame) for part in parts])

    def _List(self, node: ast.List) -> Closure:
        parts = self._parts(node.elts)
        return lambda frame: [part(frame) for part in parts]

    def _Dict(self, node: ast.Dict) -> Closure:
        if None in node.keys:
            raise self.refused(node, "** in a dict")
        keys, values = self._parts(node.keys), self._parts(node.values)  # type: ignore[arg-type]
        return lambda frame: {key(frame): value(frame) for key, value in zip(keys, values)}

    def _parts(self, nodes: list[ast.expr]) -> list[Closure]:
        return [self.expression(node) for node in nodes]

    def _IfExp(self, node: ast.IfExp) -> Closure:
        test, then, other = self.condition(node.test), self.expression(node.body), self.expression(node.orelse)
        return lambda frame: then(frame) if test(frame) else other(frame)

    def _Subscript(self, node: ast.Subscript) -> Closure:
        value = self.expression(node.value)
        if isinstance(node.slice, (ast.Slice, ast.Tuple)):
            raise self.refused(node, "an index of this form")
        index = self.expression(node.slice)

        def load(frame: list) -> Any:
            held = value(frame)
            kind = held.__class__
            if kind is not list and kind is not dict and not isinstance(held, (tuple, str)):
                raise TypeError(f"a {type(held).__name__} has no elements")
            return part(held, index(frame)) if isinstance(held, str) else held[index(frame)]

        return load

    def _Attribute(self, node: ast.Attribute) -> Closure:
        name = dotted(node)
        root = None if name is None else name.partition(".")[0]
        if root is not None and root not in self.slots:
            found = self._global(node, root, name or "")
            return lambda frame: found
        return self._get(self.expression(node.value), name_of(node.attr))

    def _get(self, owner: Closure, name: str) -> Closure:
        def load(frame: list) -> Any:
            held = owner(frame)
            if not self.is_object(held):
                raise TypeError(f"a {type(held).__name__} has no attribute {name}")
            return held._script_get(name)

        return load

    def _global(self, node: ast.expr, root: str, name: str) -> Any:
        """The value of a dotted name: a constant of the file, a function, a class or an enum's member."""
        if root == "CONSTANTS" and name.startswith("CONSTANTS.c") and name[11:].isdigit():
            try:
                return self.library.constant(int(name[11:]))
            except IndexError:
                raise self.refused(node, f"the file has no constant {name}") from None
        if root in ("__torch__", "torch"):
            found = self.library.found(name)
            if found is not None:
                return found
            cls, _, member = name.rpartition(".")
            owner = self.library.class_of(cls)
            if owner is not None and member in owner.members:
                return owner.members[member]
        raise self.refused(node, f"there is no {name}")

    # calls

    def _Call(self, node: ast.Call) -> Closure:
        if any(isinstance(one, ast.Starred) for one in node.args) or any(one.arg is None for one in node.keywords):
            raise self.refused(node, "* or ** in a call")
        callee = node.func
        if isinstance(callee, ast.Name) and callee.id not in self.slots:
            special = getattr(self, f"_call_{callee.id}", None)
            if special is not None:
                return special(node)
            if callee.id in _BUILTINS:
                return self._operator(node, "aten", callee.id)
            raise self.refused(node, f"there is no function {callee.id}")
        if isinstance(callee, ast.Attribute):
            name = dotted(callee)
            root = None if name is None else name.partition(".")[0]
            if name is not None and root not in self.slots:
                return self._call_global(node, root or "", name)
            return self._method(node, callee)
        return self._call_value(node, self.expression(callee))

    def _call_global(self, node: ast.Call, root: str, name: str) -> Closure:
        parts = name.split(".")
        if root == "torch" and (len(parts) == 2 or name in ("torch.autograd.backward", "torch.autograd.grad")):
            return self._operator(node, "aten", parts[-1])
        if root == "ops" and len(parts) == 3:
            return self._operator(node, parts[1], parts[2])
        if parts[-1] == "__new__":
            cls = self.library.class_of(name.removesuffix(".__new__"))
            if cls is not None and cls.flavour == "class":
                return lambda frame: Instance(cls)
        cls = self.library.class_of(name)
        if cls is not None and cls.flavour == "tuple":
            values = self._arguments(node)
            fields = len(cls.fields)
            if len(values) != fields:
                raise self.refused(node, f"{name} has {fields} fields, but is given {len(values)}")
            return lambda frame: Named(cls, tuple([value(frame) for value in values]))
        found = self.library.found(name)
        if found is None:
            raise self.refused(node, f"there is no function {name}")
        return self._call_value(node, lambda frame: found)

    def _call_value(self, node: ast.Call, callee: Closure) -> Closure:
        values, callable_ = self._arguments(node), self.library.function_class

        def call(frame: list) -> Any:
            function = callee(frame)
            if function.__class__ is not callable_ and function.__class__ is not Closed:
                raise TypeError(f"a {type(function).__name__} cannot be called")
            return function(*[value(frame) for value in values])

        return call

    def _method(self, node: ast.Call, callee: ast.Attribute) -> Closure:
        owner, values, name = self.expression(callee.value), self._arguments(node), name_of(callee.attr)
        method = self.library.method
        if name == "tolist" and not values:
            return self._operator(ast.copy_location(ast.Call(callee, [callee.value], []), node), "prim", name)

        def call(frame: list) -> Any:
            held = owner(frame)
            return method(held, name)(held, *[value(frame) for value in values])

        return call

    def _arguments(self, node: ast.Call) -> list[Closure]:
        if node.keywords:
            raise self.refused(node, "keywords in a call of the file's own function")
        return self._parts(node.args)

    def _operator(self, node: ast.Call, namespace: str, name: str) -> Closure:
        values = self._parts([*node.args, *(one.value for one in node.keywords)])
        site = Site(
            namespace, name, len(node.args), tuple(one.arg or "" for one in node.keywords), self.library.version
        )
        if len(values) == 1:
            (only,) = values
            return lambda frame: site(only(frame))
        if len(values) == 2:
            first, second = values
            return lambda frame: site(first(frame), second(frame))
        return lambda frame: site(*[value(frame) for value in values])

    # what looks like a call

    def _two(self, node: ast.Call) -> tuple[ast.expr, ast.expr]:
        if len(node.args) != 2 or node.keywords:
            raise self.refused(node, f"{ast.unparse(node.func)} takes two arguments")
        return node.args[0], node.args[1]

    def _call_annotate(self, node: ast.Call) -> Closure:
        return self.expression(self._two(node)[1])

    def _call_unchecked_cast(self, node: ast.Call) -> Closure:
        return self.expression(self._two(node)[1])

    def _call_uninitialized(self, node: ast.Call) -> Closure:
        return lambda frame: None

    def _call_getattr(self, node: ast.Call) -> Closure:
        owner, name = self._two(node)
        try:
            text = literal(name)
        except ValueError:
            text = None
        if not isinstance(text, str):
            raise self.refused(node, "getattr takes a literal name")
        return self._get(self.expression(owner), text)

    def _call_isinstance(self, node: ast.Call) -> Closure:
        value, types = self._two(node)
        wanted = types.elts if isinstance(types, (ast.List, ast.Tuple)) else [types]
        try:
            kinds = [kind_of(one, self.library.class_of) for one in wanted]
        except ValueError as error:
            raise self.refused(node, str(error)) from None
        of = self.expression(value)

        def test(frame: list) -> bool:
            found = of(frame)
            return any([holds(found, kind) for kind in kinds])

        return test

    def _call_fork(self, node: ast.Call) -> Closure:
        """What is forked runs at once: its result stands for the future."""
        if not node.args:
            raise self.refused(node, "fork takes a function")
        callee, *rest = node.args
        return self.expression(ast.copy_location(ast.Call(callee, rest, node.keywords), node))


def _no_condition(value: Any) -> bool:
    raise TypeError(f"a {type(value).__name__} is no condition")
