"""Functions without branches as code of Python: what traces and most `forward`s are made of.

Note [Straight code]
Where a function's body is a row of assignments of calls, attributes and literals, each variable becomes a local variable of a Python function, which is built of
nothing but names and calls of objects that are put there: no text of the file is run. It computes what the closures do (Note [Frames] in `functions`), without
their frames. A call of an operator whose arguments are always of the same classes, since they are literals or tensors (parameters of that type, what modules
hold, results of which all overloads give one tensor), looks for its overload once, and its name then means what it found.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from .. import ops
from .._tensor import Tensor
from .calls import Site
from .expressions import Expressions
from .kinds import dotted
from .source import literal, name_of

_KINDS = ("_parameters", "_modules", "_buffers", "_attributes")
_VARIES, _TENSORS, _LITERAL = range(3)
_Value = tuple[
    ast.expr, int
]  # and what it is each time: anything, a tensor or a list of tensors if it is one the first time, the same


class _Branches(Exception):
    """The function is not straight, or has what only closures do."""


def straight(
    maker: Expressions, node: ast.FunctionDef, names: list[str], tensors: set[str]
) -> Callable[..., Any] | None:
    """The function of a node's body, which takes all parameters in their order; None where the body is not straight. tensors: parameters of that type."""
    made = _Straight(maker, names, tensors)
    try:
        body = [line for one in node.body for line in made.statement(one)]
    except _Branches:
        return None
    if not body or not isinstance(body[-1], ast.Return) or any(isinstance(one, ast.Return) for one in body[:-1]):
        return None
    arguments = ast.arguments([], [ast.arg(_local(name)) for name in names], None, [], [], None, [])
    function = ast.copy_location(ast.FunctionDef("straight", arguments, body, []), node)
    if "type_params" in ast.FunctionDef._fields:
        setattr(function, "type_params", [])  # noqa: B010
    tree = ast.fix_missing_locations(ast.Module([function], []))
    exec(compile(tree, "<TorchScript>", "exec"), made.globals)
    return made.globals["straight"]


def _local(name: str) -> str:
    return f"v_{name}"


class _Straight:
    def __init__(self, maker: Expressions, names: list[str], tensors: set[str]):
        self.maker = maker
        self.same = {name: _TENSORS if name in tensors else _VARIES for name in names}
        # Where the attributes of a variable's value are, until a method may have set them.
        self.held: dict[tuple[str, str], str] = {}
        self.globals: dict[str, Any] = {"__builtins__": {}}

    def put(self, value: Any) -> ast.Name:
        """A name for an object."""
        name = f"g_{len(self.globals)}"
        self.globals[name] = value
        return ast.Name(name, ast.Load())

    # statements

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        """The statements of Python for one."""
        if isinstance(node, ast.Pass):
            return []
        if isinstance(node, ast.Return):
            made: ast.stmt = ast.Return(self.value(node.value or ast.Constant(None))[0])
        elif isinstance(node, ast.Expr):
            made = ast.Expr(self.value(node.value)[0])
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            made = self.assigned(node.targets[0], node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
            made = self.assigned(node.target, node.value)
        else:
            raise _Branches
        return [ast.copy_location(made, node)]

    def assigned(self, target: ast.Name, value: ast.expr) -> ast.Assign:
        """One variable's new value."""
        made, self.same[target.id] = self.value(value)
        name = _local(target.id)
        self.held = {key: where for key, where in self.held.items() if key[0] != name}
        return ast.Assign([ast.Name(name, ast.Store())], made)

    # expressions

    def value(self, node: ast.expr) -> _Value:
        """The expression of Python for one."""
        try:
            found = literal(node)
        except ValueError:
            pass
        else:
            if not isinstance(found, (list, dict, tuple)):
                return self.put(found), _LITERAL
        if isinstance(node, ast.Name) and node.id in self.same:
            return ast.Name(_local(node.id), ast.Load()), self.same[node.id]
        if isinstance(node, (ast.Tuple, ast.List)):
            parts, same = self.values(node.elts)
            return type(node)(parts, ast.Load()), min(same, default=_LITERAL)
        if isinstance(node, ast.Attribute):
            name = dotted(node)
            if name is not None and name.partition(".")[0] not in self.same:
                return self.put(self.maker._global(node, name.partition(".")[0], name)), _LITERAL
            return self.attribute(node.value, name_of(node.attr))
        if isinstance(node, ast.Call) and not any(isinstance(one, ast.Starred) for one in node.args):
            return self.called(node)
        raise _Branches

    def values(self, nodes: list[ast.expr]) -> tuple[list[ast.expr], list[int]]:
        """Several, and what each is."""
        pairs = [self.value(node) for node in nodes]
        return [made for made, _ in pairs], [same for _, same in pairs]

    def attribute(self, owner: ast.expr, name: str) -> _Value:
        """What an object has."""
        held = self.value(owner)[0]
        made = ast.Call(self.put(_getter(self.maker, name)), [held], [])
        if not isinstance(held, ast.Name):
            return made, _TENSORS
        if (held.id, name) in self.held:
            return ast.Name(self.held[held.id, name], ast.Load()), _TENSORS
        self.held[held.id, name] = where = f"h_{len(self.globals)}"
        return ast.NamedExpr(ast.Name(where, ast.Store()), made), _TENSORS

    def called(self, node: ast.Call) -> _Value:
        """A call of an operator, of a method of the file, or of what looks like one."""
        callee = node.func
        if isinstance(callee, ast.Name):
            if callee.id in ("annotate", "unchecked_cast") and len(node.args) == 2 and not node.keywords:
                return self.value(node.args[1])
            if callee.id == "getattr" and len(node.args) == 2 and not node.keywords:
                text = literal(node.args[1]) if isinstance(node.args[1], ast.Constant) else None
                if isinstance(text, str):
                    return self.attribute(node.args[0], text)
            raise _Branches
        if not isinstance(callee, ast.Attribute):
            raise _Branches
        name = dotted(callee)
        parts = ["", ""] if name is None else name.split(".")
        if parts[0] in self.same or name is None:
            return self.method(node, callee)
        if parts[0] == "torch" and len(parts) == 2:
            return self.operator(node, "aten", parts[1])
        if parts[0] == "ops" and len(parts) == 3:
            return self.operator(node, parts[1], parts[2])
        raise _Branches

    def method(self, node: ast.Call, callee: ast.Attribute) -> _Value:
        """A method of an object of the file."""
        name, method = name_of(callee.attr), self.maker.library.method
        if name == "tolist" or node.keywords:
            raise _Branches

        def call(held: Any, *values: Any) -> Any:
            return method(held, name)(held, *values)

        made = ast.Call(self.put(call), [self.value(callee.value)[0], *self.values(node.args)[0]], [])
        self.held.clear()
        return made, _VARIES

    def operator(self, node: ast.Call, namespace: str, name: str) -> _Value:
        """A call of an operator."""
        if any(one.arg is None for one in node.keywords):
            raise _Branches
        keywords = tuple([one.arg or "" for one in node.keywords])
        values, same = self.values([*node.args, *(one.value for one in node.keywords)])
        if namespace != "aten":  # it may be anybody's
            self.held.clear()
        site = Site(namespace, name, len(node.args), keywords, self.maker.library.version)
        here = self.put(site)
        if _VARIES not in same:
            self.globals[here.id] = _once(self.globals, here.id, site, [one is _LITERAL for one in same])
        return ast.Call(here, values, []), _TENSORS if _gives_a_tensor(namespace, name) else _VARIES


def _once(names: dict[str, Any], name: str, site: Site, literals: list[bool]) -> Callable[..., Any]:
    def first(*values: Any) -> Any:
        stay = all([is_literal or _is_of_tensors(value) for value, is_literal in zip(values, literals)])
        found = names[name] = site.chosen(values) if stay else site
        return found(*values)

    return first


def _is_of_tensors(value: Any) -> bool:
    parts = value if type(value) is list else [value]
    return all([isinstance(one, Tensor) for one in parts]) and parts != []


def _gives_a_tensor(namespace: str, name: str) -> bool:
    """Whether all overloads give one tensor."""
    packet = ops.lookup(namespace, name) if namespace == "aten" else None
    if not isinstance(packet, ops.OpOverloadPacket):
        return False
    overloads = [packet._overload(one) for one in packet.overloads()]
    results = [[] if one is None else [given.type for given in one._schema.returns] for one in overloads]
    return bool(results) and all(given == ["Tensor"] for given in results)


def _getter(maker: Expressions, name: str) -> Callable[[Any], Any]:
    """What gives an attribute of an object of the file. It looks first where it was found last."""
    kind = _KINDS[0]

    def get(held: Any) -> Any:
        nonlocal kind
        try:
            return held.__dict__[kind][name]
        except (KeyError, AttributeError):
            pass
        if not maker.is_object(held):
            raise TypeError(f"a {type(held).__name__} has no attribute {name}")
        value = held._script_get(name)
        own = getattr(held, "__dict__", {})
        kind = next((one for one in _KINDS if name in own.get(one, ())), kind)
        return value

    return get
