"""Short names of dtypes, as logs of operators write them: `f32`, `bf16`, `i64`."""

from __future__ import annotations

from .._dtype import DTYPES, dtype

_KINDS = {"bfloat": "bf", "float": "f", "complex": "c", "uint": "u", "int": "i"}


def _short(name: str) -> str:
    if name == "bool":
        return "b8"
    kind = next((kind for kind in _KINDS if name.startswith(kind)), "")
    return _KINDS.get(kind, "") + name[len(kind) :]


dtype_abbrs: dict[dtype, str] = {kind: _short(name) for name, kind in DTYPES.items()}
