"""Invertible maps of values, with the logarithm of how they stretch space."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import mindtorch_v2 as mt

from . import constraints
from .independent import sum_rightmost

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "ComposeTransform",
    "ExpTransform",
    "PowerTransform",
    "SigmoidTransform",
    "SoftplusTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]


class Transform:
    """A map `y = f(x)`.

    Attributes:
        domain, codomain: where x and y lie.
        bijective: whether it has an inverse.
    """

    bijective = False
    domain: Any = constraints.real
    codomain: Any = constraints.real

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._cached: tuple[Any, Any] = (None, None)

    @property
    def event_dim(self) -> int:
        """How many of the last dimensions belong to one value."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    if TYPE_CHECKING:  # a property or an attribute
        sign: Any
    else:

        @property
        def sign(self) -> Any:
            """1 if the map increases, -1 if it decreases."""
            raise NotImplementedError

    @property
    def inv(self) -> Transform:
        """The inverse."""
        return _InverseTransform(self)

    def __call__(self, x: Any) -> Any:
        """`f(x)`."""
        if not self._cache_size:
            return self._call(x)
        if x is not self._cached[0]:
            self._cached = (x, self._call(x))
        return self._cached[1]

    def _inv_call(self, y: Any) -> Any:
        if not self._cache_size:
            return self._inverse(y)
        if y is not self._cached[1]:
            self._cached = (self._inverse(y), y)
        return self._cached[0]

    def _call(self, x: Any) -> Any:
        raise NotImplementedError

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the absolute value of the derivative at x, where `y = f(x)`."""
        raise NotImplementedError

    def forward_shape(self, shape: Any) -> Any:
        """The shape of y."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of x."""
        return shape

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}()"


class _InverseTransform(Transform):
    def __init__(self, transform: Transform) -> None:
        super().__init__(transform._cache_size)
        self._forward = transform
        self.bijective = transform.bijective
        self.domain = transform.codomain
        self.codomain = transform.domain

    @property
    def sign(self) -> Any:
        return self._forward.sign

    @property
    def inv(self) -> Transform:
        return self._forward

    def __call__(self, x: Any) -> Any:
        return self._forward._inv_call(x)

    def _inv_call(self, y: Any) -> Any:
        return self._forward(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self._forward.log_abs_det_jacobian(y, x)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._forward == other._forward

    def __hash__(self) -> int:
        return hash(("inverse", self._forward))

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self._forward!r})"


class ComposeTransform(Transform):
    """Several maps one after the other."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = list(parts)
        self.bijective = all(part.bijective for part in self.parts)
        self.domain = self.parts[0].domain if self.parts else constraints.real
        self.codomain = self.parts[-1].codomain if self.parts else constraints.real

    @property
    def sign(self) -> Any:
        return math.prod(part.sign for part in self.parts)

    @property
    def event_dim(self) -> int:
        return max((part.event_dim for part in self.parts), default=0)

    def _call(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Any) -> Any:
        for part in reversed(self.parts):
            y = part.inv(y)
        return y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        if not self.parts:
            return mt.zeros_like(x)
        total: Any = 0
        for part in self.parts:
            after = part(x)
            total = total + sum_rightmost(part.log_abs_det_jacobian(x, after), self.event_dim - part.event_dim)
            x = after
        return total

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(tuple(self.parts))

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.parts!r})"


identity_transform = ComposeTransform([])


class ExpTransform(Transform):
    """`y = exp(x)`."""

    codomain = constraints.positive
    bijective = True
    sign = +1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExpTransform)

    def __hash__(self) -> int:
        return hash(ExpTransform)

    def _call(self, x: Any) -> Any:
        return x.exp()

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x


class PowerTransform(Transform):
    """`y = x ** exponent`, of positive numbers."""

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = exponent if isinstance(exponent, mt.Tensor) else mt.tensor(float(exponent))

    @property
    def sign(self) -> Any:
        return self.exponent.sign()

    def _call(self, x: Any) -> Any:
        return x.pow(self.exponent)

    def _inverse(self, y: Any) -> Any:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return (self.exponent * y / x).abs().log()


class SigmoidTransform(Transform):
    """`y = 1 / (1 + exp(-x))`."""

    codomain = constraints.unit_interval
    bijective = True
    sign = +1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SigmoidTransform)

    def __hash__(self) -> int:
        return hash(SigmoidTransform)

    def _call(self, x: Any) -> Any:
        info = mt.finfo(x.dtype)
        return mt.sigmoid(x).clamp(min=info.tiny, max=1.0 - info.eps)

    def _inverse(self, y: Any) -> Any:
        info = mt.finfo(y.dtype)
        y = y.clamp(min=info.tiny, max=1.0 - info.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -mt.nn.functional.softplus(-x) - mt.nn.functional.softplus(x)


class SoftplusTransform(Transform):
    """`y = log(1 + exp(x))`."""

    codomain = constraints.positive
    bijective = True
    sign = +1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftplusTransform)

    def __hash__(self) -> int:
        return hash(SoftplusTransform)

    def _call(self, x: Any) -> Any:
        return mt.nn.functional.softplus(x)

    def _inverse(self, y: Any) -> Any:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -mt.nn.functional.softplus(-x)


class TanhTransform(Transform):
    """`y = tanh(x)`."""

    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = +1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TanhTransform)

    def __hash__(self) -> int:
        return hash(TanhTransform)

    def _call(self, x: Any) -> Any:
        return x.tanh()

    def _inverse(self, y: Any) -> Any:
        return mt.atanh(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return 2.0 * (math.log(2.0) - x - mt.nn.functional.softplus(-2.0 * x))


class AbsTransform(Transform):
    """`y = |x|`."""

    codomain = constraints.positive

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbsTransform)

    def __hash__(self) -> int:
        return hash(AbsTransform)

    def _call(self, x: Any) -> Any:
        return x.abs()

    def _inverse(self, y: Any) -> Any:
        return y


class AffineTransform(Transform):
    """`y = loc + scale * x`; the last `event_dim` dimensions belong to one value."""

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim
        region = constraints.real if event_dim == 0 else constraints.independent(constraints.real, event_dim)
        self.domain = self.codomain = region

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, int | float):
            return 1 if self.scale > 0 else -1 if self.scale < 0 else 0
        return self.scale.sign()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AffineTransform):
            return False
        same = [self.loc == other.loc, self.scale == other.scale]
        return all(bool(value.all()) if isinstance(value, mt.Tensor) else value for value in same)

    __hash__ = object.__hash__

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        if isinstance(self.scale, int | float):
            result = mt.full_like(x, math.log(abs(self.scale)))
        else:
            result = mt.abs(self.scale).log()
        if self.event_dim:
            result = sum_rightmost(result.expand(mt.broadcast_shapes(result.shape, x.shape)), self.event_dim)
            return result.expand(x.shape[: -self.event_dim])
        return result.expand(x.shape)

    def forward_shape(self, shape: Any) -> Any:
        return mt.broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape
