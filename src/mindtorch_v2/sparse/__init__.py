"""`torch.sparse`: products, sums and softmax of sparse tensors whose gradients are sparse, and the checks of what sparse tensors are made of."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .._api.functions.sparse import (
    checks_enabled as _checks_enabled,
    legacy_sparse_tensor as _legacy_sparse_tensor,
    set_checks as _set_checks,
)
from .._api.functions.types import LEGACY_TYPES as _LEGACY_TYPES
from .._dispatch import ops as _ops
from .._dispatch.native import builtin
from .._dispatch.overrides import find_for as _find_for, run_function as _run_function
from .._dtype import dtype as _dtype
from .._layout import layout as _layout
from .._sparse_payload import is_sparse as _is_sparse
from .._tensor import Tensor

__all__ = [
    "addmm",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "spdiags",
    "sum",
]

_Dims = int | Sequence[int] | None


@builtin
def mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """The product of two matrices of which at least one is sparse; the gradient of a sparse one is sparse.

    With `reduce` (sum, mean, amax, amin) mat1 is of compressed rows, and what a row meets is reduced so.
    """
    return _ops._sparse_mm(mat1, mat2) if reduce is None else _ops._sparse_mm(mat1, mat2, reduce)


@builtin
def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0) -> Tensor:
    """beta * mat + alpha * mat1 @ mat2 with a sparse mat1, whose gradient is sparse."""
    return _ops._sparse_addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


@builtin
def sampled_addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0, out: Any = None
) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2) where `input`, of compressed rows, has specified elements."""
    made = _ops.sparse_sampled_addmm(input, mat1, mat2, beta=beta, alpha=alpha)
    return made if out is None else out.copy_(made)


def sum(input: Tensor, dim: _Dims = None, dtype: _dtype | None = None) -> Tensor:
    """The sum of specified elements over dimensions: dense when no sparse dimension is left."""
    special = _find_for((input,))
    if special is not None:
        return _run_function(sum, special, (input,), {"dim": dim, "dtype": dtype})
    if dim is None or dim == ():
        return _ops._sparse_sum(input) if dtype is None else _ops._sparse_sum(input, dtype=dtype)
    dims = [dim] if isinstance(dim, int) else list(dim)
    return _ops._sparse_sum(input, dims) if dtype is None else _ops._sparse_sum(input, dims, dtype=dtype)


@builtin
def softmax(input: Tensor, dim: int, *, dtype: _dtype | None = None) -> Tensor:
    """Softmax over the specified elements of a dimension."""
    return _ops._sparse_softmax(input, dim, dtype=dtype)


@builtin
def log_softmax(input: Tensor, dim: int, *, dtype: _dtype | None = None) -> Tensor:
    """The logarithm of softmax over the specified elements of a dimension."""
    return _ops._sparse_log_softmax(input, dim, dtype=dtype)


@builtin
def spdiags(diagonals: Tensor, offsets: Tensor, shape: Sequence[int], layout: _layout | None = None) -> Tensor:
    """A sparse matrix with the rows of `diagonals` along the diagonals that `offsets` names."""
    return _ops._spdiags(diagonals, offsets, shape, layout)


class check_sparse_tensor_invariants:
    """Whether constructors check what sparse tensors are made of: a setting, a context and a decorator.

    Kernels check coordinates that become places in memory in any case.
    """

    @staticmethod
    def is_enabled() -> bool:
        """Whether it is checked when a constructor is told nothing."""
        return _checks_enabled()

    @staticmethod
    def enable() -> None:
        """Check from now on."""
        _set_checks(True)

    @staticmethod
    def disable() -> None:
        """Do not check from now on."""
        _set_checks(False)

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self.saved_state: bool | None = None

    def __enter__(self) -> None:
        if self.saved_state is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context manager instance for context nesting."
            )
        self.saved_state = self.is_enabled()
        _set_checks(self.state)

    def __exit__(self, *error: object) -> None:
        assert self.saved_state is not None
        _set_checks(self.saved_state)
        self.saved_state = None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return function(*args, **kwargs)

        return checked


def as_sparse_gradcheck(gradcheck: Callable[..., bool]) -> Callable[..., bool]:
    """`gradcheck` of functions with sparse arguments: it is shown their values, and gives the function sparse tensors of them.

    `masked`: whether elements that are not specified are no variables.
    """

    def checked(func: Callable[..., Any], inputs: Any, **kwargs: Any) -> bool:
        masked = kwargs.pop("masked", False)
        given = [inputs] if isinstance(inputs, Tensor) else list(inputs)
        return gradcheck(*_of_dense_variables(func, given, masked, not masked), **kwargs)

    return checked


def _is_sparse_variable(value: Any) -> bool:
    return isinstance(value, Tensor) and _is_sparse(value) and value.requires_grad


def _of_dense_variables(func: Callable[..., Any], given: Sequence[Any], masked: bool, whole: bool) -> tuple:
    """The same function of dense variables, and these: the values of sparse tensors, or (`whole`) all their elements."""
    dense: list[Any] = []
    makers: list[Callable[[Tensor], Any] | None] = []
    for value in given:
        if not _is_sparse_variable(value):
            dense.append(value)
            makers.append(None)
        elif whole:
            dense.append(value.detach().to_dense().requires_grad_(True))
            makers.append(functools.partial(_of_dense, value.layout, value.sparse_dim()))
        else:
            found = value.detach()
            dense.append(found._payload.values.clone().requires_grad_(True))
            makers.append(functools.partial(_of_values, found))

    def shown(*args: Any) -> Any:
        results = func(*[value if maker is None else maker(value) for value, maker in zip(args, makers)])
        listed = results if isinstance(results, (tuple, list)) else (results,)
        plain = tuple(r.to_dense(masked_grad=masked) if isinstance(r, Tensor) else r for r in listed)
        return plain if isinstance(results, (tuple, list)) else plain[0]

    return shown, tuple(dense)


def _of_values(like: Tensor, values: Tensor) -> Tensor:
    data: Any = like._payload
    if like.is_sparse:
        return _ops._sparse_coo_tensor_unsafe(data.indices, values, data.shape, is_coalesced=data.coalesced)
    return _ops._sparse_compressed_tensor_unsafe(data.begins, data.within, values, data.shape, layout=data.layout)


def _of_dense(layout: _layout, sparse_dim: int, dense: Tensor) -> Tensor:
    """A sparse tensor of every element."""
    whole = _ops.ones_like(dense.detach())
    return dense.sparse_mask(
        whole.to_sparse(sparse_dim) if layout.name == "sparse_coo" else whole.to_sparse(layout=layout)
    )


class _SparseType(type):
    """Class of `torch.sparse.FloatTensor`: coo tensors of its dtype are its instances, and calling it makes one."""

    dtype: _dtype

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and instance.is_sparse and instance.dtype is cls.dtype

    def __call__(cls, *args: Any) -> Any:
        return _legacy_sparse_tensor(cls.dtype, args)

    def __repr__(cls) -> str:
        return f"<class 'torch.sparse.{cls.__name__}'>"


def __getattr__(name: str) -> Any:
    legacy = _LEGACY_TYPES.get(name)
    if legacy is None:
        raise AttributeError(f"module 'torch.sparse' has no attribute {name!r}")
    made = _SparseType(
        name, (), {"dtype": legacy.dtype, "__module__": "torch.sparse", "is_cuda": False, "is_sparse": True}
    )
    globals()[name] = made
    return made
