"""Members of a class that are made when they are first used.

Note [Looked up or called]
A member is made when it is looked up. Where Python itself looks up a special method, it takes any exception for the absence of some of them (`_TAKEN_FOR_ABSENT`): were
a signal's handler to raise in the midst, `x == y` would be False, and `hash(x)` a TypeError. Those are there from the beginning, and make themselves when they are called.
"""

from __future__ import annotations

import importlib
from typing import Any

_TAKEN_FOR_ABSENT = frozenset("__hash__ __repr__ __iter__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__".split())


class LazyMethod:
    """Stands for a method until somebody looks it up; then all that its module's table holds takes its place in the class."""

    __slots__ = ("owner", "module", "table", "name")

    def __init__(self, owner: type, module: str, table: str, name: str):
        self.owner = owner
        self.module = module
        self.table = table
        self.name = name

    def resolve(self) -> Any:
        """The member itself, after the whole table has been put into the class."""
        members = getattr(importlib.import_module(self.module), self.table)
        space = vars(self.owner)
        for name, member in members.items():
            waiting = space.get(name)
            waiting = getattr(waiting, "waits", waiting)
            # Another module's member of the same name has taken the place of this one's.
            if isinstance(waiting, LazyMethod) and (waiting.module, waiting.table) == (self.module, self.table):
                setattr(self.owner, name, member)
        return members[self.name]

    def __get__(self, instance: Any, kind: Any = None) -> Any:
        member = self.resolve()
        bind = getattr(type(member), "__get__", None)
        return member if bind is None else bind(member, instance, kind)


class LazyProperty(LazyMethod):
    """The same for a property, which may be set or deleted before it was read."""

    __slots__ = ()

    def __set__(self, instance: Any, value: Any) -> None:
        self.resolve().__set__(instance, value)

    def __delete__(self, instance: Any) -> None:
        self.resolve().__delete__(instance)


def attach(kind: type[LazyMethod], owner: Any, module: str, table: str, name: str) -> None:
    """Have a member made when it is first looked up, or called; see Note [Looked up or called]."""
    lazy = kind(owner, module, table, name)
    setattr(owner, name, _made_in_call(lazy) if name in _TAKEN_FOR_ABSENT else lazy)


def _made_in_call(lazy: LazyMethod) -> Any:
    def method(self: Any, *args: Any) -> Any:
        return lazy.resolve()(self, *args)

    method.__name__ = lazy.name
    method.waits = lazy  # type: ignore[attr-defined]
    return method
