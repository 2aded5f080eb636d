"""`torch.layout` and `torch.memory_format`: names that some arguments take."""

from __future__ import annotations

from . import _state


class _Named:
    __slots__ = ("name",)
    name: str

    def __init__(self, name: str):
        object.__setattr__(self, "name", name)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"attribute '{name}' of '{type(self).__name__}' objects is not writable")

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self):
        return self.name if _state.serves_torch else (_by_name, (self.name,))

    def __copy__(self):
        return self

    def __deepcopy__(self, memo: dict):
        return self


class layout(_Named):
    """How a tensor's elements are held. Tensors here are `strided`; the other names exist to be compared with."""

    __slots__ = ()


class memory_format(_Named):
    """The order of dimensions in memory."""

    __slots__ = ()


for _kind in (layout, memory_format):
    _kind.__module__ = "torch"

LAYOUTS = {
    name: layout(name)
    for name in ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "_mkldnn", "jagged")
}
MEMORY_FORMATS = {
    name: memory_format(name) for name in ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
}
strided = LAYOUTS["strided"]
contiguous_format = MEMORY_FORMATS["contiguous_format"]
preserve_format = MEMORY_FORMATS["preserve_format"]
channels_last = MEMORY_FORMATS["channels_last"]
channels_last_3d = MEMORY_FORMATS["channels_last_3d"]


def _by_name(name: str) -> _Named:
    return LAYOUTS.get(name) or MEMORY_FORMATS[name]
