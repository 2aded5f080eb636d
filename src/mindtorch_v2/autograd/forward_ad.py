"""`torch.autograd.forward_ad`: derivatives along a direction, computed with the values.

See Note [Tangents] in `_autograd/forward.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import _state
from .._autograd.forward import Tangents, suspended
from .._autograd.modes import _Mode
from .._dispatch import ops
from .._state import TLS
from .._tensor import Tensor

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

_current_level = -1


class UnpackedDualTensor(NamedTuple):
    """A tensor without its tangent, and the tangent or None."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Begin a level, in which tensors may have tangents; its number. RuntimeError inside another level."""
    global _current_level
    if TLS.tangents is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    TLS.tangents = Tangents()
    TLS.tangents.enabled = _enabled
    _current_level = 0
    _state.enter_special()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level: all tangents are gone. RuntimeError for another level than the last one."""
    global _current_level
    if level is None:
        level = _current_level
    if level != _current_level:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    if level < 0:
        raise RuntimeError("Dual level must be a positive number.")
    TLS.tangents = None
    _current_level = -1
    _state.leave_special()


def _check(tensor: Any, what: str) -> None:
    if not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
        raise ValueError(f"Expected {what} to be floating point or complex, but got: {tensor.dtype}")


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A view of a tensor that has a tangent.

    Args:
        tensor, tangent: of one shape, floating point or complex.
        level: the number of the level; the current one by default.

    Raises:
        RuntimeError: outside of a level, for another shape, and for a tensor that has a tangent already.
        ValueError: for integers and bools.
    """
    if level is None:
        level = _current_level
    if level < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    _check(tensor, "primal")
    _check(tangent, "tangent")
    if level != _current_level:
        raise RuntimeError("Invalid level given to _make_dual")
    tangents = TLS.tangents
    if tangents.of(tensor) is not None:
        raise RuntimeError(
            f"Making a dual Tensor based on a Tensor that already has a forward gradient at the same level {level} is not supported."
        )
    if tangents.of(tangent) is not None:
        raise RuntimeError(
            f"Making a dual Tensor with a tangent that has a forward gradient at the same level {level} is not supported."
        )
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. Tensor is "
            f"of size {list(tensor.shape)} while the given forward gradient is of size {list(tangent.shape)}."
        )
    with suspended():
        made = ops.view_as(tensor, tensor)
        # Parts of the tensor's memory are parts of the tangent's.
        alike = tangent.stride() == tensor.stride()
        if not (_is_plain(tensor) and _is_plain(tangent)):  # an example of a batch, or a wrapper
            if not alike:
                laid_out = ops.new_empty_strided(tangent, tuple(tensor.shape), tensor.stride())
                tangent = ops.copy_(laid_out, tangent)
        elif not alike or _memory(tensor) != _memory(tangent):
            memory = ops.zeros((_memory(tensor),), dtype=tangent.dtype, device=tangent.device)
            laid_out = ops.as_strided(memory, tuple(tensor.shape), tensor.stride(), tensor.storage_offset())
            tangent = ops.copy_(laid_out, tangent)
    tangents.set(made, tangent)
    return made


def _is_plain(tensor: Tensor) -> bool:
    return _state.is_plain_class(tensor.__class__)


def _memory(tensor: Tensor) -> int:
    """How many elements the memory of a tensor has room for."""
    return tensor.untyped_storage().nbytes() // tensor.element_size()


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """(the tensor without its tangent, the tangent); the tangent is None where there is none, and outside of all levels."""
    if level is None:
        level = _current_level
    if level < 0:
        return UnpackedDualTensor(tensor, None)
    tangent = TLS.tangents.of(tensor)
    with suspended():
        return UnpackedDualTensor(ops.view_as(tensor, tensor), tangent)


class dual_level(_Mode):
    """`enter_dual_level` and `exit_dual_level` as a context manager and a decorator."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: object) -> None:
        exit_dual_level()


_enabled = True


class _set_fwd_grad_enabled(_Mode):
    """Compute tangents or not: at once as a function, and until its end as a context manager."""

    def __init__(self, mode: bool) -> None:
        self.before = _enabled
        self.mode = mode
        _enable(mode)

    def _clone(self) -> _set_fwd_grad_enabled:
        return type(self)(self.mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        _enable(self.before)


def _enable(mode: bool) -> None:
    global _enabled
    _enabled = mode
    if TLS.tangents is not None:
        TLS.tangents.enabled = mode


def _is_fwd_grad_enabled() -> bool:
    return _enabled
