"""The Tensor class: the narrow waist between kernels, which see payloads, and everything a user sees.

The class holds what a tensor is. What it can do is attached when the package is put together: operators by the generated
floor, conversions, indexing and Python's protocols by the modules of `_api/methods`.

Note [Rare attributes]
The first four slots are what every tensor needs at every operation. What few tensors have (a version, a gradient, an output number, ...)
stands in a `Rare`, in the slot `_rare`, which is made with the first of them that is written; until then the slot holds None, or nothing at
all: who makes tensors need not set it. Properties of Tensor show the fields as attributes of it. The instance dict belongs to the
user: the library puts nothing into it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from numpy import ndarray

from . import _payload, _pending, _state
from ._above import above
from ._device import CPU, device
from ._dtype import dtype
from ._pending import PendingPayload
from ._sparse_payload import SparsePayload

if TYPE_CHECKING:  # what is attached when the package is put together
    from ._api.methods.members import TensorMembers
    from ._generated.tensor import TensorOperators

    class _Attached(TensorMembers, TensorOperators): ...
else:
    _Attached = object

_new = object.__new__


_INT = frozenset((int,))


class Size(tuple[int, ...]):
    """A shape: a tuple of ints that prints as `torch.Size([2, 3])`."""

    __slots__ = ()

    def __new__(cls, sizes: Iterable = ()) -> Size:
        made = tuple.__new__(cls, sizes)
        return made if _INT.issuperset(map(type, made)) else tuple.__new__(cls, map(_length, range(len(made)), made))

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        count = 1
        for n in self:
            count *= n
        return count

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    @overload
    def __getitem__(self, index: SupportsIndex) -> int: ...

    @overload
    def __getitem__(self, index: slice) -> Size: ...

    def __getitem__(self, index: Any) -> Any:
        item = tuple.__getitem__(self, index)
        return Size(item) if item.__class__ is tuple else item

    def __add__(self, other):
        if not isinstance(other, tuple):
            reflected = getattr(type(other), "__radd__", None)
            added = NotImplemented if reflected is None else reflected(other, self)
            if added is not NotImplemented:
                return added
            raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to torch.Size")
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other):
        return Size(tuple(other) + tuple(self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times):
        return Size(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __reduce__(self):
        return (Size if _state.serves_torch else _sized, (tuple(self),))


Size.__module__ = "torch"


def _length(at: int, value: Any) -> Any:
    """A length of a Size. TypeError for what is no whole number."""
    if isinstance(value, int) or not isinstance(
        value, (Tensor, float, complex, str, bytes, list, tuple, dict, type(None))
    ):
        return value
    if isinstance(value, Tensor) and value.numel() == 1 and not (value.is_floating_point() or value.is_complex()):
        return value.__index__()
    raise TypeError(f"torch.Size() takes an iterable of 'int' (item {at} is '{type(value).__name__}')")


def _sized(sizes: tuple) -> Size:
    """The Size of a tuple: what pickles call, since a class of the module `torch` cannot be found without the proxy."""
    return Size(sizes)


class Rare:
    """What most tensors never have; see Note [Rare attributes]."""

    __slots__ = ("version", "number", "epoch", "shares", "grad", "retains", "multi_view", "inference")

    version: int  # how often the memory was written in place; of a view, its base's counts
    number: int  # which output of `_node` the tensor is
    epoch: int  # how often in-place operations gave this (base) tensor a new history; see Note [Views and history]
    shares: Tensor | None  # whose version a detached tensor counts with
    grad: Tensor | None
    retains: Any  # the node that keeps what arrives for the tensor, or False
    multi_view: (
        bool | str
    )  # one of several views that one operator returned; "function": a view that a user's Function returned
    inference: bool

    def __init__(self) -> None:
        self.version = self.number = self.epoch = 0
        self.shares = self.grad = None
        self.retains = self.multi_view = self.inference = False


def rare_of(tensor: Tensor) -> Rare | None:
    """The rare attributes of a tensor, if it has any."""
    try:
        return tensor._rare
    except AttributeError:  # nobody has set the slot yet
        tensor._rare = None
        return None


def _rare_attribute(field: str, initial: Any) -> Any:
    """A property of Tensor that stands for a field of its `Rare`."""
    read = attrgetter(field)

    def get(self: Tensor) -> Any:
        try:
            rare = self._rare
        except AttributeError:
            rare = self._rare = None
        return initial if rare is None else read(rare)

    def set(self: Tensor, value: Any) -> None:
        rare = rare_of(self)
        if rare is None:
            rare = self._rare = Rare()
        setattr(rare, field, value)

    return property(get, set)


def read_only(name: str, member: property) -> property:
    """A property of Tensor that may not be set, in PyTorch's words."""

    def refuse(self: Tensor, *_: Any) -> None:
        raise AttributeError(f"attribute '{name}' of 'torch._C.TensorBase' objects is not writable")

    return property(member.fget, refuse, member.fdel or refuse, member.__doc__)


def _disabled_torch_dispatch_impl(*args: Any, **kwargs: Any) -> Any:
    """The `__torch_dispatch__` of classes that want none."""
    return NotImplemented


class _TensorType(type):
    """Gives the class a constructor apart from `object.__new__`, which the hot paths call to make bare instances."""

    def __init__(cls, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        method = getattr(cls, "__torch_dispatch__", None)
        if method is not None and getattr(method, "__func__", method) is not _disabled_torch_dispatch_impl:
            _state.DISPATCHING.add(cls)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls.__new__ is Tensor.__new__:
            made = legacy_constructor(cls, *args, **kwargs)
            made.__init__(*args, **kwargs)
            return made
        return super().__call__(*args, **kwargs)


def legacy_constructor(cls: type, *args: Any, **kwargs: Any) -> Any:
    """`torch.Tensor(2, 3)`, `torch.Tensor([1, 2])`; made by a floor above, which has operators."""
    return above("legacy_constructor")(cls, *args, **kwargs)


class TensorBase(_Attached, metaclass=_TensorType):
    """What Tensor is: to be asked for by `isinstance`, neither to be made nor to be subclassed."""

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Cannot directly construct TensorBase; subclass it and then construct that")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if TensorBase in cls.__bases__ and cls.__module__ != __name__:
            raise RuntimeError("Cannot subclass _TensorBase directly")


TensorBase.__module__ = "torch._C"


class Tensor(TensorBase):
    """A multi-dimensional array of one dtype on one device, with an optional gradient history."""

    __slots__ = ("_payload", "_dtype", "_node", "_base", "_rare", "__dict__", "__weakref__")

    if TYPE_CHECKING:
        _payload: Any
        _dtype: dtype
        _node: Any
        _base: Tensor | None
        _rare: Rare | None
        _v: int
        _nr: int
        _epoch: int
        _shares: Tensor | None
        _grad: Tensor | None
        _retains: Any
        _multi_view: bool | str
        _inference: bool

        @property
        def dtype(self) -> dtype: ...
    else:
        _v = _rare_attribute("version", 0)
        _nr = _rare_attribute("number", 0)
        _epoch = _rare_attribute("epoch", 0)
        _shares = _rare_attribute("shares", None)
        _grad = _rare_attribute("grad", None)
        _retains = _rare_attribute("retains", False)
        _multi_view = _rare_attribute("multi_view", False)
        _inference = _rare_attribute("inference", False)

        dtype = property(attrgetter("_dtype"))

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return legacy_constructor(cls, *args, **kwargs)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    @property
    def shape(self) -> Size:
        return Size(self._payload.shape)

    @property
    def device(self) -> device:
        data = self._payload
        return CPU if data.__class__ is ndarray else data.device

    @property
    def _pending(self) -> bool:
        """Whether the operators that give its elements are recorded and have not run: see `torch.pipeline`."""
        data = self._payload
        return data.__class__ is PendingPayload and data.is_pending

    @property
    def ndim(self) -> int:
        return self._payload.ndim

    def dim(self) -> int:
        """The number of dimensions."""
        return self._payload.ndim

    ndimension = dim

    @overload
    def size(self, dim: None = None) -> Size: ...

    @overload
    def size(self, dim: int) -> int: ...

    def size(self, dim: int | None = None) -> Size | int:
        """The shape, or the size of one dimension. IndexError when `dim` is out of range."""
        if dim is None:
            return Size(self._payload.shape)
        shape = self._payload.shape
        return shape[_wrap_dim(_dimension("size", dim), len(shape))]

    @overload
    def stride(self, dim: None = None) -> tuple: ...

    @overload
    def stride(self, dim: int) -> int: ...

    def stride(self, dim: int | None = None) -> tuple | int:
        """Steps between elements along each dimension, in elements; or along one dimension."""
        strides = _payload.stride_of(self._payload)
        return strides if dim is None else strides[_wrap_dim(_dimension("stride", dim), len(strides))]

    def storage_offset(self) -> int:
        """Where the first element stands in the storage, in elements."""
        return _payload.offset_of(self._payload)

    @property
    def _geometry(self) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        """(shape, stride, storage offset): what derivatives of views keep of a tensor."""
        data = self._payload
        return tuple(data.shape), _payload.stride_of(data), _payload.offset_of(data)

    def numel(self) -> int:
        """The number of elements."""
        # A class of other people's may keep a tensor of its own by that name, whose `size` is a method.
        return math.prod(self._payload.shape)

    nelement = numel

    @property
    def itemsize(self) -> int:
        return self._dtype.itemsize

    def element_size(self) -> int:
        """Bytes per element."""
        return self._dtype.itemsize

    @property
    def nbytes(self) -> int:
        if isinstance(self._payload, SparsePayload):
            raise RuntimeError(
                "nbytes is not defined for sparse tensors.  If you want the size of the constituent tensors, add the nbytes of the indices and "
                "values.  If you want the size of the  equivalent dense tensor, multiply numel() by element_size()"
            )
        return self._payload.size * self._dtype.itemsize

    @property
    def _version(self) -> int:
        if belongs_to_inference(self):
            raise RuntimeError("Inference tensors do not track version counter.")
        return version(self)


TOO_LONG = "Overflow when unpacking long long"


def is_word(number: int) -> bool:
    """Whether a whole number has a place in 64 bits."""
    return -(1 << 63) <= number < 1 << 63


def check_word(number: int) -> None:
    """ValueError for a whole number that has no place in 64 bits."""
    if not is_word(number):
        raise ValueError(TOO_LONG)


def _dimension(function: str, dim: Any) -> int:
    """The number of a dimension. TypeError for what is no whole number."""
    if dim.__class__ is int:
        return dim
    if isinstance(dim, (bool, Tensor)) or not hasattr(dim, "__index__"):
        if not isinstance(dim, Tensor) or dim.ndim or dim.is_floating_point() or dim.is_complex():
            raise TypeError(f"{function}(): argument 'dim' (position 1) must be int, not {type(dim).__name__}")
    return dim.__index__()


def _wrap_dim(dim: int, ndim: int) -> int:
    bound = ndim or 1
    if not -bound <= dim < bound:
        check_word(dim)
        raise IndexError(f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got {dim})")
    if not ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return dim % ndim


for _name in ("dtype", "shape", "device", "ndim", "itemsize", "nbytes", "_version"):
    setattr(Tensor, _name, read_only(_name, vars(Tensor)[_name]))
Tensor.__module__ = "torch"
_state.register_plain(Tensor)


def wrap(payload: Any, kind: dtype) -> Tensor:
    """The one function that makes a Tensor: a plain one without history."""
    made = _new(Tensor)
    made._payload = payload
    made._dtype = kind
    made._node = None
    made._base = made._rare = None
    return made


def wrap_view(payload: Any, source: Tensor) -> Tensor:
    """A Tensor whose payload is a view of `source`'s; without history."""
    made = _new(Tensor)
    made._payload = payload
    made._dtype = source._dtype
    made._node = made._rare = None
    base = source._base
    made._base = source if base is None else base
    return made


def alias_as(cls: type, tensor: Tensor, requires_grad: bool = False) -> Any:
    """A tensor of class `cls` (Tensor or a subclass) that shares the payload and version of a tensor, detached from its history."""
    given_away(tensor)
    made = _new(cls)
    made._payload = tensor._payload
    made._dtype = tensor._dtype
    made._node = None
    made._base = made._rare = None
    if requires_grad:
        made.requires_grad_(True)
    return made


def belongs_to_inference(tensor: Tensor) -> bool:
    """Whether a tensor, or what it is a view of, was made in inference mode."""
    base = tensor._base
    return tensor._inference or (base is not None and base._inference)


def version(tensor: Tensor) -> int:
    """How often the memory of a tensor was written in place."""
    rare = rare_of(counter(tensor))
    return 0 if rare is None else rare.version


def counter(tensor: Tensor) -> Tensor:
    """The tensor that keeps the version of this one: its base, or what it was detached from."""
    while True:
        above = tensor._base
        if above is None:
            rare = rare_of(tensor)
            if rare is None or (above := rare.shares) is None:
                return tensor
        tensor = above


def given_away(tensor: Tensor) -> None:
    """Note that somebody may write to a tensor's memory and no version tell: what an operator made has a `Rare` from now on."""
    keeper = counter(tensor)
    if keeper._node is not None and rare_of(keeper) is None:
        keeper._rare = Rare()


_pending.given_away = given_away


def bump_version(tensor: Tensor) -> None:
    """Count one in-place change, for the tensor and all that share its memory."""
    keeper = counter(tensor)
    keeper._v += 1
    if keeper._v == 1 and keeper._node is not None:
        keeper._node.note_written(keeper)


def __getattr__(name: str) -> Any:
    """What programs take from `torch._tensor` though it belongs to floors above: see `_api/methods/tensor_names.py`."""
    if not name.startswith("__"):
        names = above("tensor_names")
        if name in names:
            return names[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
