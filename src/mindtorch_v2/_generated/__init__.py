"""The generated floor: tables, functions, methods and autograd nodes, a module a family.

A family's modules are imported when one of its names is first used, so that importing the package stays cheap.

In a wheel the modules stand beside this file. In a checkout they stand in generated/ at its root, and only what type checkers read
stands here, since those do not follow a `__path__`.
"""

from __future__ import annotations

from os import path as _os_path

if not _os_path.isfile(_os_path.join(__path__[0], "functions/__init__.py")):
    __path__.append(_os_path.join(_os_path.abspath(__path__[0] + "/../../.."), "generated"))

from .._dispatch import ops
from . import functions, methods


def install(tensor: type) -> None:
    """Publish the functions, and attach methods and operators to the tensor class."""
    ops.publish(functions)
    methods.install(tensor)
