"""The record of one operator: what the generated tables hold and the dispatcher reads."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from .._above import module_above
from .out_dtypes import refusal

# What a composite with sparse kernels is wrapped in, for callers that take its function without asking the dispatcher. Set by sparse.py.
with_sparse: Callable[[Any, Callable], Callable] | None = None
# What a composite of several results is wrapped in, which names them. Set by return_types.py.
with_names: Callable[[Any, Callable], Callable] | None = None


class _NoDefault:
    __slots__ = ()


NO_DEFAULT = _NoDefault()


_TYPE_TEXTS = {
    "Scalar": "Number",
    "ScalarType": "torch.dtype",
    "SymInt": "int",
    "Device": "torch.device",
    "Layout": "torch.layout",
    "MemoryFormat": "torch.memory_format",
    "Generator": "torch.Generator",
    "Dimname": "name",
}


class Param:
    """One parameter: name, type code of the grammar (`Tensor`, `int`, `float`, ...), and how it may be given; required where it has no default."""

    __slots__ = ("name", "type", "optional", "is_list", "size", "elements_optional", "default", "required", "keyword")

    def __init__(
        self,
        name: str,
        type: str,
        optional: bool = False,
        is_list: bool = False,
        size: int | None = None,
        elements_optional: bool = False,
        default: Any = NO_DEFAULT,
        keyword: bool = False,
    ):
        self.name = name
        self.type = type
        self.optional = optional
        self.is_list = is_list
        self.size = size
        self.elements_optional = elements_optional
        self.required = default is NO_DEFAULT
        self.default = None if self.required else default
        self.keyword = keyword

    def __str__(self) -> str:
        default = f'"{self.default}"' if self.default.__class__ is str else self.default
        return f"{self.type_text()} {self.name}" + ("" if self.required else f" = {default}")

    def type_text(self) -> str:
        """The type as PyTorch's messages write it: `tuple of ints`, `Number`, `Tensor`."""
        if self.is_list and self.type == "Scalar":
            return "tuple of Scalars"
        base = _TYPE_TEXTS.get(self.type, self.type)
        return f"tuple of {base}s" if self.is_list else base


class Block:
    """One element of an operator's result as a loop of the block interpreter: the loop's number, the parameters that are its operands, and what the others must be.

    exact: the loop is one operation of IEEE 754, which a ufunc of numpy computes alike, so that eager calls need no loop.
    """

    __slots__ = ("opcode", "operands", "conditions", "exact")

    def __init__(
        self, opcode: int, operands: tuple[int, ...], conditions: tuple[tuple[int, Any], ...], exact: bool = False
    ):
        self.opcode = opcode
        self.operands = operands
        self.conditions = conditions
        self.exact = exact


class Operator:
    """An operator in all its forms.

    meta: function of the arguments that calls the rule. cast: numbers of the arguments that take part in promotion. kernels: by device type.
    block: alternatives of the operator as a loop; the first whose operands are given and whose conditions hold. blocked: the same for eager calls,
    made when it is first asked for.
    sparse: kernels by layout: names, and once they were called functions. See _dispatch/sparse.py.
    base: the operator that this one is derived of (`add.Tensor` of `_foreach_add.List`), or None.
    record: makes the autograd node; the family's module of derivatives is imported at the first one. mutates: number of the argument that the kernel writes to, or None.
    """

    __slots__ = (
        "name",
        "overload",
        "params",
        "meta",
        "cast",
        "kernels",
        "takes_out",
        "block",
        "blocked",
        "composite",
        "sparse",
        "layout_at",
        "is_sparse_maker",
        "base",
        "record",
        "saves_self",
        "mutates",
        "is_inplace",
        "is_view",
        "tags",
        "tensors",
        "returns",
        "variants",
        "numbers",
        "function",
        "_composite_function",
        "factory",
        "pin_at",
        "missing",
        "label",
        "out_refusal",
        "distinct_out",
        "given_out",
        "out_is_counted",
        "out_refuses_input",
        "out_is_contiguous",
        "out_of_any_shape",
        "dtype_of_out",
    )

    def __init__(
        self,
        name: str,
        overload: str,
        params: tuple[Param, ...],
        *,
        meta: Callable | None = None,
        cast: tuple[int, ...] = (),
        kernels: dict[str, Callable] | None = None,
        composite: str | None = None,
        sparse: dict[str, Any] | None = None,
        base: Operator | None = None,
        mutates: int | None = None,
        is_inplace: bool = False,
        is_view: bool = False,
        tags: tuple[str, ...] = (),
        out: tuple[str, ...] = (),
        returns: tuple[str, ...] = ("",),
        variants: tuple[str, ...] = (),
        missing: str | None = None,
        derivatives: str | None = None,
        saves_self: bool = False,
        block: tuple[Block, ...] = (),
    ):
        self.name = name
        self.overload = overload
        self.params = params
        self.meta = meta
        self.cast = cast
        self.kernels = kernels or {}
        self.takes_out = {device: takes_out(kernel) for device, kernel in self.kernels.items()}
        self.block = block
        self.blocked: Callable | None = None
        self.composite = composite
        self.sparse = sparse
        self.base = base
        self.record: Callable | None = None if derivatives is None else _recorder(self, derivatives)
        self.saves_self = saves_self
        self.mutates = mutates
        self.is_inplace = is_inplace
        self.is_view = is_view
        self.tags = tags
        self.tensors = tuple(i for i, p in enumerate(params) if p.type == "Tensor")
        self.returns = returns
        self.variants = variants
        self.function: Callable | None = None
        self._composite_function: Callable | None = None
        # Whether a number may stand for a tensor.
        self.numbers = ("pointwise" in tags or "numbers" in tags) and "tensors" not in tags and len(self.tensors) > 1
        names = {p.name for p in params}
        self.factory = "device" in names and "dtype" in names
        # Which argument asks for pinned memory of a factory's result.
        self.pin_at = next((i for i, p in enumerate(params) if self.factory and p.name == "pin_memory"), None)
        self.missing = missing
        self.layout_at = next((i for i, p in enumerate(params) if p.type == "Layout"), None)
        # Whether sparse kernels may take a call that has no sparse tensor.
        is_sparse_only = sparse is not None and meta is None and composite is None
        self.is_sparse_maker = is_sparse_only or (self.factory and self.layout_at is not None)
        self.out_refusal = refusal(out)
        self.out_is_contiguous = "contiguous" in out
        self.out_of_any_shape = "any_shape" in out
        self.out_is_counted = "counted" in out
        # Whether `out=` may share no memory with an input, not even be the input.
        self.distinct_out = "distinct" in out
        self.given_out = "given" in out
        # Whether the buffer's dtype has to be one that the input can be cast to, though it is what the operator computes in.
        self.out_refuses_input = "nansum" in out and "dtype" in out
        # Which argument is a dtype that an `out=` buffer gives when the caller gives none.
        asks = self.factory or "dtype" in out
        self.dtype_of_out = next((i for i, p in enumerate(params) if asks and p.name == "dtype"), None)
        self.label = name.rstrip("_") if is_inplace else name

    @property
    def full_name(self) -> str:
        return f"{self.name}.{self.overload}" if self.overload else self.name

    def __repr__(self) -> str:
        return f"<Operator {self.full_name}>"

    def __str__(self) -> str:
        positional = [str(p) for p in self.params if not p.keyword]
        keyword = [str(p) for p in self.params if p.keyword]
        out = ["Tensor out = None"] if "out" in self.variants else []
        rest = ["*", *keyword, *out] if keyword or out else []
        text = ", ".join([*positional, *rest])
        if positional and self.params[0].name == "self":
            text = text.replace(" self", " input", 1)
        return f"({text})"

    def composite_function(self) -> Callable:
        """The Python function behind a composite operator, imported at the first call."""
        function = self._composite_function
        if function is None:
            if ":" in self.composite:  # of a package of its own
                module, _, name = self.composite.partition(":")
                function = getattr(importlib.import_module(module), name)
            else:
                module, _, name = self.composite.rpartition(".")
                function = getattr(module_above("composites", module), name)
            if self.sparse is not None and with_sparse is not None:
                function = with_sparse(self, function)
            if len(self.returns) > 1 and with_names is not None:
                function = with_names(self, function)
            if self.base is not None:  # one function makes those of all operators that are derived alike
                function = function(self)
            self._composite_function = function
        return function


def _recorder(op: Operator, family: str) -> Callable:
    """A record function that imports the family's derivatives, which put the real one in its place, and calls it."""

    def record(*args: Any) -> Any:
        if "." in family:  # of a package of its own
            importlib.import_module(family)
        else:
            module_above("derivatives", family)
        return op.record(*args)

    return record


def takes_number_first(op: Operator) -> bool:
    """Whether a number may stand for the operator's first tensor."""
    return "numbers_first" in op.tags


def takes_out(kernel: Callable) -> bool:
    """Whether a kernel writes into `out=` when it is asked to."""
    if isinstance(kernel, np.ufunc):
        return True
    code = getattr(getattr(kernel, "__wrapped__", kernel), "__code__", None)
    return code is not None and "out" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
