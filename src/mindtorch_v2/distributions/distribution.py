"""The base class of distributions."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import mindtorch_v2 as mt

from . import constraints
from .utils import _LazyProperty

__all__ = ["Distribution", "ExponentialFamily"]


class Distribution:
    """A batch of probability distributions.

    Attributes:
        batch_shape: independent distributions with parameters of their own.
        event_shape: the shape of one value.
        arg_constraints: where the parameters lie.
        support: where the values lie.
        has_rsample: whether samples carry gradients to the parameters.

    Raises:
        ValueError: if a parameter lies outside its region, unless validation is off.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    arg_constraints: dict[str, constraints.Constraint] = {}

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Switch the validation of arguments on or off for distributions made from now on."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None) -> None:
        self._batch_shape = mt.Size(batch_shape)
        self._event_shape = mt.Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_arguments()
        super().__init__()

    def _check_arguments(self) -> None:
        for name, constraint in self.arg_constraints.items():
            computed_later = name not in self.__dict__ and isinstance(getattr(type(self), name, None), _LazyProperty)
            if constraints.is_dependent(constraint) or computed_later:
                continue
            value = getattr(self, name)
            if not bool(constraint.check(value).all()):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with its batch expanded to a larger shape."""
        raise NotImplementedError

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """What `expand` fills: a new instance of this object's class, or the one that a subclass's `expand` has made.

        Raises:
            NotImplementedError: if a subclass of `cls` has an `__init__` but no `expand` of its own.
        """
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(
                f"Subclass {self.__class__.__name__} of {cls.__name__} that defines a custom __init__ method must also "
                "define a custom .expand() method."
            )
        return type(self).__new__(type(self)) if _instance is None else _instance

    def _expand_parameters(self, cls: type, batch_shape: Any, _instance: Any, *names: str) -> Any:
        """The instance for `expand` of `cls`, whose parameters of these names (those that are there) are expanded."""
        made = self._get_checked_instance(cls, _instance)
        batch_shape = mt.Size(batch_shape)
        for name in names:
            if name in self.__dict__:
                setattr(made, name, getattr(self, name).expand(batch_shape))
        return self._completed(made, batch_shape, self.event_shape)

    def _completed(self, made: Any, batch_shape: Any, event_shape: Any = ()) -> Any:
        """What `expand` returns: the instance with its shapes, validating as this one does."""
        Distribution.__init__(made, batch_shape, event_shape, validate_args=False)
        made._validate_args = self._validate_args
        return made

    @property
    def batch_shape(self) -> Any:
        """The shape of the batch."""
        return self._batch_shape

    @property
    def event_shape(self) -> Any:
        """The shape of one value."""
        return self._event_shape

    if TYPE_CHECKING:  # a property or, in most classes, an attribute
        support: Any
    else:

        @property
        def support(self) -> Any:
            """Where the values lie."""
            raise NotImplementedError

    @property
    def mean(self) -> Any:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Any:
        """The most probable value."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Any:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Any:
        """Values of shape `sample_shape + batch_shape + event_shape`, without gradients."""
        with mt.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Values with gradients to the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Any:
        """The former name of `sample((n,))`."""
        warnings.warn("sample_n(n) will be deprecated. Use .sample((n,)) instead", UserWarning, stacklevel=2)
        return self.sample(mt.Size((n,)))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density or probability of values."""
        raise NotImplementedError

    def cdf(self, value: Any) -> Any:
        """The probability of at most `value`."""
        raise NotImplementedError

    def icdf(self, value: Any) -> Any:
        """The value that is exceeded with probability `1 - value`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Any:
        """Every possible value along a new first dimension."""
        raise NotImplementedError

    def entropy(self) -> Any:
        """The entropy."""
        raise NotImplementedError

    def perplexity(self) -> Any:
        """The exponential of the entropy."""
        return mt.exp(self.entropy())

    def _extended_shape(self, sample_shape: Any = ()) -> Any:
        return mt.Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value: Any) -> None:
        """Raise ValueError unless `value` can be a sample."""
        if not isinstance(value, mt.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        split = value.dim() - len(self._event_shape)
        if value.shape[split:] != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        for i, j in zip(reversed(value.shape), reversed(expected), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {expected}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `support` to enable sample validation. Please initialize the "
                "distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if not bool(support.check(value).all()):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in self.__dict__]
        shown = (
            f"{name}: {value if value.numel() == 1 else value.size()}"
            for name, value in ((name, self.__dict__[name]) for name in names)
        )
        return f"{self.__class__.__name__}({', '.join(shown)})"


class ExponentialFamily(Distribution):
    """A distribution of the exponential family: densities h(x) exp(<theta, t(x)> - F(theta)).

    What `_natural_params` and `_log_normalizer` (theta and F) say of a class gives its entropy and, between two of one class, the divergence: both follow from the
    derivatives of F.
    """

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        """theta, by its parts."""
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Any:
        """F(theta)."""
        raise NotImplementedError

    if TYPE_CHECKING:  # a number in most classes
        _mean_carrier_measure: Any
    else:

        @property
        def _mean_carrier_measure(self) -> Any:
            """The expectation of log h(x)."""
            raise NotImplementedError

    def entropy(self) -> Any:
        result = -self._mean_carrier_measure
        theta = [part.detach().requires_grad_() for part in self._natural_params]
        normaliser = self._log_normalizer(*theta)
        slopes = mt.autograd.grad(normaliser.sum(), theta, create_graph=True)
        result = result + normaliser
        for part, slope in zip(theta, slopes):
            result = result - (part * slope).reshape(self._batch_shape + (-1,)).sum(-1)
        return result


def binary_parameters(self: Any, probs: Any, logits: Any) -> Any:
    """Set `probs` or `logits` of a distribution, whichever is given; returns it.

    Raises:
        ValueError: unless exactly one of them is given.
    """
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return probs if probs is not None else logits
