"""`torch.linalg`: the schema's operators of that namespace."""

from __future__ import annotations

from ._generated import functions as _functions

for _public, _name in _functions.NAMESPACES.get("linalg", {}).items():
    globals()[_public] = getattr(_functions, _name)


class LinAlgError(RuntimeError):
    """A matrix does not allow the operation."""
