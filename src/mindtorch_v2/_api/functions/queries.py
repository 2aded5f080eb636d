"""Questions about tensors and dtypes."""

from __future__ import annotations

from typing import Any

from ..._dispatch.convert import as_dtype
from ..._dispatch.native import builtin
from ..._dispatch.refusals import check_tensor
from ..._dtype import dtype
from ..._rules import geometry, promotion
from ..._tensor import Tensor


def is_tensor(obj: object) -> bool:
    """Whether an object is a Tensor."""
    return isinstance(obj, Tensor)


def is_storage(obj: object) -> bool:
    """Whether an object is a storage."""
    from ..._storage import UntypedStorage
    from ..._typed_storage import TypedStorage

    return isinstance(obj, (UntypedStorage, TypedStorage))


@builtin
def is_floating_point(input: Tensor) -> bool:
    """Whether a tensor's dtype is a floating one."""
    check_tensor("is_floating_point", input)
    return input._dtype.is_floating_point


@builtin
def is_complex(input: Tensor) -> bool:
    """Whether a tensor's dtype is a complex one."""
    check_tensor("is_complex", input)
    return input._dtype.is_complex


@builtin
def is_conj(input: Tensor) -> bool:
    """Whether a tensor is a lazy conjugate: never, conjugates are computed."""
    check_tensor("is_conj", input)
    return False


@builtin
def is_neg(input: Tensor) -> bool:
    """Whether a tensor is a lazy negation: never, negations are computed."""
    check_tensor("is_neg", input)
    return False


@builtin
def is_distributed(input: Tensor) -> bool:
    """Whether a tensor is one part of several processes': never."""
    check_tensor("is_distributed", input)
    return False


@builtin
def is_signed(input: Tensor) -> bool:
    """Whether a tensor's dtype has negative values."""
    check_tensor("is_signed", input)
    return input._dtype.is_signed


@builtin
def _debug_has_internal_overlap(input: Tensor) -> int:
    """Whether elements share memory: 0 no, 1 yes, 2 for strides that do not say it at a glance."""
    shape, stride = tuple(input.shape), input.stride()
    if geometry.is_non_overlapping_and_dense(shape, stride):
        return 0
    return 1 if any(step == 0 and size > 1 for size, step in zip(shape, stride)) else 2


@builtin
def is_inference(input: Tensor) -> bool:
    """Whether a tensor, or what it is a view of, was made in inference mode."""
    check_tensor("is_inference", input)
    return input.is_inference()


@builtin
def is_nonzero(input: Tensor) -> bool:
    """Whether the one element of a tensor is not zero. RuntimeError for more elements."""
    check_tensor("is_nonzero", input)
    return bool(input)


@builtin
def numel(input: Tensor) -> int:
    """The number of elements. TypeError for what is no tensor."""
    check_tensor("numel", input)
    return input.numel()


@builtin
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one shape."""
    check_tensor("is_same_size", input)
    check_tensor("is_same_size", other, "other", 2)
    return input.is_same_size(other)


@builtin
def get_device(input: Tensor) -> int:
    """The index of the device; -1 on the CPU."""
    check_tensor("get_device", input)
    return input.get_device()


@builtin
def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself: conjugates are computed at once."""
    check_tensor("resolve_conj", input)
    return input


@builtin
def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself: negatives are computed at once."""
    check_tensor("resolve_neg", input)
    return input


def typename(obj: object) -> str:
    """The legacy type name of a tensor; of anything else the qualified name of its class, or of itself where it has one."""
    if isinstance(obj, Tensor):
        return obj.type()
    named: Any = obj if hasattr(obj, "__qualname__") else type(obj)
    module = named.__module__
    return named.__qualname__ if module in ("builtins", None) else f"{module}.{named.__qualname__}"


@builtin
def result_type(tensor: Any, other: Any) -> dtype:
    """The dtype that two tensors or numbers promote to. RuntimeError where promotion is not defined."""
    return promotion.result_type(tensor, other)


def _dtype_argument(function: str, name: str, position: int, value: object) -> dtype:
    found = as_dtype(value)
    if found is None:
        raise TypeError(
            f"{function}(): argument '{name}' (position {position}) must be torch.dtype, not {type(value).__name__}"
        )
    return found


@builtin
def can_cast(from_: Any, to: Any) -> bool:
    """Whether a result of dtype `from_` may be written into a tensor of dtype `to`: the category must not fall.

    Integers do not go to bool, floating types not to integers, complex types not to real ones.
    """
    if from_.__class__ is not dtype or to.__class__ is not dtype:
        from_, to = _dtype_argument("can_cast", "from_", 1, from_), _dtype_argument("can_cast", "to", 2, to)
    return promotion.can_cast(from_, to)


@builtin
def promote_types(type1: Any, type2: Any) -> dtype:
    """The smallest dtype of the higher category that holds both. RuntimeError where promotion is not defined (float8, wide unsigned, quantised)."""
    if type1.__class__ is not dtype or type2.__class__ is not dtype:
        type1 = _dtype_argument("promote_types", "type1", 1, type1)
        type2 = _dtype_argument("promote_types", "type2", 2, type2)
    return promotion.promote_types(type1, type2)
