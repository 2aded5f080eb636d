"""Members of a class that are made when they are first used."""

from __future__ import annotations

import importlib
from typing import Any


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
