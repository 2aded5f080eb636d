"""Bindings of operators to aclnn functions: how C parameters are passed, and the wrappers that an entry's `npu:` kernels become."""

from __future__ import annotations

from dataclasses import dataclass

from .model import Kernel, Op, Prototype, Schema, Type

KINDS = {
    "aclTensor*": "tensor",
    "aclTensorList*": "tensors",
    "aclScalar*": "scalar",
    "aclScalarList*": "scalars",
    "aclIntArray*": "ints",
    "aclBoolArray*": "bools",
    "aclFloatArray*": "floats",
    "int64_t": "int",
    "int32_t": "int",
    "uint64_t": "uint",
    "int8_t": "int",
    "int": "int",
    "bool": "bool",
    "float": "single",
    "double": "float",
    "char*": "text",
    "aclDataType": "dtype",
}
"""How a C type is passed; constness does not matter. The names are those of `_backends/npu/aclnn.py`."""

_TAKES = {
    "tensor": ("Tensor", "Scalar"),
    "tensors": ("Tensor",),
    "scalar": ("Scalar", "float", "int", "bool", "Tensor"),
    "scalars": ("Scalar",),
    "ints": ("int", "SymInt"),
    "bools": ("bool",),
    "floats": ("float",),
    "int": ("int", "SymInt", "bool"),
    "uint": ("int", "SymInt"),
    "bool": ("bool",),
    "float": ("float",),
    "single": ("float",),
    "text": ("str",),
    "dtype": ("ScalarType",),
}
_LISTS = ("tensors", "scalars", "ints", "bools", "floats")


def kind_of(ctype: str) -> str | None:
    """How a parameter of a C type is passed, or None when there is no way."""
    return KINDS.get(ctype.replace("const ", "").replace(" ", ""))


def takes(kind: str, type_: Type) -> bool:
    """Whether an argument of a type of the grammar can be passed so. A tensor for a scalar means: when a number stands for it."""
    if type_.list != (kind in _LISTS):
        return False
    return type_.base in _TAKES[kind]


@dataclass(frozen=True)
class Alternative:
    """One call of a wrapper: the function, its arguments in C order, and the arguments (and whether each is optional) that must be numbers for it to fit."""

    function: str
    arguments: tuple[str, ...]
    numbers: tuple[tuple[str, bool], ...]
    started: tuple[tuple[str, str], ...]
    """(result, argument) of what the function changes in place: the result begins as a copy of the argument."""

    @property
    def condition(self) -> str:
        return " and ".join(
            f"({name} is None or is_number({name}))" if optional else f"is_number({name})"
            for name, optional in self.numbers
        )


@dataclass(frozen=True)
class Wrapper:
    """What runs an operator on an NPU: alternatives of aclnn calls, or a Python function."""

    op: Op
    alternatives: tuple[Alternative, ...] = ()
    python: str | None = None

    @property
    def parameters(self) -> str:
        return ", ".join(["out", *(a.python_name for a in self.op.arguments)])

    @property
    def module(self) -> str:
        return self.python.rpartition(".")[0] if self.python else ""

    @property
    def function(self) -> str:
        return self.python.rpartition(".")[2] if self.python else ""


def wrapper(op: Op, schema: Schema) -> Wrapper | None:
    """The wrapper of an operator, or None without an `npu:` kernel."""
    kernels = op.alternatives("npu")
    if not kernels:
        return None
    if not kernels[0].target.startswith("aclnn"):
        return Wrapper(op, python=kernels[0].target)
    return Wrapper(op, tuple(_alternative(op, kernel, schema.aclnn[kernel.target]) for kernel in kernels))


def _alternative(op: Op, kernel: Kernel, prototype: Prototype) -> Alternative:
    assert kernel.call is not None
    given = iter(kernel.call.args)
    arguments, numbers, started = [], [], []
    results = 0
    for parameter in prototype.parameters:
        if parameter.direction == "out":
            # An optional result that the operator does not give is left out.
            arguments.append(f"out[{results}]" if results < max(len(op.returns), 1) else "None")
            results += 1
            continue
        text = next(given).text
        argument = op.signature.argument(text)
        if parameter.direction == "inout":
            if results < len(op.returns) or op.is_inplace and not results:
                started.append((f"out[{results}]", text))
                results += 1
        elif kind_of(parameter.type) == "scalar" and argument is not None and argument.type.base == "Tensor":
            numbers.append((text, argument.type.optional))
        arguments.append(text)
    return Alternative(kernel.target, tuple(arguments), tuple(dict.fromkeys(numbers)), tuple(started))


def wrappers(schema: Schema) -> dict[str, list[Wrapper]]:
    """The wrappers by family; families without any are left out."""
    found: dict[str, list[Wrapper]] = {}
    for op in schema.ops:
        made = wrapper(op, schema)
        if made is not None:
            found.setdefault(op.family, []).append(made)
    return found


def functions(schema: Schema) -> list[tuple[str, str, str]]:
    """(name, kinds of the parameters in C order, their names) of every prototype."""
    return [
        (
            name,
            " ".join(kind_of(p.type) or "?" for p in prototype.parameters),
            " ".join(p.name for p in prototype.parameters),
        )
        for name, prototype in schema.aclnn.items()
    ]


def cdef(schema: Schema) -> str:
    """C declarations of both phases of every prototype. The opaque types are declared with the runtime's functions."""
    lines = []
    for name, prototype in schema.aclnn.items():
        types = ", ".join([*(p.type for p in prototype.parameters), "uint64_t*", "aclOpExecutor**"])
        lines.append(f"aclnnStatus {name}GetWorkspaceSize({types});")
        lines.append(f"aclnnStatus {name}(void*, uint64_t, aclOpExecutor*, aclrtStream);")
    return "\n".join(lines) + "\n"
