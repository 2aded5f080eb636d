"""`torch.nested`: tensors of several sizes in one, as a list of tensors (PyTorch's strided layout).

Note [Nested tensors]
A nested tensor holds its parts, which have the same number of dimensions and one dtype. It takes what works on each part alone: pointwise operators (with
numbers, and with nested tensors of the same sizes), and functions of the last dimensions (`linear`, `softmax`, `layer_norm`, `matmul`, ...). Histories
are those of the parts. Everything else says so. Its first dimension is the list; dimensions behind it count as they do for one tensor.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ._above import above
from ._api.functions.construct import as_tensor
from ._device import device as _device
from ._dtype import bool as _bool, dtype as _dtype
from ._generated import functions as F
from ._layout import strided
from ._tensor import Size, Tensor

__all__ = ["as_nested_tensor", "nested_tensor", "to_padded_tensor"]

# What works on each part; of those with a `dim`, it counts the list too.
_BY_PART = frozenset(
    "bmm clone contiguous cpu detach double dropout embedding float gelu half layer_norm linear masked_fill matmul relu relu_ to to_copy type".split()
)
_BY_DIM = {
    "softmax": 1,
    "log_softmax": 1,
    "sum": 1,
    "chunk": 2,
    "transpose": 1,
}  # where the dimension stands among the arguments
_OWN = frozenset(("select", "unbind", "to_padded_tensor"))  # functions that the class has as methods
_OF_BATCHES = frozenset(
    ("_native_multi_head_attention", "_transformer_encoder_layer_fwd")
)  # that want a batch in front
_NO_SIZES = "Internal error: NestedTensorImpl doesn't support {}. Please file an issue."


@functools.cache
def _pointwise() -> frozenset[str]:
    names = {op.name for op in above("operators")() if "pointwise" in op.tags}
    return frozenset({*names, *(f"{name}_" for name in names), *(f"__{name}__" for name in names)})


class NestedTensor(Tensor):
    """See Note [Nested tensors]."""

    _parts: list[Tensor]

    @staticmethod
    def _of(parts: Sequence[Tensor], like: Tensor | None = None) -> NestedTensor:
        first = parts[0] if parts else like
        own = F.empty([0], dtype=None if first is None else first.dtype, device=None if first is None else first.device)
        made = own.as_subclass(NestedTensor)
        made._parts = list(parts)
        return made

    @classmethod
    def __torch_function__(cls, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        """The function of each part, where it is one of the parts' alone. NotImplementedError otherwise."""
        given = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        plain = name.removeprefix("__i").removeprefix("__r").strip("_")
        if name == "__get__":  # an attribute that this class does not have its own of
            return getattr(cls._of_arguments(args)._first(), func.__self__.__name__)  # type: ignore[attr-defined]
        if name in _OWN:
            return vars(cls)[name](*args, **given)
        if name == "cat":
            return cls._joined(*args, **given)
        nested = cls._of_arguments([*args, *given.values()])
        if name == "is_same_size":
            return nested.is_same_size(args[1] if nested is args[0] else args[0], nested is args[0])
        if name in _OF_BATCHES:
            return nested._one_by_one(func, args, given)
        if name in _BY_DIM:
            args, given = nested._shifted(name, args, given)
        elif not {name, plain} & (_BY_PART | _pointwise()):
            raise NotImplementedError(
                f"Could not run 'aten::{plain}' with arguments from the 'NestedTensorCPU' backend: it is no function of each part alone"
            )
        nested._check(name, [*args, *given.values()])
        results = []
        for number in range(len(nested._parts)):
            own = [a._parts[number] if isinstance(a, NestedTensor) else a for a in args]
            named = {k: a._parts[number] if isinstance(a, NestedTensor) else a for k, a in given.items()}
            results.append(func(*own, **named))
        if results and isinstance(results[0], (tuple, list)):
            return tuple(cls._of(column) for column in zip(*results, strict=True))
        return cls._of(results, nested)

    @classmethod
    def _joined(cls, tensors: Sequence[Tensor], dim: int = 0) -> NestedTensor:
        """The parts of nested tensors in one list. RuntimeError for a dense tensor, and along another dimension."""
        if not all(isinstance(tensor, NestedTensor) for tensor in tensors):
            raise RuntimeError("cat(): expected each tensor in given list to be nested.")
        if dim % tensors[0].dim():
            raise NotImplementedError(f"cat(): nested tensors are joined along dimension 0 only, not along {dim}")
        return cls._of([part for tensor in tensors for part in tensor.unbind()])

    @staticmethod
    def _of_arguments(arguments: Any) -> NestedTensor:
        return next(a for a in arguments if isinstance(a, NestedTensor))

    def _first(self) -> Tensor:
        return self._parts[0] if self._parts else F.empty([0])

    def _check(self, name: str, arguments: list) -> None:
        """RuntimeError for a nested tensor of other sizes, and for a dense one with dimensions beside a nested one, where it is pointwise."""
        for other in arguments:
            if isinstance(other, NestedTensor):
                if len(other._parts) != len(self._parts):
                    raise RuntimeError(f"{name}: nested tensors of {len(self._parts)} and {len(other._parts)} tensors")
            elif isinstance(other, Tensor) and other.dim() and name not in _BY_PART:
                raise RuntimeError(
                    "Expected both self and other to be nested, but got a nested self and non-nested other"
                )

    def _one_by_one(self, func: Callable, args: tuple, given: dict) -> Any:
        """The function of each part as a batch of one; results behind the first are padded with zeros."""
        results = []
        for number in range(len(self._parts)):
            own = [a._parts[number].unsqueeze(0) if isinstance(a, NestedTensor) else a for a in args]
            made = func(*own, **given)
            results.append([None if r is None else r[0] for r in (made if isinstance(made, tuple) else (made,))])
        out, *weights = (None if column[0] is None else self._of(column) for column in zip(*results, strict=True))
        return (out, *(w if w is None else w.to_padded_tensor(0.0) for w in weights)) if weights else out

    def _shifted(self, name: str, args: tuple, given: dict) -> tuple[tuple, dict]:
        """The arguments with dimensions as one part counts them."""
        place = _BY_DIM[name]
        values = list(args)
        for index in range(place, len(values)):
            values[index] = self._inner(name, values[index])
        names = ("dim", "dim0", "dim1")
        named = {k: self._inner(name, v) if k in names else v for k, v in given.items()}
        if len(values) <= place and not named.keys() & {*names}:
            raise NotImplementedError(
                f"Could not run 'aten::{name}' with arguments from the 'NestedTensorCPU' backend: say the dimension"
            )
        return tuple(values), named

    def _inner(self, name: str, dim: Any) -> Any:
        if isinstance(dim, bool) or not isinstance(dim, int):
            return dim
        if dim == 0 or dim == -self.dim():
            raise RuntimeError(f"{name}: the dimension 0 of a nested tensor is its list")
        return dim - 1 if dim > 0 else dim

    def is_same_size(self, other: Tensor, first: bool = True) -> bool:  # type: ignore[override]
        """Whether the parts have the same shapes. RuntimeError for a tensor that is not nested; first: this one stands before it."""
        if not isinstance(other, NestedTensor):
            who = "Self is nested. While Other is not" if first else "Self is not nested. While Other is"
            raise RuntimeError(f"Expected both self and other to be nested tensors. {who} nested.")
        return [part.shape for part in self._parts] == [part.shape for part in other._parts]

    @property
    def is_nested(self) -> bool:  # type: ignore[override]
        return True

    @property
    def requires_grad(self) -> bool:  # type: ignore[override]
        return any(part.requires_grad for part in self._parts)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> NestedTensor:
        """Let the parts have gradients or not."""
        for part in self._parts:
            part.requires_grad_(requires_grad)
        return self

    @property
    def grad(self) -> NestedTensor | None:  # type: ignore[override]
        grads = [part.grad for part in self._parts]
        return (
            self._of([g for g in grads if g is not None])
            if grads and None not in [g if g is None else 0 for g in grads]
            else None
        )

    @property
    def shape(self) -> NoReturn:  # type: ignore[override]
        raise RuntimeError(_NO_SIZES.format("sizes"))

    def size(self, dim: int | None = None) -> int:  # type: ignore[override]
        """One size. RuntimeError for that of a dimension in which the parts differ, and for all sizes."""
        if dim is None:
            raise RuntimeError(_NO_SIZES.format("sizes"))
        place = dim + self.dim() if dim < 0 else dim
        if place == 0:
            return len(self._parts)
        sizes = {part.size(place - 1) for part in self._parts}
        if len(sizes) != 1:
            raise RuntimeError(f"Given dimension {place} is irregular and does not have a size.")
        return sizes.pop()

    def stride(self, dim: int | None = None) -> NoReturn:  # type: ignore[override]
        """RuntimeError."""
        raise RuntimeError(_NO_SIZES.format("strides"))

    def dim(self) -> int:
        """One more than the parts have."""
        return self._first().dim() + 1 if self._parts else 1

    @property
    def ndim(self) -> int:
        return self.dim()

    def numel(self) -> int:
        """The number of all parts' elements."""
        return sum(part.numel() for part in self._parts)

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether every part is."""
        return all(part.is_contiguous() for part in self._parts)

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:  # type: ignore[override]
        """The parts."""
        if dim not in (0, -self.dim()):
            raise RuntimeError(f"NestedTensor can only be unbound along dimension 0 got dimension {dim} instead.")
        return tuple(self._parts)

    def select(self, dim: int, index: int) -> Tensor:  # type: ignore[override]
        """One part, or the nested tensor of a slice of every part. IndexError for one that is not there."""
        if dim not in (0, -self.dim()):
            inner = self._inner("select", dim)
            return self._of([part.select(inner, index) for part in self._parts], self)
        if not -len(self._parts) <= index < len(self._parts):
            raise IndexError(f"index {index} is out of bounds for dimension 0 with size {len(self._parts)}")
        return self._parts[index]

    def __iter__(self) -> Any:
        return iter(self.unbind())

    def __reduce_ex__(self, proto: Any) -> tuple[Any, ...]:
        from ._serialization.rebuild import reduce_nested

        return reduce_nested(self._parts, self._first())

    def __len__(self) -> int:
        raise RuntimeError(_NO_SIZES.format("sizes"))

    def __getitem__(self, index: Any) -> Tensor:
        if isinstance(index, int) and not isinstance(index, bool):
            return self._parts[index]
        if isinstance(index, tuple) and index and isinstance(index[0], int):
            return self._parts[index[0]][index[1:]]
        raise NotImplementedError("a nested tensor is indexed by the number of a part first")

    def backward(self, gradient: Any = None, *args: Any, **kwargs: Any) -> None:  # type: ignore[override]
        """The gradients of every part, given as a nested tensor of the same sizes."""
        if not isinstance(gradient, NestedTensor):
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        for part, own in zip(self._parts, gradient._parts, strict=True):
            part.backward(own, *args, **kwargs)

    def to_padded_tensor(self, padding: float, output_size: Sequence[int] | None = None) -> Tensor:
        """One tensor of (number of parts, largest sizes), or of `output_size`, with `padding` where a part has nothing. RuntimeError for a size that is too small."""
        sizes = [max(part.shape[d] for part in self._parts) for d in range(self.dim() - 1)] if self._parts else []
        if output_size is not None:
            wanted = list(output_size)[1:]
            if len(wanted) != len(sizes) or any(w < s for w, s in zip(wanted, sizes, strict=True)):
                raise RuntimeError(
                    "Value in output_size is less than NestedTensor padded size. Truncation is not supported."
                )
            sizes = wanted
        if not self._parts:
            return F.empty([0], dtype=self.dtype)
        rows = []
        for part in self._parts:
            widths = [n for d in reversed(range(part.dim())) for n in (0, sizes[d] - part.shape[d])]
            rows.append(F.constant_pad_nd(part, widths, padding))
        return F.stack(rows, 0)

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        lines = ",\n".join("  " + repr(part).replace("\n", "\n  ") for part in self._parts)
        return f"nested_tensor([\n{lines}\n]" + (
            ", requires_grad=True)" if self.requires_grad and self.is_leaf else ")"
        )

    __str__ = __repr__

    @property
    def is_leaf(self) -> bool:  # type: ignore[override]
        return all(part.is_leaf for part in self._parts)


def _listed(name: str, tensor_list: Any) -> list:
    if not isinstance(tensor_list, (list, tuple)):
        raise TypeError(f"Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in {name}")
    return list(tensor_list)


def _check_parts(parts: list[Tensor]) -> None:
    for number, part in enumerate(parts):
        if part.dim() != parts[0].dim():
            raise RuntimeError(
                f"All Tensors given to nested_tensor must have the same dimension. Found dimension {part.dim()} for Tensor at index {number} and "
                f"dimension {parts[0].dim()} for Tensor at index 0."
            )


def _check_layout(layout: Any) -> None:
    if layout is not None and layout is not strided:
        raise NotImplementedError(f"nested tensors of the layout {layout} are not there; those of torch.strided are")


def nested_tensor(
    tensor_list: Sequence[Any],
    *,
    dtype: _dtype | None = None,
    layout: Any = None,
    device: _device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> NestedTensor:
    """A nested tensor of copies of tensors, or of lists of numbers, with the first one's dtype; a leaf.

    TypeError for what is no list, RuntimeError for tensors of other numbers of dimensions, NotImplementedError for another layout than strided.
    """
    _check_layout(layout)
    items = _listed("nested_tensor", tensor_list)
    parts: list[Tensor] = []
    for item in items:
        kind = dtype or (parts[0].dtype if parts else None)
        part = as_tensor(item, dtype=kind, device=device).detach().clone()
        parts.append(part.requires_grad_() if requires_grad else part)
    _check_parts(parts)
    return NestedTensor._of(parts)


def as_nested_tensor(
    ts: Any, dtype: _dtype | None = None, device: _device | str | None = None, layout: Any = None
) -> NestedTensor:
    """A nested tensor of tensors, which keep their histories; of one tensor, of its slices."""
    _check_layout(layout)
    if isinstance(ts, NestedTensor):
        return ts
    items = list(ts.unbind(0)) if isinstance(ts, Tensor) else _listed("as_nested_tensor", ts)
    if not all(isinstance(item, Tensor) for item in items):
        raise TypeError("as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors")
    parts: list[Tensor] = []
    for item in items:
        kind = dtype or (parts[0].dtype if parts else item.dtype)
        parts.append(item.to(kind) if device is None else item.to(device, kind))
    _check_parts(parts)
    return NestedTensor._of(parts)


def _nested_tensor_from_mask(t: Tensor, mask: Tensor, mask_check: bool = True) -> NestedTensor:
    """Of rows (batch, length, features) those that a bool mask (batch, length) has, which stand on the left. RuntimeError for other shapes and dtypes, and,
    unless `mask_check` is off, for a mask with gaps."""
    if mask.dtype is not _bool:
        raise RuntimeError(f"Expected mask to be of ScalarType Bool, but got {mask.dtype.cpp} instead.")
    if mask.dim() != 2:
        raise RuntimeError("Padding mask should be 2D")
    if t.dim() != 3:
        raise RuntimeError("Input should be a 3D tensor, N * L * D")
    if tuple(mask.shape) != tuple(t.shape[:2]):
        raise RuntimeError("Mask size should match input size")
    if mask_check and not _nested_tensor_from_mask_left_aligned(t, mask):
        raise RuntimeError("Mask must be left-aligned without gaps")
    return NestedTensor._of([row[:size] for row, size in zip(t.unbind(0), mask.sum(1).tolist())])


def _nested_tensor_from_mask_left_aligned(t: Tensor, mask: Tensor) -> bool:
    """Whether what a mask has of each row stands on its left."""
    return bool((mask.int().diff(dim=1) <= 0).all())


def to_padded_tensor(
    input: Tensor, padding: float, output_size: Size | Sequence[int] | None = None, out: Tensor | None = None
) -> Tensor:
    """`input.to_padded_tensor(padding, output_size)`; TypeError for a tensor that is not nested."""
    if not isinstance(input, NestedTensor):
        raise TypeError("to_padded_tensor(): the input is no nested tensor")
    made = input.to_padded_tensor(padding, output_size)
    return made if out is None else out.resize_(made.shape).copy_(made)
