"""Members of Tensor that are sugar over operators: transposes, splits, in-place geometry."""

from __future__ import annotations

from typing import Any

from ..._autograd import wiring as _wiring  # noqa: F401 (connects the extension)
from ..._dispatch import native, ops
from ..._pending import exposed, settled
from ..._tensor import Tensor, bump_version
from .signatures import checked


def split(self: Tensor, split_size: Any, dim: int = 0) -> tuple:
    """Pieces along a dimension: of one size, or of the sizes in a list. Views."""
    from ..functions.sugar import split as split_function

    return split_function(self, split_size, dim)


def norm(self: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The vector or matrix norm."""
    from ..functions.sugar import norm as norm_function

    return norm_function(self, p, dim, keepdim, dtype=dtype)


def stft(self: Tensor, n_fft: int, *args: Any, **kwargs: Any) -> Tensor:
    """The Fourier transforms of overlapping frames: see `torch.stft`."""
    from ..functions.sugar import stft as stft_function

    return stft_function(self, n_fft, *args, **kwargs)


def lu(self: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple:
    """The factorisation into L and U: see `torch.lu`."""
    from ..functions.sugar import lu as lu_function

    return lu_function(self, pivot, get_infos)


def unique_consecutive(self: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Any = None) -> Any:
    """The first of each run of equal elements: see `torch.unique_consecutive`."""
    from ..functions.sugar import unique_consecutive as unique_function

    return unique_function(self, return_inverse, return_counts, dim)


def nonzero(self: Tensor, *, as_tuple: bool = False) -> Any:
    """The indices of the non-zero elements: a matrix of rows, or a tuple of index vectors."""
    if as_tuple is False:
        return ops.nonzero(self)
    from ..functions.sugar import nonzero as nonzero_function

    return nonzero_function(self, as_tuple=as_tuple)


def unique(
    self: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    """The distinct elements."""
    from ..functions.sugar import unique as unique_function

    return unique_function(self, sorted, return_inverse, return_counts, dim)


def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one shape. RuntimeError for a nested one beside this one, which is not."""
    if other.is_nested:
        raise RuntimeError(
            "Expected both self and other to be nested tensors. Self is not nested. While Other is nested."
        )
    return self._payload.shape == other._payload.shape


def apply_(self: Tensor, function: Any) -> Tensor:
    """Replace each element by `function(element)`; for CPU tensors without history."""
    if self.device.type != "cpu":
        raise TypeError("apply_ is only implemented on CPU tensors")
    if self.requires_grad:
        raise RuntimeError("Can't call apply_() on Variable that requires grad. Use var.detach().apply_() instead.")
    data = exposed(self)
    flat = [function(value) for value in data.reshape(-1).tolist()]
    data[...] = data.dtype.type(0) if not flat else _array(flat, self)
    return self


def map_(self: Tensor, other: Tensor, function: Any) -> Tensor:
    """Replace each element `a` by `function(a, b)`, with `b` from another tensor that is expanded to the shape; for CPU tensors without history."""
    return _map(self, "map_", (other,), function)


def map2_(self: Tensor, x: Tensor, y: Tensor, function: Any) -> Tensor:
    """`map_` with a function of three elements."""
    return _map(self, "map2_", (x, y), function)


def _map(self: Tensor, name: str, others: tuple, function: Any) -> Tensor:
    if self.device.type != "cpu" or any(other.device.type != "cpu" for other in others):
        raise TypeError(f"{name} is only implemented on CPU tensors")
    if self.requires_grad or any(other.requires_grad for other in others):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    if any(other.dtype is not self.dtype for other in others):
        raise TypeError(f"{name}(): all tensors must have the same dtype")
    columns = [settled(other.expand_as(self)).reshape(-1).tolist() for other in others]
    data = exposed(self)
    flat = [function(*values) for values in zip(data.reshape(-1).tolist(), *columns)]
    if flat:
        data[...] = _array(flat, self)
    bump_version(self)
    return self


def _array(values: list, like: Tensor) -> Any:
    import numpy as np

    wrong = next((value for value in values if isinstance(value, str)), None)
    if wrong is not None:
        raise TypeError("must be real number, not str")
    return np.asarray(values, dtype=settled(like).dtype).reshape(like._payload.shape)


def _set_real(self: Tensor, value: Any) -> None:
    _write(ops.real(self), value)


def _set_imag(self: Tensor, value: Any) -> None:
    _write(ops.imag(self), value)


def _write(part: Tensor, value: Any) -> None:
    """Write a tensor or a number into a view."""
    if isinstance(value, Tensor):
        ops.copy_(part, value)
    else:
        part[...] = value


MEMBERS: dict[str, Any] = {
    "T": property(ops.numpy_T),
    "mT": property(ops.mT),
    "H": property(ops.matrix_H),
    "mH": property(ops.mH),
    "real": property(lambda self: ops.real(self), _set_real),
    "imag": property(lambda self: ops.imag(self), _set_imag),
    "split": split,
    "norm": norm,
    "lu": lu,
    "stft": stft,
    "nonzero": nonzero,
    "unique": unique,
    "unique_consecutive": unique_consecutive,
    "apply_": apply_,
    "map_": map_,
    "map2_": map2_,
    "is_same_size": is_same_size,
}
ATTACHED = native.members(Tensor, checked(MEMBERS))
