"""Functions of a TorchScript file: made of their syntax tree, a closure for each expression and statement.

Note [Frames]
A running function has a list: the line it is at, its result, then its variables. A closure takes the frame and gives the expression's value; a statement
gives True when the function has returned. The closures are made at a function's first call.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._tensor import Tensor
from .errors import Failed, Raised, ScriptError, at
from .expressions import FIRST, LINE, RESULT, UNSET, Closed, Expressions
from .kinds import Kind, Unfit, fitted, kind_of
from .objects import Instance
from .source import name_of
from .straight import straight

if TYPE_CHECKING:
    from .library import Library

_NOTHING = object()


class Function:
    """A function or method: name, the path of its file, parameters with their types and defaults.

    Called by code of the file it takes values as they are; `call` takes what a program gives, and checks it.
    """

    def __init__(self, library: Library, path: str, owner: str, node: ast.FunctionDef, method: bool = False):
        arguments = node.args
        if arguments.vararg or arguments.kwarg or arguments.posonlyargs or node.decorator_list:
            raise at(path, node.lineno, f"{node.name} has parameters of a kind that TorchScript has not")
        self.library = library
        self.path = path
        self.name = name_of(node.name)
        self.qualname = f"{owner}.{self.name}"
        self.node = node
        every = [*arguments.args, *arguments.kwonlyargs]
        self.names = [one.arg for one in every]
        self.method = method
        self._annotations = [one.annotation for one in every]
        given = [None] * (len(arguments.args) - len(arguments.defaults)) + list(arguments.defaults)
        self._defaults: list[ast.expr | None] = [*given, *arguments.kw_defaults]
        self._body: Callable[[list], Any] | None = None
        self._straight: Callable[..., Any] | None = None
        self._plain = False  # it takes tensors alone, and its code is straight
        self._size = 0
        self._values: list[Any] = []
        self._kinds: list[Kind] | None = None

    # called by the file's code

    def __call__(self, *args: Any) -> Any:
        body = self._body
        if body is None:
            body = self._compiled()
        if self._straight is not None and len(args) == len(self.names):
            try:
                return self._straight(*args)
            except Failed as failed:
                failed.places.append(self._place(_line_of(failed)))
                raise
            except Exception as error:
                failed = Failed(error)
                failed.places.append(self._place(_line_of(error)))
                raise failed from error
        frame = [self.node.lineno, None, *args]
        missing = len(self.names) - len(args)
        if missing:
            if missing < 0:
                raise TypeError(f"{self.name}() takes {len(self.names)} arguments, but {len(args)} were given")
            frame += self._values[-missing:]
            if _NOTHING in self._values[-missing:]:
                raise TypeError(f"{self.name}() is missing an argument")
        frame += [UNSET] * (self._size - len(frame))
        try:
            body(frame)
        except Failed as failed:
            failed.places.append(self._place(frame[LINE]))
            raise
        except Exception as error:
            failed = Failed(error)
            failed.places.append(self._place(frame[LINE]))
            raise failed from error
        return frame[RESULT]

    def _place(self, line: int) -> tuple[str, int, str, str]:
        return self.path, line, self.name, self.library.line(self.path, line)

    def _compiled(self) -> Callable[[list], Any]:
        maker = Statements(self.library, self.path, self.names)
        values = [_NOTHING if one is None else maker.expression(one)([]) for one in self._defaults]
        body = maker.block(self.node.body)
        self._size = FIRST + len(maker.slots)
        self._values = values
        pairs = zip(self.names, self._annotations)
        tensors = {name for name, one in pairs if isinstance(one, ast.Name) and one.id == "Tensor"}
        self._straight = straight(maker, self.node, self.names, tensors)
        self._plain = self._straight is not None and len(tensors) + self.method == len(self.names)
        self._body = body
        return body

    # called by a program

    @property
    def kinds(self) -> list[Kind]:
        """The types of the parameters."""
        if self._kinds is None:
            try:
                self._kinds = [kind_of(one, self.library.class_of) for one in self._annotations]
            except ValueError as error:
                raise at(self.path, self.node.lineno, str(error)) from None
        return self._kinds

    def call(self, owner: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result for a program's arguments.

        RuntimeError for arguments that do not fit, and for what fails inside, with the places in the file's code; `torch.jit.Error` for its own exceptions.
        """
        try:
            if self._plain and not kwargs and len(args) + self.method == len(self.names):
                if all([isinstance(one, Tensor) for one in args]):
                    return self(owner, *args) if self.method else self(*args)
            return self(*self._bound(owner, args, kwargs))
        except Failed as failed:
            raise failed.public() from failed.cause
        except RecursionError:
            raise ScriptError(f"{self.qualname}: calls are nested too deeply") from None

    def _bound(self, owner: Any, args: tuple, kwargs: dict[str, Any]) -> list[Any]:
        if self._body is None:
            self._compiled()
        names, kinds, values = self.names, self.kinds, self._values
        bound = [owner] if self.method else []
        start = len(bound)
        if len(args) > len(names) - start:
            raise RuntimeError(
                f"{self.name}() expected at most {len(names)} argument(s) but received {len(args) + start} argument(s). "
                f"Declaration: {self.declaration()}"
            )
        used = 0
        for position in range(start, len(names)):
            name = names[position]
            if position - start < len(args):
                value = args[position - start]
            elif name in kwargs:
                value, used = kwargs[name], used + 1
            elif values[position] is _NOTHING:
                raise RuntimeError(
                    f"{self.name}() is missing value for argument '{name}'. Declaration: {self.declaration()}"
                )
            else:
                bound.append(values[position])
                continue
            try:
                bound.append(fitted(value, kinds[position]))
            except Unfit:
                raise RuntimeError(
                    f"{self.name}() Expected a value of type '{kinds[position]}' for argument '{name}' but instead found type "
                    f"'{type(value).__name__}'.\nPosition: {position}\nValue: {value!r:.200}\nDeclaration: {self.declaration()}"
                ) from None
        if used < len(kwargs):
            taken = names[start : start + len(args)]
            name = next(name for name in kwargs if name not in names[start:] or name in taken)
            raise RuntimeError(
                f"Unknown keyword argument '{name}' for operator '{self.name}'. Schema: {self.declaration()}"
            )
        return bound

    def declaration(self) -> str:
        """The signature, as messages show it."""
        shown = [f"{kind} {name}" for name, kind in zip(self.names, self.kinds)]
        result = "Any" if self.node.returns is None else ast.unparse(self.node.returns)
        return f"{self.name}({', '.join(shown)}) -> {result}"

    def bound(self, owner: Any) -> ScriptMethod:
        """The method of an object, for programs."""
        return ScriptMethod(self, owner)


def _line_of(error: BaseException) -> int:
    """The line of straight code that an error came through: the frame below that of its caller."""
    place = error.__traceback__
    return 0 if place is None or place.tb_next is None else place.tb_next.tb_lineno


class ScriptMethod:
    """A method of a loaded module or object, or a function: `torch.jit.ScriptMethod`, `torch.jit.ScriptFunction`."""

    def __init__(self, function: Function, owner: Any):
        self._function = function
        self._owner = owner
        self.__name__ = self.name = function.name
        self.__qualname__ = self.qualified_name = function.qualname

    @property
    def owner(self) -> Any:
        return self._owner

    @property
    def code(self) -> str:
        """The source text."""
        return self._function.library.text(self._function)

    @property
    def schema(self) -> str:
        return self._function.declaration()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function.call(self._owner, args, kwargs)

    def __repr__(self) -> str:
        return f"<torch.ScriptMethod '{self.qualified_name}'>"


class Statements(Expressions):
    """Makes closures of a function's statements."""

    def block(self, nodes: list[ast.stmt]) -> Callable[[list], Any]:
        """One closure of several statements."""
        steps = [(node.lineno, self.statement(node)) for node in nodes if not isinstance(node, ast.Pass)]

        def block(frame: list) -> Any:
            for line, step in steps:
                frame[LINE] = line
                if step(frame):
                    return True
            return None

        return block

    def statement(self, node: ast.stmt) -> Callable[[list], Any]:
        """The closure of a statement. ScriptError for one that TorchScript has not."""
        make = getattr(self, f"_{type(node).__name__}", None)
        if make is None:
            raise self.refused(node, f"{type(node).__name__} is no statement of TorchScript")
        return make(node)

    def _FunctionDef(self, node: ast.FunctionDef) -> Callable[[list], Any]:
        """A function of no arguments inside another, for `fork`: it has the variables as they are where it stands."""
        if node.args.args or node.decorator_list:
            raise self.refused(node, f"{node.name} has parameters, which a function inside another has not")
        body, slot = self.block(node.body), self.slot(node.name)

        def run(frame: list) -> None:
            frame[slot] = Closed(body, list(frame))

        return run

    def _Expr(self, node: ast.Expr) -> Callable[[list], Any]:
        value = self.expression(node.value)

        def run(frame: list) -> None:
            value(frame)

        return run

    def _Return(self, node: ast.Return) -> Callable[[list], Any]:
        value = self.expression(node.value or ast.Constant(None))

        def run(frame: list) -> bool:
            frame[RESULT] = value(frame)
            return True

        return run

    def _AnnAssign(self, node: ast.AnnAssign) -> Callable[[list], Any]:
        if node.value is None:
            raise self.refused(node, "a variable without a value")
        value, store = self.expression(node.value), self.target(node.target)
        return lambda frame: store(frame, value(frame))

    def _Assign(self, node: ast.Assign) -> Callable[[list], Any]:
        if len(node.targets) != 1:
            raise self.refused(node, "several targets of one value")
        value, target = self.expression(node.value), node.targets[0]
        if isinstance(target, ast.Name):
            slot = self.slot(target.id)

            def run(frame: list) -> None:
                frame[slot] = value(frame)

            return run
        store = self.target(target)
        return lambda frame: store(frame, value(frame))

    def target(self, node: ast.expr) -> Callable[[list, Any], None]:
        """What stores a value in a variable, in several, in an attribute or an element."""
        if isinstance(node, ast.Name):
            slot = self.slot(node.id)

            def store(frame: list, value: Any) -> None:
                frame[slot] = value

        elif isinstance(node, (ast.Tuple, ast.List)):
            stores = [self.target(one) for one in node.elts]

            def store(frame: list, value: Any) -> None:
                if not isinstance(value, (tuple, list)):
                    raise TypeError(f"a {type(value).__name__} cannot be unpacked")
                if len(value) != len(stores):
                    raise RuntimeError(
                        f"Provided list or tuple of length {len(value)}, but {len(stores)} values are unpacked"
                    )
                for one, part in zip(stores, value):
                    one(frame, part)

        elif isinstance(node, ast.Attribute):
            owner, name = self.expression(node.value), name_of(node.attr)

            def store(frame: list, value: Any) -> None:
                held = owner(frame)
                if not self.is_object(held):
                    raise TypeError(f"a {type(held).__name__} has no attribute {name} to set")
                held._script_set(name, value)

        elif isinstance(node, ast.Subscript):
            owner, index = self.expression(node.value), self.expression(node.slice)

            def store(frame: list, value: Any) -> None:
                held = owner(frame)
                if type(held) not in (list, dict):
                    raise TypeError(f"elements of a {type(held).__name__} cannot be set")
                held[index(frame)] = value

        else:
            raise self.refused(node, f"{type(node).__name__} cannot be assigned to")
        return store

    def _If(self, node: ast.If) -> Callable[[list], Any]:
        test, then, other = self.condition(node.test), self.block(node.body), self.block(node.orelse)
        return lambda frame: then(frame) if test(frame) else other(frame)

    def _While(self, node: ast.While) -> Callable[[list], Any]:
        if node.orelse:
            raise self.refused(node, "else of a loop")
        test, body = self.condition(node.test), self.block(node.body)

        def run(frame: list) -> Any:
            while test(frame):
                if body(frame):
                    return True
            return None

        return run

    def _For(self, node: ast.For) -> Callable[[list], Any]:
        call = node.iter
        counts = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range"
        if node.orelse or not counts or len(call.args) != 1 or call.keywords:  # type: ignore[union-attr]
            raise self.refused(node, "a loop over anything but range(n)")
        count, store, body = self.expression(call.args[0]), self.target(node.target), self.block(node.body)  # type: ignore[union-attr]

        def run(frame: list) -> Any:
            for number in range(count(frame)):
                store(frame, number)
                if body(frame):
                    return True
            return None

        return run

    def _With(self, node: ast.With) -> Callable[[list], Any]:
        managers = [(self.expression(item.context_expr), item.optional_vars) for item in node.items]
        stores = [None if target is None else self.target(target) for _, target in managers]
        body = self.block(node.body)

        def run(frame: list) -> Any:
            entered: list[Instance] = []
            try:
                for (value, _), store in zip(managers, stores):
                    manager = value(frame)
                    if type(manager) is not Instance:
                        raise TypeError(f"a {type(manager).__name__} cannot be entered")
                    result = self.library.method(manager, "__enter__")(manager)
                    entered.append(manager)
                    if store is not None:
                        store(frame, result)
                return body(frame)
            finally:
                for manager in reversed(entered):
                    self.library.method(manager, "__exit__")(manager, None, None, None)

        return run

    def _Assert(self, node: ast.Assert) -> Callable[[list], Any]:
        test = self.condition(node.test)
        text = self.expression(node.msg or ast.Constant(""))

        def run(frame: list) -> None:
            if not test(frame):
                raise Raised(f"AssertionError: {text(frame)}".removesuffix(": "), "")

        return run

    def _Delete(self, node: ast.Delete) -> Callable[[list], Any]:
        pairs = []
        for target in node.targets:
            if not isinstance(target, ast.Subscript):
                raise self.refused(node, "del of anything but an element")
            pairs.append((self.expression(target.value), self.expression(target.slice)))

        def run(frame: list) -> None:
            for owner, index in pairs:
                held = owner(frame)
                if type(held) not in (list, dict):
                    raise TypeError(f"elements of a {type(held).__name__} cannot be deleted")
                del held[index(frame)]

        return run
