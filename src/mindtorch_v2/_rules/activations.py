"""Rules of activations and of their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _dtype as _d
from ._common import check_dtype, wrap_dim
from .geometry import elementwise_strides, format_strides
from .pointwise import _check_number, elementwise
from .spec import Spec, rule


@rule(flops="numel(out)", batch="elements")
def relu(self: Any) -> Spec:
    """Integers and floating types; RuntimeError for bool, NotImplementedError for complex numbers."""
    if self.dtype is _d.bool:
        raise RuntimeError("Boolean inputs not supported for relu")
    if self.dtype.is_complex:
        raise NotImplementedError("clamp is not supported for complex types")
    return elementwise(self)


@rule(flops="numel(out)", batch="elements")
def activation(
    self: Any,
    op: str,
    dtypes: str = "floating_real",
    approximate: str | None = None,
    numbers: Sequence[Any] = (),
    lambd: Any = 0,
    divisor: Any = 1,
    widen: bool = True,
) -> Spec:
    """Floating types only; NotImplementedError for others. approximate: gelu's argument, 'none' or 'tanh'. numbers:
    what self's dtype must hold. lambd: softshrink's argument, RuntimeError when negative. divisor: celu's alpha,
    RuntimeError when 0. widen: half types are computed in float32."""
    if divisor == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    if lambd < 0:
        limit = f"{_d.finfo(self.dtype).max:g}" if self.dtype.is_floating_point else "0"
        raise RuntimeError(
            f"lambda must be in range [0, {limit}] for input dtype {self.dtype.cpp}, but found {lambd:g}"
        )
    for value in numbers:
        _check_number(value, self.dtype)
    if approximate not in (None, "none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return elementwise(self, dtypes=dtypes, op=op, widen=widen)


@rule(flops="numel(out)", batch="elements")
def hardtanh(self: Any, min_val: Any, max_val: Any) -> Spec:
    """Real numbers between two bounds, which self's dtype must hold. RuntimeError for bools, and for negative bounds of
    unsigned integers."""
    if self.dtype is _d.bool:
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if self.dtype.is_complex:
        raise NotImplementedError("clamp is not supported for complex types")
    if self.dtype is _d.uint8 and (min_val < 0 or max_val < 0):
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    return activation(self, "hardtanh", "real_numeric", numbers=(min_val, max_val))


@rule(flops="2 * numel(out)", batch="elements")
def activation_backward(
    grad: Any,
    self: Any,
    op: str = "activation_backward",
    dtypes: str = "floating_real",
    approximate: str | None = None,
    slope: Any = None,
    widen: bool = True,
) -> Spec:
    """The gradient of an activation: the two operands broadcast and promote. op: the kernel; dtypes: those it knows.
    approximate: gelu's argument. slope: what must not be negative, where only the result is known.
    widen: half types are computed in float32."""
    if approximate not in (None, "none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    if slope is not None and slope < 0:
        name = "leakyReLu" if op.startswith("leaky") else "elu"
        raise RuntimeError(
            f"In-place {name} backward calculation is triggered with a negative slope which is not supported. This is "
            "caused by calling in-place forward function with a negative slope, please call out-of-place version "
            "instead."
            + (
                " File an issue at https://github.com/pytorch/pytorch if you do require supporting in-place leakRelu "
                "backward calculation with negative slope"
                if name == "leakyReLu"
                else ""
            )
        )
    return elementwise(grad, self, dtypes=dtypes, op=op, widen=widen)


@rule(flops="numel(out)", batch="elements")
def prelu_kernel(self: Any, weight: Any) -> Spec:
    """self and a weight that broadcasts, of one floating dtype."""
    if self.dtype is not weight.dtype:
        raise RuntimeError(f"Found dtype {weight.dtype.cpp} but expected {self.dtype.cpp}")
    return elementwise(self, weight, dtypes="floating_real", op="prelu_cpu")


def prelu(self: Any, weight: Any) -> Spec:
    """weight has one element, or one per channel (dimension 1 of self). RuntimeError otherwise."""
    if self.dtype is not weight.dtype:
        raise RuntimeError(f"prelu: Type promoting not supported. Got {self.dtype.cpp} and {weight.dtype.cpp}")
    if weight.numel() != 1:
        if not self.dim():
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = self.shape[1] if self.dim() > 1 else 1
        if channels != weight.numel():
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {weight.numel()} "
                f"and channel size = {channels}."
            )
    if weight.dim() > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.dim()}")
    check_dtype(self.dtype, "floating_real", "prelu_cpu")
    return Spec(tuple(self.shape), self.dtype, format_strides(self), self.dtype.opmath)


@rule(flops="numel(out)", batch="along")
def glu(self: Any, dim: int = -1) -> Spec:
    """Half as long in `dim`, which must be even."""
    if not self.dim():
        raise RuntimeError("glu does not support scalars because halving size must be even")
    at = wrap_dim(dim, self.dim())
    if self.shape[at] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {at} is size {self.shape[at]}")
    check_dtype(self.dtype, "floating_real", "glu_cpu")
    shape = list(self.shape)
    shape[at] //= 2
    half = tuple(shape), self.stride()
    return Spec(half[0], self.dtype, elementwise_strides(half[0], [half, half]), self.dtype.opmath)
