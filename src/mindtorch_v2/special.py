"""`torch.special`: the schema's operators of that namespace."""

from __future__ import annotations

from ._api.functions.namespaces import operators_of as _operators_of

__getattr__, __dir__ = _operators_of("special", globals())
