"""How operators are called: the public functions, Tensor methods and operators, with their parameters and fast paths."""

from __future__ import annotations

import keyword
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from . import words
from .model import Argument, Op, Schema

SPELLED = ("dim", "keepdim")


def default(argument: Argument) -> str:
    """An argument's default as a Python expression."""
    text = argument.python_default
    if text is None or text == "None":
        return "None"
    if text.startswith("["):
        items = [item.strip() for item in text[1:-1].split(",") if item.strip()]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    if argument.type.list and argument.type.size and _is_number(text):
        return f"({', '.join([text] * argument.type.size)}{',' if argument.type.size == 1 else ''})"
    if text.startswith('"') or text.startswith("'"):
        return repr(text[1:-1])
    return {"true": "True", "false": "False"}.get(text, text)


def _is_number(text: str) -> bool:
    return text.lstrip("-").replace(".", "", 1).isdigit()


SYMBOLS = ("contiguous_format", "preserve_format", "strided", "int64", "float32")


def symbols(texts: list[str]) -> list[str]:
    """Names that defaults refer to."""
    return sorted({text for text in texts if text in SYMBOLS})


def safe(name: str) -> str:
    """A parameter's name as a Python identifier."""
    return name + "_" if keyword.iskeyword(name) else name


@dataclass(frozen=True)
class Row:
    """One row of a dispatch table."""

    op: Op
    blocks: tuple[Any, ...] = ()
    """Its loops, as `codegen.blocks` has them."""
    schema: Schema = field(default_factory=lambda: Schema(()))

    @property
    def params(self) -> list[str]:
        return [self._param(a) for a in self.op.arguments]

    def _param(self, a: Argument) -> str:
        parts = [repr(a.name), repr(a.type.base)]
        if a.type.optional:
            parts.append("optional=True")
        if a.type.list:
            parts.append("is_list=True")
        if a.type.size is not None:
            parts.append(f"size={a.type.size}")
        if a.type.element_optional:
            parts.append("elements_optional=True")
        if a.has_default:
            parts.append(f"default={default(a)}")
        if a.kwarg_only:
            parts.append("keyword=True")
        return f"Param({', '.join(parts)})"

    @property
    def cast(self) -> tuple[int, ...]:
        """Numbers of the arguments that the rule gets positionally, and that hold tensors."""
        if self.op.meta is None:
            return ()
        names = {name for expression in self.op.meta.args for name in expression.names}
        return tuple(
            i
            for i, a in enumerate(self.op.arguments)
            if a.name in names and (a.is_tensor_like or a.type.base == "Scalar")
        )

    @property
    def kernels(self) -> list[tuple[str, str]]:
        found = []
        for k in self.op.kernels:
            if k.device != "cpu":
                continue
            found.append((k.device, k.target if k.is_numpy else f"kernels_{k.module}.{k.function}"))
        return found

    @property
    def call(self) -> str | None:
        """A kernel that takes other arguments than the schema's, as a lambda."""
        kernel = self.op.kernel("cpu")
        if kernel is None or kernel.call is None:
            return None
        target = kernel.target if kernel.is_numpy else f"kernels_{kernel.module}.{kernel.function}"
        arguments = str(kernel.call)
        arguments = arguments[arguments.index("(") :]
        if "out=" in arguments or not kernel.is_numpy:
            return f"lambda {self.parameters}: {target}{arguments}"
        return f"lambda {self.parameters}, out=None: {target}{arguments[:-1]}, out=out, casting='unsafe')"

    @property
    def parameters(self) -> str:
        return ", ".join(safe(a.name) for a in self.op.arguments)

    @property
    def mutates(self) -> int | None:
        if self.op.mutates:
            return [a.name for a in self.op.arguments].index(self.op.mutates[0])
        return None

    @property
    def returns(self) -> tuple[str, ...]:
        return tuple(r.name or "" for r in self.op.returns)

    @property
    def saves_self(self) -> bool:
        """Whether a derivative needs the first argument's values, which an in-place form overwrites."""
        return bool(self.op.arguments) and any(self.op.arguments[0].name in d.saved_inputs for d in self.op.derivatives)

    @property
    def source(self) -> list[str]:
        """Keywords that say what computes the operator."""
        op, found = self.op, []
        if op.meta is not None:
            module = self.schema.rules[op.meta.function].module
            found.append(f"meta=lambda {self.parameters}: rules_{module}.{op.meta}")
        if self.cast:
            found.append(f"cast={self.cast}")
        if self.kernels:
            kernels = ", ".join(f'"{device}": {self.call or kernel}' for device, kernel in self.kernels)
            found.append(f"kernels={{{kernels}}}")
        if op.composite is not None:
            found.append(f'composite="{self._composite(op.composite)}"')
        if op.sparse:
            sparse = ", ".join(f'"{kernel.device}": "{kernel.target}"' for kernel in op.sparse)
            found.append(f"sparse={{{sparse}}}")
        if op.base is not None:
            found.append(f"base=_{op.base.family}.{op.base.identifier}")
        if op.missing is not None:
            found.append(f"missing={op.missing!r}")
        return found

    def _composite(self, target: str) -> str:
        """`module.function` of the library's composites; with a colon, and the whole name, of a package's own."""
        module, _, function = target.rpartition(".")
        return f"{self.schema.package}.{module}:{function}" if module in self.schema.own else target

    def facts(self, family: str) -> list[str]:
        """Keywords that say what else is known of it."""
        op = self.op
        found = [] if self.mutates is None else [f"mutates={self.mutates}"]
        found += ["is_inplace=True"] * op.is_inplace + ["is_view=True"] * op.is_view
        found += [f"tags={op.tags}"] * bool(op.tags) + [f"out={op.out}"] * bool(op.out)
        found += [f"returns={self.returns}"] * (self.returns != ("",)) + [f"variants={op.variants}"]
        place = f"{self.schema.product}.autograd.{family}" if self.schema.package else family
        found += [f'derivatives="{place}"'] * bool(op.derivatives) + ["saves_self=True"] * self.saves_self
        return found + [f"block=({', '.join(map(_block, self.blocks))},)"] * bool(self.blocks)

    @property
    def symbols(self) -> list[str]:
        return symbols([default(a) for a in self.op.arguments])


def _block(block: Any) -> str:
    conditions = "".join(f"({index}, {value}), " for index, value in block.conditions)
    return f"Block({block.opcode}, {block.operands}, ({conditions}){', exact=True' if block.exact else ''})"


@dataclass(frozen=True)
class Function:
    """A public function: its overloads, in the order in which they are tried."""

    name: str
    namespace: str
    family: str
    overloads: tuple[Op, ...]

    @property
    def python_name(self) -> str:
        return safe(self.name)

    @property
    def single(self) -> bool:
        """One overload whose parameters Python itself can bind."""
        return len(self.overloads) == 1 and self._bindable(self.overloads[0], 0)

    @property
    def single_method(self) -> bool:
        own = self.methods
        return len(own) == 1 and self._bindable(own[0], 1)

    @property
    def single_inplace(self) -> bool:
        own = self.inplaces
        return len(own) == 1 and self._bindable(own[0], 1)

    @staticmethod
    def _bindable(op: Op, skip: int) -> bool:
        positional = [a for a in op.arguments if not a.kwarg_only][skip:]
        if len(positional) == 1 and positional[0].type.list and positional[0].type.base in ("int", "SymInt"):
            return False
        seen_default = False
        for a in [a for a in op.arguments if not a.kwarg_only]:
            if a.has_default:
                seen_default = True
            elif seen_default:
                return False
        return not any(keyword.iskeyword(a.name) for a in op.arguments)

    @property
    def methods(self) -> tuple[Op, ...]:
        return tuple(
            op
            for op in self.overloads
            if op.has("method") and any(a.name == "self" or i == 0 and a.is_tensor for i, a in enumerate(op.arguments))
        )

    @property
    def inplaces(self) -> tuple[Op, ...]:
        return tuple(op for op in self.overloads if op.has("inplace") and not op.is_inplace)

    @property
    def has_out(self) -> bool:
        return any(op.has("out") for op in self.overloads)

    @property
    def is_factory(self) -> bool:
        return any({"dtype", "device"} <= {a.name for a in op.arguments} for op in self.overloads)

    @property
    def method_is_factory(self) -> bool:
        """Whether the method makes a new tensor, which may be told to require a gradient; what may give its argument back may not."""
        return self.is_factory and not any(r.alias is not None for op in self.overloads for r in op.signature.returns)

    @property
    def tuple_name(self) -> str:
        return f"_{self.name.lstrip('_')}_overloads" if self.name.startswith("_") else f"_{self.name}_overloads"

    @property
    def aliases(self) -> tuple[str, ...]:
        """Further names of the function and of the method."""
        return tuple(dict.fromkeys(a for op in self.overloads for a in op.aliases if not a.endswith("_")))

    @property
    def inplace_functions(self) -> tuple[str, ...]:
        """Names of functions that work in place: `torch.relu_`, and aliases that end so."""
        own = (
            [self.overloads[0].public_name + "_"] if any("inplace_function" in op.tags for op in self.overloads) else []
        )
        return (*own, *dict.fromkeys(a for op in self.overloads for a in op.aliases if a.endswith("_")))

    @property
    def exported(self) -> list[str]:
        """Public names in the namespace: only of operators with a function form."""
        if not any(op.has("function") for op in self.overloads):
            return []
        public = self.overloads[0].public_name
        names = [public]
        if public != self.name and self.namespace in ("linalg", "special", "fft"):
            pass
        return [*names, *self.aliases, *self.inplace_functions]

    def parameters(self, op: Op, first: str = "input", out: bool = True, factory: bool = True) -> str:
        """The parameter list of the Python function of a single overload."""
        positional = []
        respelled = self.respelled(op)
        for index, a in enumerate(a for a in op.arguments if not a.kwarg_only):
            name = first if index == 0 and a.name == "self" else safe(a.name)
            if a.has_default:
                positional.append(f"{name}={default(a)}")
            else:
                optional = a.name in respelled or any("=" in p for p in positional)
                positional.append(f"{name}=REQUIRED" if optional else name)
        if first == "self" and "self" in positional:
            # The method of an operator whose `self` comes later (where, polygamma).
            positional.sort(key=lambda name: name != "self")
        keywords = [
            f"{safe(a.name)}={default(a)}" if a.has_default else safe(a.name) for a in op.arguments if a.kwarg_only
        ]
        if out and op.has("out"):
            keywords.append("out=None")
        if factory and {"dtype", "device"} <= {a.name for a in op.arguments} and "requires_grad" not in keywords:
            keywords.append("requires_grad=False")
        return ", ".join(positional + (["*", *keywords] if keywords else []) + (["**spellings"] if respelled else []))

    @staticmethod
    def respelled(op: Op) -> list[str]:
        """Parameters that numpy's users spell otherwise (axis, keepdims)."""
        return [a.name for a in op.arguments if a.name in SPELLED]

    def arguments(self, op: Op, first: str = "input") -> str:
        """The same arguments as a tuple in schema order."""
        names = [first if i == 0 and a.name == "self" else safe(a.name) for i, a in enumerate(op.arguments)]
        return f"({', '.join(names)}{',' if len(names) == 1 else ''})"

    @cached_property
    def fast(self) -> tuple[Fast, ...]:
        return tuple(Fast(op) for op in self.overloads if op.fast is not None)

    def fast_of(self, op: Op) -> Fast | None:
        """The short cut of one overload."""
        return next((fast for fast in self.fast if fast.op is op), None)

    def fast_inplace_of(self, op: Op) -> Fast | None:
        """The short cut of the in-place form of one overload: a ufunc whose result has the dtype of the operands."""
        fast = self.fast_of(op)
        return fast if fast is not None and fast.is_ufunc and fast.result is None else None

    @property
    def on_road(self) -> bool:
        """Whether the extension runs some overload by itself."""
        return any(map(takes_road, self.overloads))

    @property
    def methods_on_road(self) -> bool:
        return any(map(takes_road, self.methods))

    @property
    def inplaces_on_road(self) -> bool:
        return any(map(takes_road, self.inplaces))

    @property
    def doc(self) -> str:
        return "; ".join(str(op.signature) for op in self.overloads)


@dataclass(frozen=True)
class Fast:
    """A short cut of the road: a ufunc, the loop of the operator's block, or a kernel that shapes its result itself and may decline."""

    op: Op

    @property
    def is_block(self) -> bool:
        return self.op.fast == "block"

    @property
    def is_ufunc(self) -> bool:
        return self.op.fast == "ufunc" or (self.op.fast or "").startswith("numpy.")

    @property
    def ufunc(self) -> str:
        if self.op.fast != "ufunc":
            return self.op.fast or ""
        kernel = self.op.kernel("cpu")
        assert kernel is not None and kernel.is_numpy
        return kernel.target

    @property
    def result(self) -> str | None:
        """The dtype of an inlined ufunc's result where it is not the operands'."""
        return "bool" if self.op.inline == "bool" else None

    @property
    def kernel(self) -> str:
        """A kernel's name in the generated module; None where the loop does without."""
        module, _, function = (self.op.fast or "").rpartition(".")
        return "None" if self.is_block else f"kernels_{module}.{function}"

    @property
    def module(self) -> str:
        return (self.op.fast or "").rpartition(".")[0]


def functions(schema: Schema) -> list[Function]:
    """All functions of the schema, by operator name."""
    return [Function(f.name, f.namespace, f.overloads[0].family, f.overloads) for f in schema.functions.values()]


def _kernel_modules(own: list[Function]) -> list[str]:
    return sorted({fast.module for f in own for fast in f.fast if not fast.is_ufunc and not fast.is_block})


def module(own: list[Function], family: str, schema: Schema) -> dict[str, Any]:
    """Context of a functions module."""
    tables: dict[str, list[str]] = {}
    for f in own:
        for op in f.overloads:
            tables.setdefault(op.family, []).append(op.identifier)
    texts = [default(a) for f in own for op in f.overloads for a in op.arguments]
    return {
        "functions": own,
        "family": family,
        "tables": {k: sorted(v) for k, v in sorted(tables.items())},
        "kernel_modules": [(schema.home(name, "_backends.cpu.ops"), name) for name in _kernel_modules(own)],
        "symbols": symbols(texts),
    }


def method_module(own: list[Function], family: str, schema: Schema) -> dict[str, Any]:
    """Context of a methods module."""
    context = module(own, family, schema)
    return {**context, "operators": operator_rows(own)}


def method_names(own: list[Function]) -> tuple[str, ...]:
    """Every name that the methods module of a family defines."""
    names: list[str] = []
    for f in own:
        public = [f.overloads[0].public_name, *f.aliases]
        if f.methods:
            names += public
        if f.inplaces:
            names += [name + "_" for name in public]
    return (*names, *(row.dunder for row in operator_rows(own)))


def takes_road(op: Op) -> bool:
    """Whether the extension can run an operator by itself: it has a kernel on the CPU, is a view, or composed of others."""
    return not op.is_missing and bool(op.kernel("cpu") or op.is_view or op.is_composite)


@dataclass(frozen=True)
class OperatorRow:
    """A Python operator of Tensor: the dunder, the operator it runs and how."""

    dunder: str
    op: Op
    kind: str  # unary, binary, reflected, inplace
    fast: Fast | None = None  # the fast path, of the operator or, where it only reverses another (rsub), of that one

    @property
    def on_road(self) -> bool:
        return takes_road(self.op)

    @property
    def reflected(self) -> str:
        """What a fast path finds in reverse, as `accelerate` calls it."""
        if self.kind == "reflected":
            return "arguments"
        return "operands" if self.op.name == self.dunder.strip("_") and self.op.fast is None else ""


def operator_rows(own: list[Function]) -> list[OperatorRow]:
    """The operators of the functions of a family, each dunder once."""
    rows = []
    seen: Counter[str] = Counter()
    for f in own:
        for op in f.overloads:
            for dunder in op.operators:
                if seen[dunder]:
                    continue
                seen[dunder] += 1
                kind = _operator_kind(dunder, op)
                rows.append(OperatorRow(dunder, op, kind, _operator_fast(dunder, op, kind, own)))
    return rows


def _operator_fast(dunder: str, op: Op, kind: str, own: list[Function]) -> Fast | None:
    """The fast path of a Python operator: a ufunc's, or a kernel's that takes no more than the two operands."""
    bare = dunder.strip("_")
    if op.fast is not None:
        fast = Fast(op)
        if kind == "inplace":
            return fast if fast.is_ufunc and fast.result is None else None
        return fast if fast.is_ufunc or kind != "reflected" and len(op.arguments) <= 2 else None
    if kind == "binary" and op.name == bare and bare.startswith("r"):
        mirrored = [fast for f in own if f.name == bare[1:] for fast in f.fast if fast.is_ufunc]
        return mirrored[0] if mirrored else None
    return None


def _operator_kind(dunder: str, op: Op) -> str:
    kind = words.DUNDER_KINDS[dunder]
    if kind == "reflected":
        return "binary" if op.name == dunder.strip("_") or "commutative" in op.tags else "reflected"
    return kind


def report(schema: Schema) -> dict[str, Any]:
    """Context of OPS.md."""
    ops = schema.ops
    return {
        "ops": ops,
        "families": schema.families,
        "cpu": [op for op in ops if op.kernel("cpu")],
        "views": [op for op in ops if op.is_view],
        "composites": [op for op in ops if op.is_composite],
        "missing": [op for op in ops if op.is_missing],
        "npu": [op for op in ops if op.kernel("npu")],
        "without_npu": [op for op in ops if op.kernel("cpu") and not op.kernel("npu")],
        "fallbacks": [
            (word, [op for op in ops if op.fallback == word.name])
            for word in words.FALLBACKS
            if any(op.fallback == word.name for op in ops)
        ],
        "one_by_one": schema.one_by_one,
        "aclnn_used": schema.aclnn_used,
        "aclnn_unused": sorted(set(schema.aclnn) - set(schema.aclnn_used)),
        "differs": [op for op in ops if op.differs],
    }
