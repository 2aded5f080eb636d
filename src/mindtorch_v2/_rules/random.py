"""Rules of random numbers. What a distribution refuses is said once, in `distributions`, for kernels and rules alike."""

from __future__ import annotations

from typing import Any

from .. import _dtype as _d
from .._dtype import dtype
from . import distributions as checks
from ._common import broadcast, checked_size, is_tensor
from .geometry import format_strides, numel
from .gradients import check_expands
from .spec import Spec, rule


def _check_floating(target: dtype, count: int, op: str, std: float = 1.0) -> None:
    """rand or randn into `count` numbers. Normal kernels look at the dtype only when there is something to fill."""
    if op == "rand":
        checks.uniform(target, 0, 1)
    else:
        checks.normal(target if count else _d.float32, std)


@rule(flops="0")
def floating_factory(size: Any, dtype: dtype | None = None, op: str = "rand", std: float = 1.0) -> Spec:
    """rand and randn: contiguous, of the default dtype; NotImplementedError for integers."""
    target = dtype or _d.get_default_dtype()
    shape = checked_size(size)
    _check_floating(target, numel(shape), op, std)
    return Spec(shape, target)


@rule(flops="0", batch="elements")
def floating_like(self: Any, dtype: dtype | None = None, memory_format: Any = None, op: str = "rand") -> Spec:
    """rand_like and randn_like: self's geometry in a memory format; NotImplementedError for integers."""
    target = dtype or self.dtype
    stride = format_strides(self, memory_format)
    _check_floating(target, self.numel(), op)
    return Spec(tuple(self.shape), target, stride)


@rule(flops="0")
def randint(low: int, high: int, size: Any, dtype: dtype | None = None) -> Spec:
    """Integers from low up to high - 1: int64 unless a dtype is given."""
    target = dtype or _d.int64
    shape = checked_size(size)
    checks.random_from_to(target, low, high, warn=False)
    return Spec(shape, target)


@rule(flops="0", batch="elements")
def randint_like(self: Any, low: int, high: int, dtype: dtype | None = None, memory_format: Any = None) -> Spec:
    """self's geometry in a memory format, with the range checked as in `randint`."""
    target = dtype or self.dtype
    stride = format_strides(self, memory_format)
    checks.random_from_to(target, low, high, warn=False)
    return Spec(tuple(self.shape), target, stride)


@rule(flops="0")
def randperm(n: int, dtype: dtype | None = None) -> Spec:
    """The numbers below n in random order: int64 by default. RuntimeError if the dtype cannot hold them."""
    target = dtype or _d.int64
    shape = checked_size((n,))
    checks.randperm(target, n)
    return Spec(shape, target)


@rule(flops="0")
def random_like(
    self: Any,
    op: str,
    from_: Any = None,
    to: Any = None,
    std: float = 1.0,
    p: Any = None,
    rate: float = 1.0,
) -> Spec:
    """self's geometry, filled with random numbers in place. op: uniform, normal, bernoulli, random, exponential,
    log_normal, geometric, cauchy; std is cauchy's sigma too. The errors are those of `distributions`.
    """
    target = self.dtype
    if op == "uniform":
        checks.uniform(target, 0.0 if from_ is None else from_, 1.0 if to is None else to)
    elif op == "normal":
        checks.normal(target if self.numel() else _d.float32, std)
    elif op == "random":
        if from_ is None:
            checks.random(target)
        else:
            checks.random_from_to(target, from_, to, warn=False)
    elif op == "bernoulli":
        if is_tensor(p):
            checks.bernoulli_tensor(target, p.dtype)
            check_expands(p.shape, self.shape)
        else:
            checks.bernoulli(target, p)
    elif op == "geometric":
        checks.geometric(target, p)
    elif op == "exponential":
        checks.exponential(target if self.numel() else _d.float32, rate)
    elif op == "cauchy":
        checks.cauchy(target, std)
    elif op == "log_normal":
        # PyTorch looks at the memory before the dtype; the dispatcher refuses memory that overlaps.
        overlaps = any(not step and size > 1 for size, step in zip(self.shape, self.stride(), strict=True))
        checks.log_normal(_d.float32 if overlaps or not self.numel() else target, std)
    else:
        raise ValueError(f"unknown distribution '{op}'")
    return Spec(tuple(self.shape), target, format_strides(self))


@rule(flops="0", batch="elements")
def normal(mean: Any, std: Any) -> Spec:
    """Normal numbers from means and deviations, at least one of them a tensor: contiguous, of mean's dtype."""
    target = mean.dtype if is_tensor(mean) else std.dtype
    shape = broadcast(getattr(mean, "shape", ()), getattr(std, "shape", ()))
    if is_tensor(std) and std.dtype.is_complex:
        raise RuntimeError("normal expects standard deviation to be non-complex")
    checks.normal(target if numel(shape) else _d.float32, 1.0 if is_tensor(std) else std)
    return Spec(shape, target, None, target.opmath)


@rule(flops="0", batch="elements")
def bernoulli(self: Any, p: float | None = None) -> Spec:
    """0 or 1 with the probabilities of self (floating dtypes), or with p: contiguous."""
    if p is None:
        if self.numel():
            checks.bernoulli_tensor(self.dtype, self.dtype)
    else:
        checks.bernoulli(self.dtype, p)
    return Spec(tuple(self.shape), self.dtype)


@rule(flops="0", batch="elements")
def poisson(self: Any) -> Spec:
    """Counts with the rates of self (floating dtypes): contiguous."""
    checks.poisson(self.dtype)
    return Spec(tuple(self.shape), self.dtype)


@rule(flops="0", batch="elements")
def drawn(op: str, **parameters: Any) -> Spec:
    """Numbers with parameters of their own for each element, which are broadcast and all float32 or all float64: contiguous, of that dtype."""
    checks.drawn({name: value.dtype for name, value in parameters.items()}, op)
    first, *others = parameters.values()
    shape = tuple(first.shape)
    for other in others:
        shape = broadcast(shape, other.shape)
    return Spec(shape, first.dtype)
