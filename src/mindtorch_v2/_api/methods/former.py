"""Members of Tensor that torch once had, or keeps for old programs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NoReturn

from ..._dispatch import native
from ..._tensor import Tensor
from ..functions import removed
from .signatures import checked


def _removed(name: str) -> Callable[..., NoReturn]:
    function = getattr(removed, name)

    def method(self: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
        return function(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"RuntimeError that says what serves in the place of `{name}`."
    return method


def resize(self: Tensor, *sizes: Any) -> Tensor:
    """The elements in another shape. Deprecated, as it warns; RuntimeError when the number of elements is another."""
    warnings.warn("non-inplace resize is deprecated", stacklevel=2)
    shape = tuple(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    count = 1
    for size in shape:
        count *= size
    if count != self.numel():
        raise RuntimeError(
            f"requested resize to {'x'.join(map(str, shape))} ({count} elements in total), but the given tensor has a size of "
            f"{'x'.join(map(str, self.shape))} ({self.numel()} elements). autograd's resize can only change the shape of a given tensor, "
            "while preserving the number of elements. "
        )
    return self.contiguous().view(shape)


def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """`resize` to the shape of another tensor."""
    warnings.warn("non-inplace resize_as is deprecated", stacklevel=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return resize(self, tuple(tensor.shape))


def reinforce(self: Tensor, reward: Any) -> NoReturn:
    """RuntimeError: `torch.distributions` serves."""
    raise RuntimeError("reinforce() was removed.\nUse torch.distributions instead.")


def const_data_ptr(self: Tensor) -> int:
    """The address of the first element."""
    return self.data_ptr()


def __long__(self: Tensor) -> int:
    """The one element as an int."""
    return int(self)


def __nonzero__(self: Tensor) -> bool:
    """Whether the one element is not zero."""
    return bool(self)


def _grad_dtype(self: Tensor) -> Any:
    """The dtype of the gradient: the tensor's own."""
    return self.dtype


def _name(self: Tensor) -> None:
    """None: no tensor has a name."""


MEMBERS: dict[str, Any] = {
    **{name: _removed(name) for name in ("eig", "lstsq", "solve", "symeig")},
    "resize": resize,
    "resize_as": resize_as,
    "reinforce": reinforce,
    "const_data_ptr": const_data_ptr,
    "__long__": __long__,
    "__nonzero__": __nonzero__,
    "grad_dtype": property(_grad_dtype),
    "name": property(_name),
}
ATTACHED = native.members(Tensor, checked(MEMBERS))
