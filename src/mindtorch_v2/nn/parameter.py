"""``Parameter`` and ``Buffer``: tensors that a :class:`~mindtorch_v2.nn.Module` registers when they are assigned to it."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NoReturn, SupportsIndex

import mindtorch_v2 as torch

from .._autograd import wiring as _wiring  # noqa: F401 (connects the extension)
from .._dispatch import native
from .._dispatch.refusals import check_bool
from .._state import register_plain
from .._tensor import Tensor, alias_as

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]

_TensorMeta = type(Tensor)


class _ParameterMeta(_TensorMeta):
    """Lets a tensor of another class count as a Parameter when it carries the flag ``_is_param``."""

    def __instancecheck__(cls, instance: object) -> bool:
        if super().__instancecheck__(instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and bool(getattr(instance, "_is_param", False))


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A leaf tensor that a module lists among its parameters.

    ``data`` (Tensor, default an empty one) is shared, not copied. Raises RuntimeError for ``requires_grad=True`` and a
    dtype that is neither floating point nor complex. Grad mode has no influence.
    """

    __slots__ = ()

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        """Make a parameter that shares the memory of ``data``."""
        if requires_grad.__class__ is not bool:
            check_bool("_make_subclass", "require_grad", requires_grad, 3)
        source = torch.empty(0) if data is None else data
        kind = type(source)
        if kind is Tensor or kind is Parameter:
            if requires_grad and not (source.dtype.is_floating_point or source.dtype.is_complex):
                raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
            return alias_as(cls, source, requires_grad)
        # A subclass keeps its own class, so only the flag can say that it is a parameter.
        leaf: Any = source.detach().requires_grad_(requires_grad)
        if type(leaf) is not kind:
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {kind.__name__} requires that detach() returns an "
                f"instance of the same type, but return type {type(leaf).__name__} was found instead. To use the type "
                "as a Parameter, please correct the detach() semantics defined by its __torch_dispatch__() "
                "implementation."
            )
        leaf._is_param = True
        return leaf

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        key = id(self)
        if key not in memo:
            memo[key] = type(self)(self.data.clone(memory_format=torch.preserve_format), self.requires_grad)
        return memo[key]

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return "Parameter containing:\n" + super().__repr__(tensor_contents=tensor_contents)

    def __reduce_ex__(self, proto: SupportsIndex) -> tuple[Any, ...]:
        state = torch._utils._get_obj_state(self)
        hooks: OrderedDict[int, Any] = OrderedDict()
        if not state:
            return torch._utils._rebuild_parameter, (self.data, self.requires_grad, hooks)
        return torch._utils._rebuild_parameter_with_state, (self.data, self.requires_grad, hooks, state)


register_plain(Parameter)
native.connect_parameter(Parameter)


class _BufferMeta(_TensorMeta):
    """A buffer is a plain tensor that carries the flag ``_is_buffer``."""

    def __instancecheck__(cls, instance: object) -> bool:
        if super().__instancecheck__(instance):
            return True
        return cls is Buffer and isinstance(instance, Tensor) and bool(getattr(instance, "_is_buffer", False))


class Buffer(Tensor, metaclass=_BufferMeta):
    """Marks a tensor so that assigning it to a module registers it as a buffer.

    ``persistent=False`` keeps it out of the module's state dict. The result is a plain tensor that shares ``data``.
    """

    __slots__ = ()

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Tensor:
        """Make a detached alias of ``data`` with the marks of a buffer."""
        source = torch.empty(0) if data is None else data
        alias: Any = source.detach().requires_grad_(source.requires_grad)
        alias.persistent = persistent
        alias._is_buffer = True
        return alias


class UninitializedTensorMixin:
    """What a parameter or buffer can do before its shape is known: move, change dtype, and be materialized."""

    __slots__ = ()

    cls_to_become: Any = None
    requires_grad: bool
    _allowed = frozenset(
        "size copy_ is_complex is_floating_point half float double char short int long cuda cpu to get_device "
        "_has_compatible_shallow_copy_type detach requires_grad_ data device dtype is_meta requires_grad".split()
    )

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Allocate ``shape`` and become an ordinary parameter or buffer."""
        self.data = torch.empty(shape, device=device or self.data.device, dtype=dtype or self.data.dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        """Raises RuntimeError: there is no shape yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self) -> NoReturn:
        """Raises RuntimeError: there is no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, proto: SupportsIndex) -> tuple[Any, ...]:
        return type(self), (self.requires_grad,)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in ("_to_copy", "copy_"):
            # Their rules look at shapes, which the tensors inside have.
            result = func(*(arg.data if is_lazy(arg) else arg for arg in args), **(kwargs or {}))
            return args[0] if name == "copy_" else result
        inherited: Any = super()  # of Parameter or Tensor, which stand behind this class
        if name in cls._allowed or name in ("__get__", "__set__"):
            return inherited.__torch_function__(func, types, args, kwargs or {})
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}. This error happens when you are using a "
            f"`LazyModule` or explicitly manipulating `torch.nn.parameter.{cls.__name__}` objects. When using "
            "LazyModules Call `forward` with a dummy batch to initialize the parameters before calling torch functions"
        )


def is_lazy(param: Any) -> bool:
    """Whether ``param`` still waits for its shape."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet; see :meth:`materialize`."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> UninitializedParameter:
        """Make a parameter of no shape on ``device`` with ``dtype``."""
        return alias_as(cls, torch.empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedParameter:
        key = id(self)
        if key not in memo:
            memo[key] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[key]


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape is not known yet; see :meth:`materialize`."""

    cls_to_become = Tensor

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> UninitializedBuffer:
        """Make a buffer of no shape on ``device`` with ``dtype``."""
        alias = alias_as(cls, torch.empty(0, device=device, dtype=dtype), requires_grad)
        alias.persistent = persistent
        alias._is_buffer = True
        return alias
