"""`python -m codegen explain OP`: an entry in words."""

from __future__ import annotations

import re
from pathlib import Path

from . import words
from .arrays import GENERATED as GENERATED_KERNELS
from .model import NAMESPACES, Derivative, Kernel, Op, Schema
from .problems import did_you_mean
from .products import GENERATED


def explain(schema: Schema, name: str, root: Path) -> tuple[str, bool]:
    """The text for a name, and whether there is such an operator."""
    ops = find(schema, name)
    if not ops:
        known = {op.full_name for op in schema.ops} | {n for op in schema.ops for n in _names(op)}
        return f"unknown operator '{name}'{did_you_mean(name, known)}", False
    return "\n\n".join(_explained(op, root, schema.flops.get(op.full_name)) for op in ops), True


def find(schema: Schema, name: str) -> list[Op]:
    """The operators that a name means: the full name, a public form of it, an alias or a Python operator."""
    name = name.removeprefix("torch.").removeprefix("Tensor.")
    exact = schema.by_full_name.get(name)
    if exact is not None and exact.overload:
        return [exact]
    for namespace in NAMESPACES:
        if name.startswith(f"{namespace}."):
            short = name.removeprefix(f"{namespace}.")
            return [op for op in schema.ops if op.namespace == namespace and short in _names(op)]
    return [op for op in schema.ops if name in _names(op)]


def _names(op: Op) -> tuple[str, ...]:
    return (op.name, *(form.name for form in op.forms), *op.aliases, *op.operators)


def _explained(op: Op, root: Path, flops: str | None) -> str:
    rows = [("signature", str(op.signature)), ("entry", str(op.location)), ("forms", ", ".join(_forms(op)))]
    if op.operators:
        rows.append(("operators", ", ".join(op.operators)))
    if op.aliases:
        rows.append(("aliases", ", ".join(op.aliases)))
    if op.missing is not None:
        rows.append(("missing", op.missing))
    if op.differs is not None:
        rows.append(("differs", op.differs))
    if op.meta is not None:
        rows.append(("rule", str(op.meta)))
    if op.composite is not None:
        rows.append(("composite", op.composite))
    elif op.is_view:
        rows.append(("kernels", "none: a view of its input on every device"))
    rows += [(f"kernel on {k.device}", _kernel(k)) for k in op.kernels]
    if op.fallback is not None:
        why = next(word.meaning for word in words.FALLBACKS if word.name == op.fallback)
        rows.append(("kernel on npu", f"that on cpu, by copies: {why}"))
    rows += [(f"kernel of layout {k.device}", k.target) for k in op.sparse]
    if op.fast is not None:
        rows.append(("fast path", op.fast))
    for block in op.block:
        when = ", ".join(f"{name} is {value!r}" for name, value in block.conditions)
        rows.append(("block", f"{block.text} where {when}" if when else block.text))
    if op.vmap is not None:
        rows.append(("vmap", str(op.vmap)))
    if op.mutates:
        rows.append(("mutates", ", ".join(op.mutates)))
    if flops is not None:
        rows.append(("FLOPs", flops))
    rows += _gradients(op)
    if op.tags:
        rows.append(("tags", ", ".join(op.tags)))
    if op.out:
        rows.append(("out=", ", ".join(op.out)))
    if op.sample:
        rows.append(("sample", ", ".join(f"{name}: {hint}" for name, hint in op.sample.items())))
    rows.append(("generated in", ", ".join(_places(op, root)) or "nothing yet; run 'python -m codegen generate'"))
    width = max(len(label) for label, _ in rows)
    return "\n".join([op.full_name, *(f"  {label:<{width}}  {text}" for label, text in rows)])


def _kernel(kernel: Kernel) -> str:
    if kernel.module == GENERATED_KERNELS:
        return "made of the block"
    return kernel.target if kernel.call is None else str(kernel.call)


def _forms(op: Op) -> list[str]:
    prefix = "torch" if op.namespace == "torch" else f"torch.{op.namespace.replace('nn', '_C._nn')}"
    patterns = {"function": "{0}.{1}", "method": "Tensor.{1}", "inplace": "Tensor.{1}", "out": "{0}.{1}(..., out=)"}
    return [patterns.get(form.kind, "{1}").format(prefix, form.name) for form in op.forms]


def _gradients(op: Op) -> list[tuple[str, str]]:
    if op.grad == "none":
        return [("gradient", "none: not differentiable")]
    if op.grad is None:
        return [("gradient", "through the operators that it calls")] if op.is_composite else []
    return [(f"gradient of {', '.join(d.inputs)}", d.formula + _saved(op, d)) for d in op.derivatives]


def _saved(op: Op, derivative: Derivative) -> str:
    names = op.signature.return_names or tuple(f"result{i}" for i in range(len(op.returns)))
    results = ("result",) if len(op.returns) == 1 else names
    saved = [*derivative.saved_inputs, *(results[number] for number in derivative.saved_results)]
    saved += [f"{name}.{attribute}" for name, attribute in derivative.saved_attributes]
    return f"    (saves {', '.join(saved)})" if saved else ""


def _places(op: Op, root: Path) -> list[str]:
    """`generated/file:line` of what was made of the entry: its row in each table, and the functions of its name."""
    name = re.escape(op.identifier)
    full = re.escape(f'"{op.full_name}"')
    made = re.compile(
        rf"{name} = Operator\(|def {name}\(|tables\.{name}\.record = |    {full}: |    {{\"name\": {full}, "
    )
    public = re.compile(rf"def {re.escape(op.name)}_?\(")
    found = []
    for file in sorted((root / GENERATED).rglob("*.py")):
        where = file.relative_to(root).as_posix()
        pattern = public if re.fullmatch(r"generated/(functions/_|methods/)\w+\.py", where) else made
        lines = file.read_text(encoding="utf-8").splitlines()
        number = next((i for i, line in enumerate(lines, 1) if pattern.match(line)), None)
        if number is not None:
            found.append(f"{where}:{number}")
    return found
