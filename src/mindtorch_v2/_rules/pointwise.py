"""Rules of operators that treat each element alone: broadcasting, promotion, memory order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from .. import _dtype as _d
from .._dtype import dtype
from ._common import (
    broadcast,
    check_dtype,
    is_tensor,
    not_implemented,
    promoted_geometry,
    shape_text,
)
from .geometry import Geometry, Shape, elementwise_strides, format_strides, geometry
from .promotion import result_type, scalar_dtype
from .spec import Spec, rule

_SCALAR: Geometry = ((), ())


def _result_dtype(promoted: dtype, result: dtype | str | None) -> dtype:
    if result is None:
        return promoted
    if isinstance(result, dtype):
        return result
    return promoted.to_real() if result == "real" else _d.DTYPES[result]


def _check_alpha(alpha: Any, promoted: dtype, name: str = "alpha") -> None:
    if isinstance(alpha, bool) and promoted is not _d.bool:
        raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
    if isinstance(alpha, complex) and not promoted.is_complex:
        raise RuntimeError(f"For non-complex input tensors, argument {name} must not be a complex number.")
    if isinstance(alpha, float) and promoted.category < _d.CATEGORY_FLOATING:
        raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")
    _check_number(alpha, promoted)


def _overflows(value: Any, target: dtype) -> bool:
    """Whether the number does not fit. Negative integers wrap around in unsigned types."""
    if target is _d.bool:
        return False
    if isinstance(value, complex):
        if target.is_complex:
            return any(_overflows(part, target.to_real()) for part in (value.real, value.imag))
        if value.imag:
            return True
        value = value.real
    if target.category is _d.CATEGORY_INTEGER:
        limits = _d.iinfo(target)
        if isinstance(value, float):
            return not limits.min <= value <= limits.max
        return not (limits.min if target.is_signed else -limits.max) <= value <= limits.max
    if target.to_real() is _d.float32:
        return _FLOAT32_MAX < abs(value) < math.inf
    return False


_FLOAT32_MAX = _d.finfo(_d.float32).max
_HALVES = {half: _d.finfo(half).max for half in (_d.float16, _d.bfloat16)}


def _check_number(value: Any, target: dtype) -> None:
    """RuntimeError for a number that the dtype cannot hold: one with an imaginary part, or out of its range."""
    if value is not None and _overflows(value, target):
        raise RuntimeError(f"value cannot be converted to type {_c_type(target)} without overflow")


def check_fill(value: Any, target: dtype) -> None:
    """As `_check_number`, for numbers that become elements as they are: half types have their own range."""
    if target in _HALVES and value.__class__ is not bool:
        if _overflows(value, target) or _HALVES[target] < abs(value) < math.inf:
            raise RuntimeError(f"value cannot be converted to type c10::{target.cpp} without overflow")
    else:
        _check_number(value, target)


def _c_type(d: dtype) -> str:
    """The C++ type that a number is converted to; the small floating types are made from a double."""
    if d is _d.int32:
        return "int"
    if d.category is _d.CATEGORY_INTEGER:
        return f"{d.name}_t"
    return "double" if d.is_floating_point and d is not _d.float32 else d.ctype


def _broadcast_all(operands: Iterable[Any]) -> Shape:
    """The shape to which the tensors among the operands broadcast."""
    shape: Shape | None = None
    for operand in operands:
        if is_tensor(operand):
            sizes = tuple(operand.shape)
            if shape is None:
                shape = sizes
            elif shape != sizes:
                shape = broadcast(shape, sizes)
    return shape or ()


def _strides(shape: Shape, operands: Iterable[Any], promoted: dtype | None, others: Iterable[Any] = ()) -> Shape | None:
    """The strides of the result. `others` come before the operands and are not cast to the promoted dtype."""
    places: list[Geometry] = [geometry(operand) for operand in others]
    for operand in operands:
        if not is_tensor(operand):
            places.append(_SCALAR)
        else:
            places.append(geometry(operand) if promoted is None else promoted_geometry(operand, promoted))
    return elementwise_strides(shape, places)


def _joined(operands: Sequence[Any], promoted: dtype | None) -> tuple[Shape, Shape | None]:
    """The broadcast shape and the strides."""
    shape = _broadcast_all(operands)
    return shape, _strides(shape, operands, promoted)


@rule(flops="numel(out)", inline="operands")
def elementwise(
    *operands: Any,
    dtypes: str = "all",
    float: bool = False,
    result: dtype | str | None = None,
    where: Any = None,
    alpha: Any = None,
    op: str = "",
    widen: bool = True,
) -> Spec:
    """Broadcast and promote tensors and numbers; None operands are left out.

    dtypes: the promoted dtypes that the kernel knows, else NotImplementedError. float: integers and bool become the
    default dtype.
    result: the dtype of the result if it is not the promoted one. where: tensors that broadcast, before the others, but
    do not promote. widen: half types are computed in float32.
    """
    present = [operand for operand in operands if operand is not None]
    others = () if where is None else where if isinstance(where, (list, tuple)) else (where,)
    shape = _broadcast_all((*others, *present))
    promoted = result_type(*present)
    if float and promoted.category < _d.CATEGORY_FLOATING:
        promoted = _d.get_default_dtype()
    if alpha is not None:
        _check_alpha(alpha, promoted)
    if dtypes != "all" or promoted in _d.FLOAT8:
        check_dtype(promoted, dtypes, op or "elementwise")
    stride = _strides(shape, present, promoted, others)
    return Spec(shape, _result_dtype(promoted, result), stride, promoted.opmath if widen else promoted)


@rule(flops="numel(out)", inline="bool")
def comparison(*operands: Any, dtypes: str = "all", op: str = "") -> Spec:
    """bool, compared in the promoted dtype."""
    return elementwise(*operands, dtypes=dtypes, result=_d.bool, op=op, widen=False)


@rule(flops="numel(out)", inline="operands")
def extremum(self: Any, other: Any, op: str = "maximum") -> Spec:
    """maximum, minimum, fmax, fmin: elementwise without complex numbers."""
    if result_type(self, other).is_complex:
        raise RuntimeError(f"{op} not implemented for complex tensors.")
    return elementwise(self, other)


@rule(flops="numel(out)")
def logical(*operands: Any) -> Spec:
    """bool; the kernel tests each operand in its own dtype."""
    shape, stride = _joined(operands, result_type(*operands))
    return Spec(shape, _d.bool, stride)


@rule(flops="numel(out)")
def bitwise(*operands: Any, op: str = "bitwise_and_cpu") -> Spec:
    """Integers and bool only."""
    return elementwise(*operands, dtypes="integral", op=op)


@rule(flops="numel(out)")
def shift(self: Any, other: Any, op: str = "lshift_cpu") -> Spec:
    """Integers only."""
    return elementwise(self, other, dtypes="integer", op=op)


def _is_bool(operand: Any) -> bool:
    return (operand.dtype if is_tensor(operand) else scalar_dtype(operand)) is _d.bool


@rule(flops="numel(out)", inline="operands")
def subtraction(self: Any, other: Any, alpha: Any = 1) -> Spec:
    """As elementwise; RuntimeError for bool operands."""
    first, second = _is_bool(self), _is_bool(other)
    if first and second:
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. "
            "Use the `^` or `logical_xor()` operator instead."
        )
    if first or second:
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. "
            "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
        )
    return elementwise(self, other, alpha=alpha)


@rule(flops="numel(out)", inline="operands")
def negation(self: Any) -> Spec:
    """As elementwise; RuntimeError for bool."""
    if self.dtype is _d.bool:
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. "
            "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
        )
    return elementwise(self)


@rule(flops="numel(out)")
def nan_to_num(self: Any) -> Spec:
    """As elementwise, computed in the dtype itself, half types too: the kernel must know the largest number."""
    shape, stride = _joined([self], self.dtype)
    return Spec(shape, self.dtype, stride)


@rule(flops="numel(out)", inline="operands")
def absolute(self: Any) -> Spec:
    """The magnitude: real for complex numbers; NotImplementedError for bool."""
    if self.dtype.is_complex:
        return Spec(tuple(self.shape), self.dtype.to_real(), format_strides(self), self.dtype.opmath)
    return elementwise(self, dtypes="numeric", op="abs_cpu")


@rule(flops="numel(out)")
def sign(self: Any) -> Spec:
    """Same dtype; NotImplementedError for complex numbers."""
    if self.dtype.is_complex:
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
        )
    return elementwise(self)


@rule(flops="numel(out)", inline="operands")
def rounding(self: Any, op: str = "round_vml_cpu", decimals: int = 0) -> Spec:
    """floor, ceil, trunc, round: real numbers in their own dtype; with decimals floating ones only."""
    name = op.partition("_")[0]
    if self.dtype.is_complex and name != "round":
        raise NotImplementedError(f"{name} is not supported for complex inputs")
    if decimals:
        return elementwise(self, dtypes="floating_real", op="round_cpu")
    return elementwise(self, dtypes="real_numeric", op=op)


@rule(flops="numel(out)")
def test(self: Any, op: str = "") -> Spec:
    """A bool per element, which the kernel reads in its own dtype (isnan, isinf). With op, RuntimeError for complex
    numbers."""
    if op and self.dtype.is_complex:
        if op == "signbit":
            raise NotImplementedError("signbit is not implemented for complex tensors.")
        raise RuntimeError(f"{op} does not support complex inputs.")
    return Spec(tuple(self.shape), _d.bool, elementwise_strides(tuple(self.shape), [geometry(self)]))


@rule(flops="numel(out)", inline="operands")
def pow(self: Any, exponent: Any) -> Spec:
    """RuntimeError for integers to a negative number, NotImplementedError for bool to bool."""
    if is_tensor(exponent):
        return elementwise(self, exponent, dtypes="numeric", op="pow")
    if isinstance(exponent, int) and exponent < 0 and self.dtype.category < _d.CATEGORY_FLOATING:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    return _with_numbers(self, result_type(self, exponent))


def _with_numbers(self: Any, promoted: dtype) -> Spec:
    """One tensor and numbers that are parameters of the kernel, not operands: they do not take part in the choice of
    strides."""
    shape = tuple(self.shape)
    return Spec(shape, promoted, _strides(shape, (self,), promoted), promoted.opmath)


@rule(flops="numel(out)", inline="operands")
def division(self: Any, other: Any, rounding_mode: str | None = None) -> Spec:
    """True division of integers is floating; 'trunc' and 'floor' keep the dtype and refuse bool and complex numbers."""
    if rounding_mode is None:
        return elementwise(self, other, float=True)
    if rounding_mode not in ("trunc", "floor"):
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    return elementwise(self, other, dtypes="real_numeric", op=f"div_{rounding_mode}_cpu")


@rule(flops="numel(out)")
def remainder(self: Any, other: Any, op: str = "remainder_cpu") -> Spec:
    """As elementwise, for real numbers; NotImplementedError for bool and complex ones."""
    return elementwise(self, other, dtypes="real_numeric", op=op)


@rule(flops="numel(out)", inline="operands")
def clamp(self: Any, min: Any = None, max: Any = None, one: bool = False) -> Spec:
    """Promotes with the given bounds, numbers or tensors. RuntimeError without a bound, NotImplementedError for
    complex numbers. one: clamp_min or clamp_max, whose kernel refuses these itself."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    for bound in (min, max):
        if isinstance(bound, complex):
            raise RuntimeError("value cannot be converted to type double without overflow")
    if self.dtype.is_complex and not (one and (is_tensor(min) or is_tensor(max))):
        raise NotImplementedError("clamp is not supported for complex types")
    if is_tensor(min) or is_tensor(max):
        if min is not None and max is not None:
            return elementwise(self, min, max, dtypes="real_numeric", op="clamp_cpu")
        return elementwise(self, min, max, dtypes="real", op="maximum_cpu" if max is None else "minimum_cpu")
    promoted = result_type(self, min, max)
    kernel = (
        "clamp_scalar_cpu"
        if min is not None and max is not None
        else f"clamp_{'min' if max is None else 'max'}_scalar_cpu"
    )
    check_dtype(promoted, "real_numeric", kernel)
    for bound in (min, max):
        if bound is not None:
            check_fill(bound, promoted)
    return _with_numbers(self, promoted)


@rule(flops="3 * numel(out)")
def lerp(self: Any, end: Any, weight: Any) -> Spec:
    """All of one floating dtype; a weight without dimensions may differ. RuntimeError otherwise."""
    for name, operand in (("end", end), ("weight", weight)):
        if is_tensor(operand) and operand.dtype is not self.dtype and (name == "end" or operand.dim()):
            raise RuntimeError(f"expected dtype {self.dtype.ctype} for `{name}` but got dtype {operand.dtype.ctype}")
    scalar = not is_tensor(weight) or not weight.dim()
    if not is_tensor(weight):
        _check_number(weight, self.dtype)
    check_dtype(self.dtype, "floating", "lerp_kernel_scalar" if scalar else "lerp_kernel_tensor")
    operands = (self, end) if scalar else (self, end, weight)
    shape, stride = _joined(operands, None)
    return Spec(shape, self.dtype, stride, self.dtype.opmath)


@rule(flops="2 * numel(out)")
def addcmul(self: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Spec:
    """self + value * tensor1 * tensor2."""
    promoted = result_type(self, tensor1, tensor2)
    _check_number(value, promoted)
    return elementwise(self, tensor1, tensor2, dtypes="numeric", op="addcmul_cpu_out")


@rule(flops="2 * numel(out)")
def addcdiv(self: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Spec:
    """self + value * tensor1 / tensor2. RuntimeError if both tensors are of integers."""
    if tensor1.dtype.category < _d.CATEGORY_FLOATING and tensor2.dtype.category < _d.CATEGORY_FLOATING:
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform "
            "a true division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as "
            "(input + value * torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as "
            "(input + value * tensor1 / tensor2) for float inputs. The future addcdiv behavior is just the latter "
            "implementation: (input + value * tensor1 / tensor2), for all dtypes."
        )
    promoted = result_type(self, tensor1, tensor2)
    _check_number(value, promoted)
    return elementwise(self, tensor1, tensor2)


@rule(flops="0")
def where(self: Any, other: Any, condition: Any) -> Spec:
    """self and other promote; the condition (bool, or uint8) broadcasts with them and is passed by keyword."""
    if condition.dtype is not _d.bool and condition.dtype is not _d.uint8:
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype.cpp}"
        )
    promoted = result_type(self, other)
    shape = _broadcast_all((condition, self, other))
    for operand in (self, other):
        if not is_tensor(operand):
            _check_number(operand, promoted)
    return Spec(shape, promoted, _strides(shape, (self, other), promoted, (condition,)), promoted)


@rule(flops="0", batch="elements")
def masked_fill(self: Any, mask: Any, value: Any) -> Spec:
    """Contiguous, of self's dtype, broadcast with the bool mask."""
    if mask.dtype is not _d.bool:
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype.ctype}")
    if is_tensor(value):
        if value.dim():
            raise RuntimeError(
                "masked_fill_ only supports a 0-dimensional value tensor, "
                f"but got tensor with {value.dim()} dimension(s)."
            )
    else:
        check_fill(value, self.dtype)
    return Spec(broadcast(mask.shape, self.shape), self.dtype)


@rule(flops="0", batch="elements")
def fill(self: Any, value: Any) -> Spec:
    """self's geometry, all of one value (a number or a tensor without dimensions)."""
    if is_tensor(value):
        if value.dim():
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {value.dim()} dimensions."
            )
    else:
        check_fill(value, self.dtype)
    return Spec(tuple(self.shape), self.dtype, format_strides(self))


@rule(flops="0", batch="copied")
def copy(self: Any, src: Any) -> Spec:
    """self's geometry and dtype. RuntimeError unless src broadcasts to self's shape."""
    shape = tuple(self.shape)
    joined = broadcast(shape, src.shape)
    if joined != shape:
        raise RuntimeError(
            f"output with shape {shape_text(shape)} doesn't match the broadcast shape {shape_text(joined)}"
        )
    return Spec(shape, self.dtype, format_strides(self))


@rule(flops="numel(out)")
def isin(elements: Any, test_elements: Any) -> Spec:
    """bool of elements' shape; RuntimeError for bool and complex inputs."""
    for operand in (elements, test_elements):
        if is_tensor(operand) and (operand.dtype is _d.bool or operand.dtype.is_complex):
            raise RuntimeError(f"Unsupported input type encountered for isin(): {operand.dtype.cpp}")
        if isinstance(operand, (bool, complex)):
            raise RuntimeError(f"Unsupported input type encountered for isin(): {scalar_dtype(operand).cpp}")
    promoted = result_type(elements, test_elements)
    return Spec(tuple(elements.shape) if is_tensor(elements) else (), _d.bool, None, promoted.opmath)


@rule(flops="numel(out)")
def heaviside(self: Any, values: Any) -> Spec:
    """Two tensors of one real dtype. RuntimeError for others."""
    if self.dtype.is_complex or values.dtype.is_complex:
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if self.dtype is not values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return elementwise(self, values, dtypes="real", op="heaviside")


@rule(flops="0")
def frexp(self: Any) -> tuple[Spec, Spec]:
    """(mantissa, int32 exponent). RuntimeError for dtypes that are not floating."""
    if not self.dtype.is_floating_point:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    spec = elementwise(self)
    return spec, Spec(spec.shape, _d.int32, spec.stride, spec.compute)


@rule(flops="numel(out)")
def polygamma(self: Any, n: int) -> Spec:
    """The n-th derivative of digamma. RuntimeError for a negative n."""
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return elementwise(self, float=True, dtypes="floating_real", op="polygamma")


@rule(flops="0", batch="elements")
def complex_of(real: Any, imag: Any, op: str = "complex") -> Spec:
    """complex and polar: two tensors of one floating dtype make a complex one."""
    known = (_d.float16, _d.float32, _d.float64)
    if real.dtype not in known or imag.dtype not in known:
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {real.dtype.cpp} and {imag.dtype.cpp}"
        )
    if real.dtype is not imag.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {real.dtype.cpp} but got scalar type {imag.dtype.cpp} for second argument"
        )
    if op == "polar" and real.dtype is _d.float16:
        raise not_implemented("polar_cpu", real.dtype)
    shape, stride = _joined((real, imag), None)
    return Spec(shape, real.dtype.to_complex(), stride, real.dtype.opmath)
