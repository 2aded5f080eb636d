"""Methods that are made when they are first used."""

from __future__ import annotations

import importlib
from typing import Any


class LazyMethod:
    """Stands for a generated method until somebody looks it up; then its whole family takes its place in the class."""

    __slots__ = ("owner", "family", "name")

    def __init__(self, owner: type, family: str, name: str):
        self.owner = owner
        self.family = family
        self.name = name

    def __get__(self, instance: Any, kind: Any = None) -> Any:
        methods = importlib.import_module(f"mindtorch_v2._generated.methods.{self.family}").METHODS
        space = vars(self.owner)
        for name, method in methods.items():
            if isinstance(space.get(name), LazyMethod):
                setattr(self.owner, name, method)
        return methods[self.name].__get__(instance, kind)
