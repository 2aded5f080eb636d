"""`torch.linalg`: the schema's operators of that namespace."""

from __future__ import annotations

from ._api.functions.namespaces import operators_of as _operators_of
from ._backends.common.errors import LinAlgError

__all__ = ["LinAlgError"]
__getattr__, __dir__ = _operators_of("linalg", globals())
