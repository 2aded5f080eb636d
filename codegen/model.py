"""The parsed schema as frozen data: what an operator is, and nothing about how it is written out.

The loader and the checks build these records; the templates only read them. A record that exists is consistent: whatever
can be wrong with an entry was reported by `codegen.checks` before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from . import words
from .signature_model import (
    Alias as Alias,
    Argument as Argument,
    Location as Location,
    Return as Return,
    Signature as Signature,
    Type as Type,
)

VARIANTS = words.names(words.VARIANTS)
NAMESPACES = words.names(words.NAMESPACES)
DEVICES = ("cpu", "npu")  # those that an entry gives kernels for; meta runs the rule
LAYOUTS = words.names(words.SPARSE)
VALUES = "values"  # in place of a sparse kernel: the operator itself, of the specified elements
SAVED_ATTRIBUTES = ("shape", "dtype", "device", "ndim", "_geometry")


@dataclass(frozen=True)
class Expression:
    """A Python expression inside a schema value: its text and the names that it reads."""

    text: str
    names: tuple[str, ...] = ()
    location: Location | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Call:
    """`function(a, b, k=expression)`: how an entry calls its rule or an aclnn symbol."""

    function: str
    args: tuple[Expression, ...]
    kwargs: tuple[tuple[str, Expression], ...] = ()
    location: Location | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.function}({', '.join([*map(str, self.args), *(f'{k}={v}' for k, v in self.kwargs)])})"

    @property
    def names(self) -> tuple[str, ...]:
        """Every name read by the arguments, once, in order of appearance."""
        expressions = [*self.args, *(value for _, value in self.kwargs)]
        return tuple(dict.fromkeys(name for expression in expressions for name in expression.names))


@dataclass(frozen=True)
class Kernel:
    """The kernel of one device. `target` is `numpy.add` or `module.function` on the CPU (of the module `made`, where it is made of the operator's block), the
    aclnn symbol or `module.function` on an NPU.

    `call` is None when the entry names the function only: the kernel then takes the arguments in schema order. A device may have alternatives: the first that
    fits is taken, see `Binding`.
    """

    device: str
    target: str
    call: Call | None = None
    location: Location | None = field(default=None, compare=False)

    @property
    def is_numpy(self) -> bool:
        return self.target.startswith("numpy.")

    @property
    def module(self) -> str:
        return self.target.rpartition(".")[0]

    @property
    def function(self) -> str:
        return self.target.rpartition(".")[2]


@dataclass(frozen=True)
class NameUse:
    """One reading of a name in a formula: `name`, or `name.attribute` where only the attribute is wanted.

    `start` and `end` are offsets into the formula's text.
    """

    name: str
    attribute: str | None
    start: int
    end: int
    location: Location | None = field(default=None, compare=False)
    called: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Derivative:
    """The formula for the gradient of one input, or of several in one call."""

    inputs: tuple[str, ...]
    formula: str
    uses: tuple[NameUse, ...] = ()
    saved_inputs: tuple[str, ...] = ()
    """Tensor (or tensor list) arguments that are saved whole."""
    saved_attributes: tuple[tuple[str, str], ...] = ()
    """(tensor argument or result, attribute) of those that are wanted only for an attribute."""
    saved_results: tuple[int, ...] = ()
    """Numbers of the results that are saved whole."""
    scalars: tuple[str, ...] = ()
    """Arguments that hold no tensor (numbers, lists, flags)."""
    functions: tuple[str, ...] = ()
    """Names that are neither arguments nor results nor gradients: operators, formula functions, builtins."""
    location: Location | None = field(default=None, compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that the formula reads, once, in order of appearance."""
        return tuple(dict.fromkeys(use.name for use in self.uses))

    def rewritten(self, replace: Callable[[str, str | None], str | None]) -> str:
        """The formula with each use replaced by `replace(name, attribute)`; None leaves the use as it is written."""
        return _rewritten(self.formula, self.uses, replace)


@dataclass(frozen=True)
class Work:
    """A formula for the floating-point operations of a call, over `out`, arguments (of an operator or of a rule) and cost functions."""

    formula: str
    uses: tuple[NameUse, ...] = ()
    location: Location | None = field(default=None, compare=False)

    def rewritten(self, replace: Callable[[str, str | None], str | None]) -> str:
        """As `Derivative.rewritten`."""
        return _rewritten(self.formula, self.uses, replace)


@dataclass(frozen=True)
class Block:
    """One element of the result as an expression, which holds where the parameters that it does not read have their defaults or these values."""

    text: str
    conditions: tuple[tuple[str, object], ...] = ()
    location: Location = field(default=Location("", 0, 0), compare=False)
    place: Callable[[int], Location] | None = field(default=None, compare=False, repr=False)
    """Where an offset into the text stands."""

    def at(self, offset: int) -> Location:
        return self.location if self.place is None else self.place(offset)


@dataclass(frozen=True)
class NativeFunction:
    """A function of one element in the C extension's headers.

    is_single: it is one operation of IEEE 754. is_cheap: it takes a few instructions. by_hand: the types of which it has a loop that is written for the widest vectors.
    """

    arity: int
    is_single: bool
    is_cheap: bool
    by_hand: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Form:
    """One public way to call an operator: `kind` is a variant, `name` the name without its namespace (`add_`)."""

    kind: str
    name: str


@dataclass(frozen=True)
class Op:
    """One entry of the schema: an operator with all its forms."""

    signature: Signature
    family: str
    location: Location
    variants: tuple[str, ...] = ("function",)
    operators: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    namespace: str = "torch"
    meta: Call | None = None
    grad: tuple[Derivative, ...] | str | None = None
    """Derivatives, the word `none` for an operator that is not differentiable, or None when a composite says nothing."""
    node: str | None = None
    """The printed name of the node, where it is not the operator's in PyTorch's spelling (`MaxBackward1`)."""
    kernels: tuple[Kernel, ...] = ()
    composite: str | None = None
    fallback: str | None = None
    """Why its CPU kernel computes on NPUs: a word of `words.FALLBACKS`."""
    sparse: tuple[Kernel, ...] = ()
    """Kernels of sparse tensors; the `device` of each is a layout."""
    mutates: tuple[str, ...] = ()
    fast: str | None = None
    inline: str | None = None
    """What a ufunc as the short cut gives, as the rule says: the dtype of the `operands`, or `bool`; None where it may not be one."""
    block: tuple[Block, ...] = ()
    """The operator element by element, for the block interpreter: alternatives, of which the first that fits is taken."""
    vmap: Call | None = None
    """What it does to a whole batch of examples: a call of a function of `func/whole/`."""
    batch: str | None = None
    """What operators of its rule do to a whole batch: a function of `func/kinds.py`."""
    tags: tuple[str, ...] = ()
    out: tuple[str, ...] = ()
    """How the `out=` form treats a buffer that is not as the result."""
    flops: Work | None = None
    """What a call costs, where it is not what its rule's calls cost."""
    sample: Mapping[str, object] = field(default_factory=dict, compare=False)
    differs: str | None = None
    missing: str | None = None
    copy: bool = False
    """Whether the view has a form that copies (`expand_copy`)."""
    foreach: tuple[Signature, ...] = ()
    """The forms of lists of tensors (`_foreach_add.List`)."""
    base: Op | None = field(default=None, compare=False, repr=False)
    """The operator that this one is derived of, see `codegen.derived`."""
    locations: Mapping[str, Location] = field(default_factory=dict, compare=False, repr=False)
    """Where each field's value stands, and each item of it: `meta`, `variants.method`, `kernels.cpu`, `grad.self`."""

    @property
    def name(self) -> str:
        return self.signature.name

    @property
    def overload(self) -> str:
        return self.signature.overload

    @property
    def full_name(self) -> str:
        return self.signature.full_name

    @property
    def identifier(self) -> str:
        """The full name as one Python identifier: `sum_dim_IntList`."""
        return f"{self.name}_{self.overload}" if self.overload else self.name

    @property
    def public_name(self) -> str:
        """The name inside the namespace: `inv_ex` for `linalg_inv_ex` in `torch.linalg`; torch_npu's operators keep theirs."""
        prefix = f"{self.namespace}_"
        whole = self.namespace in ("torch", "npu") or not self.name.startswith(prefix)
        return self.name if whole else self.name[len(prefix) :]

    @property
    def arguments(self) -> tuple[Argument, ...]:
        return self.signature.arguments

    @property
    def returns(self) -> tuple[Return, ...]:
        return self.signature.returns

    @property
    def is_inplace(self) -> bool:
        """The signature itself is an in-place one (`fill_.Scalar`)."""
        return self.name.endswith("_") and not self.name.endswith("__")

    @property
    def is_composite(self) -> bool:
        return self.composite is not None

    @property
    def is_sparse_only(self) -> bool:
        """Sparse kernels are all that it has."""
        return bool(self.sparse) and self.meta is None and not self.is_composite

    @property
    def is_missing(self) -> bool:
        return self.missing is not None

    @property
    def rule(self) -> str | None:
        """What decides which arguments are tried: the rule (of the view that a copy copies), or the composite's function."""
        if self.base is not None and self.base.copy and self.base.meta is not None:
            return self.base.meta.function
        return self.composite if self.meta is None else self.meta.function

    @property
    def is_view(self) -> bool:
        """A view operator: a rule and no kernel."""
        return self.meta is not None and not self.kernels and self.composite is None

    @property
    def batching(self) -> str:
        """How it runs under `vmap`: a word of the entry or its rule, `parts` of a composite, `each` for example by example, `-` where nothing is
        batched."""
        if self.vmap is not None:
            return self.vmap.function
        if "random" in self.tags and self.batch is None:
            return "each" if "draws_by_rows" in self.tags else "drawn"
        if "pointwise" in self.tags:
            return "elements"
        if self.batch is not None:
            return self.batch
        if self.is_view or self.is_composite:
            return "view" if self.is_view else "parts"
        takes = any(a.type.base == "Tensor" for a in self.arguments)
        return "each" if takes and not (self.is_sparse_only or self.is_missing) else "-"

    @property
    def is_differentiable(self) -> bool:
        return isinstance(self.grad, tuple)

    @property
    def derivatives(self) -> tuple[Derivative, ...]:
        return self.grad if isinstance(self.grad, tuple) else ()

    @property
    def forms(self) -> tuple[Form, ...]:
        """Every form in the order of `variants`; the in-place form carries its underscore."""
        return tuple(
            Form(kind, self.public_name + "_" if kind == "inplace" and not self.is_inplace else self.public_name)
            for kind in self.variants
        )

    def has(self, variant: str) -> bool:
        return variant in self.variants

    def kernel(self, device: str) -> Kernel | None:
        return next((k for k in self.kernels if k.device == device), None)

    def alternatives(self, device: str) -> tuple[Kernel, ...]:
        """The kernels of a device, in the order that they are tried."""
        return tuple(k for k in self.kernels if k.device == device)

    def derivative(self, name: str) -> Derivative | None:
        """The derivative that gives the gradient of the input `name`."""
        return next((d for d in self.derivatives if name in d.inputs), None)

    def location_of(self, name: str) -> Location:
        """Where the value of the field `name` stands, or else the entry."""
        return self.locations.get(name, self.location)


@dataclass(frozen=True)
class Function:
    """The operators that share a public name; overloads stand in the order of the schema, which is the order they are tried."""

    name: str
    namespace: str
    overloads: tuple[Op, ...]

    @property
    def public_name(self) -> str:
        return self.overloads[0].public_name

    @property
    def aliases(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(alias for op in self.overloads for alias in op.aliases))


@dataclass(frozen=True)
class Parameter:
    """One parameter of an aclnn function, in C order; `direction` is `in`, `out` or, for a tensor changed in place, `inout`."""

    type: str
    name: str
    direction: str


@dataclass(frozen=True)
class Prototype:
    """The first phase of an aclnn function, without its trailing workspace size and executor."""

    name: str
    parameters: tuple[Parameter, ...]

    @property
    def inputs(self) -> tuple[Parameter, ...]:
        """What a call passes: everything but the results."""
        return tuple(p for p in self.parameters if p.direction != "out")

    @property
    def outputs(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.direction == "out")


@dataclass(frozen=True)
class Schema:
    """All operators, family by family (files in alphabetical order, entries in file order), and the aclnn prototypes."""

    ops: tuple[Op, ...]
    aclnn: Mapping[str, Prototype] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    """Schema files that were read, relative to the root."""
    formulas: tuple[str, ...] = ()
    """Names of the public functions of `_autograd/formulas.py`."""
    flops: Mapping[str, str] = field(default_factory=dict)
    """By full name, what a call of an operator costs, as an expression over `out` and its arguments."""
    costs: tuple[str, ...] = ()
    """Names of the public functions of `_planning/costs.py`, which those expressions call."""
    native_functions: Mapping[str, NativeFunction] = field(default_factory=dict)
    """Functions of one element, which `block` expressions call."""
    elements: Mapping[str, str] = field(default_factory=dict)
    """Those that numpy computes: `numpy.exp`, or `elements.gelu` of the CPU's kernels."""
    npu_arguments: tuple[str, ...] = ()
    """Public names of `_backends/npu/arguments.py`, which bindings to aclnn functions use."""
    rules: Mapping[str, Any] = field(default_factory=dict)
    """Rules by name, as `codegen.rules` reads them."""

    axes: tuple[str, ...] = ()
    """Rules that have a function of their own in `distributed/tensor/rules.py`."""
    axes_of_kinds: tuple[str, ...] = ()
    """Kinds of operators that have one in `distributed/tensor/kinds.py`."""

    package: str = ""
    """The package whose schema this is, where it is not the library's: see `codegen.outside`."""
    product: str = "mindtorch_v2._generated"
    """The package of the generated modules."""
    own: frozenset[str] = frozenset()
    """The package's modules of kernels, rules and composites, and `formulas.NAME` of its formulas."""
    library: frozenset[str] = frozenset()
    """Names of the library's operators, for a package's formulas."""

    def home(self, module: str, default: str) -> str:
        """Where a module is imported from: the package, or a place in the library."""
        return self.package if module in self.own else f"mindtorch_v2.{default}"

    @cached_property
    def families(self) -> dict[str, tuple[Op, ...]]:
        found: dict[str, list[Op]] = {}
        for op in self.ops:
            found.setdefault(op.family, []).append(op)
        return {family: tuple(ops) for family, ops in found.items()}

    @cached_property
    def functions(self) -> dict[str, Function]:
        """Functions by operator name (`add`, `linalg_inv`, `fill_`); an operator that is missing is in its group too."""
        found: dict[str, list[Op]] = {}
        for op in self.ops:
            found.setdefault(op.name, []).append(op)
        return {name: Function(name, ops[0].namespace, tuple(ops)) for name, ops in found.items()}

    @cached_property
    def by_full_name(self) -> dict[str, Op]:
        return {op.full_name: op for op in self.ops}

    @cached_property
    def aclnn_used(self) -> tuple[str, ...]:
        """The aclnn functions that entries are bound to, in alphabetical order."""
        return tuple(sorted({k.target for op in self.ops for k in op.alternatives("npu") if k.target in self.aclnn}))

    @property
    def one_by_one(self) -> tuple[str, ...]:
        """The names of operators that `vmap` runs on one example after the other."""
        return tuple(dict.fromkeys(op.name for op in self.ops if op.batching == "each"))

    @property
    def implemented(self) -> tuple[Op, ...]:
        return tuple(op for op in self.ops if not op.is_missing)


def _rewritten(text: str, uses: tuple[NameUse, ...], replace: Callable[[str, str | None], str | None]) -> str:
    for use in sorted(uses, key=lambda u: u.start, reverse=True):
        new = replace(use.name, use.attribute)
        if new is not None:
            text = text[: use.start] + new + text[use.end :]
    return text
