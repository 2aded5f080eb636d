"""The products that operators have, the library's and those of packages: which files are written, by which template, from what.

Logic is here and in the model; templates loop and print. Each product is (template, path below `generated/`, context). What the library alone
has stands in `emit_library`, which its wheel does not hold.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import jinja2

from . import aclnn, arrays, forms, tape, words
from .blocks import Loops
from .model import Call, Op, Schema

TEMPLATES = Path(__file__).parent / "templates"


def render_package(schema: Schema, namespace: str, header: str) -> dict[str, str]:
    """The generated files of a package of its own: path below its folder of generated modules -> text."""
    chosen = list(products(schema))
    if not schema.aclnn_used and not any(op.alternatives("npu") for op in schema.ops):
        chosen = [row for row in chosen if not row[1].startswith("npu/")]
    context = {"namespace": namespace, "npu": any(row[1].startswith("npu/") for row in chosen)}
    return dict(rendered(environment(), [*chosen, ("package.py.j2", "__init__.py", context)], header))


def environment(*further: Path) -> jinja2.Environment:
    """The templates, those of further folders among them."""
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader([TEMPLATES, *further]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.filters["filled"] = _filled
    return found


def rendered(
    templates: jinja2.Environment, chosen: Iterable[tuple[str, str, dict[str, Any]]], header: str
) -> Iterator[tuple[str, str]]:
    """(path, text) of each product."""
    for template, path, context in chosen:
        source = context.pop("source", "schema/ops/*.yaml")
        text = templates.get_template(template).render(header=header.format(source=source), **context)
        yield path, _tidy(text) if path.endswith(".py") else text.rstrip("\n") + "\n"


def _filled(names: list[str]) -> str:
    """Names as the lines of a list, each with a comma."""
    return textwrap.fill(" ".join(f"{name}," for name in names), 120, initial_indent="    ", subsequent_indent="    ")


def _tidy(text: str) -> str:
    """Python without the blank lines that macros leave inside functions, and at most two elsewhere."""
    text = re.sub(r"\n\n+(?=    (?! *def )[^\s])|\n\n+(?=     +\S)", "\n", text)
    return re.sub(r"\n{4,}", "\n\n\n", text).rstrip("\n") + "\n"


def products(schema: Schema) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """What the operators of a schema have wherever they are: no methods of Tensor, loops in C and manuals, which are the library's."""
    loops = Loops(schema)
    functions = forms.functions(schema)
    for package in ("tables", "autograd"):
        yield "subpackage.py.j2", f"{package}/__init__.py", {"package": package, "families": sorted(schema.families)}
    for family, members in schema.families.items():
        ops = list(members)
        source = f"schema/ops/{'*' if any(op.base is not None for op in ops) else family}.yaml"
        own = [f for f in functions if f.family == family]
        yield "tables.py.j2", f"tables/{family}.py", {**_tables(family, ops, loops, schema), "source": source}
        yield "functions.py.j2", f"functions/_{family}.py", {**forms.module(own, family, schema), "source": source}
        tapes = {**tape.module(ops, schema), "family": family, "source": source}
        yield "autograd.py.j2", f"autograd/{family}.py", tapes
    names = {"modules": _by_family(functions), "namespaces": _namespaces(functions)}
    yield "functions_init.py.j2", "functions/__init__.py", names
    source = "src/mindtorch_v2/_rules/ and schema/ops/*.yaml"
    rows = _formulas(schema)
    costs = [name for name in schema.costs if any(re.search(rf"\b{name}\(", formula) for _, _, formula in rows)]
    yield "flops.py.j2", "flops.py", {"formulas": rows, "costs": costs, "source": source}
    yield "vmap.py.j2", "vmap.py", {"rows": _batches(schema), "kinds": _kinds(schema)}
    yield from _npu(schema)
    yield "test_table.py.j2", "test_table.py", {"ops": schema.ops}


def _npu(schema: Schema) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The product for NPUs."""
    if not schema.aclnn:
        return
    by_family = aclnn.wrappers(schema)
    rows = [(w.op.full_name, family) for family, wrappers in by_family.items() for w in wrappers]
    reasons = {word.name: word.meaning for word in words.FALLBACKS}
    fallbacks = [(op.full_name, op.fallback) for op in schema.ops if op.fallback is not None]
    used = {name: reasons[name] for name in reasons if any(word == name for _, word in fallbacks)}
    yield "npu_init.py.j2", "npu/__init__.py", {"rows": rows, "fallbacks": fallbacks, "reasons": used}
    for family, wrappers in by_family.items():
        alternatives = [a for w in wrappers for a in w.alternatives]
        context = {
            "calls": ["is_number"] * any(a.numbers for a in alternatives) + ["launch"] * bool(alternatives),
            "starts": any(a.started for a in alternatives),
            "wrappers": wrappers,
            "modules": [
                (schema.home(m, "_backends.npu.ops"), m) for m in sorted({w.module for w in wrappers if w.python})
            ],
            "prototypes": "mindtorch_v2._generated.npu.functions" if schema.package else ".functions",
            "functions": sorted({a.function for a in alternatives}),
            "arguments": _used(schema.npu_arguments, [t for a in alternatives for t in a.arguments]),
            "source": f"schema/ops/{family}.yaml",
        }
        yield "npu_wrappers.py.j2", f"npu/{family}.py", context


def _used(names: tuple[str, ...], texts: list[str]) -> list[str]:
    return [name for name in names if any(re.search(rf"\b{name}\b", text) for text in texts)]


def _formulas(schema: Schema) -> list[tuple[str, str, str]]:
    """(full name, parameters, formula) of every operator that has costs of its own."""
    found = []
    for name, formula in schema.flops.items():
        names = [forms.safe(a.name) for a in schema.by_full_name[name].arguments]
        parameters = ["out", *(f"{n}_" if n == "out" else n for n in names)]
        found.append((name, ", ".join(parameters), formula))
    return found


def _batches(schema: Schema) -> list[tuple[str, str, str]]:
    """(full name, parameters, call) of every operator that has a rule for whole batches of examples."""
    return [call_row(op, "level", op.vmap) for op in schema.ops if op.vmap is not None]


def call_row(op: Op, first: str, rule: Call) -> tuple[str, str, str]:
    """(full name, parameters, call) of a function of an operator's arguments, behind one of its own, that calls a rule."""
    parameters = [first, *(a.python_name for a in op.arguments)]
    given = [first, *map(str, rule.args), *(f"{k}={v}" for k, v in rule.kwargs)]
    return op.full_name, ", ".join(parameters), f"{rule.function}({', '.join(given)})"


def _kinds(schema: Schema) -> list[tuple[str, str]]:
    """(full name, function of `func/kinds.py`) of every operator whose kind says how it runs on a whole batch."""
    found = []
    for op in schema.ops:
        function, _, number = op.batching.rstrip(")").partition("(")
        if op.vmap is None and function not in ("each", "drawn", "view", "parts", "-"):
            found.append((op.full_name, of_kind(function, number)))
    return found


def of_kind(function: str, number: str) -> str:
    """The function of a kind, with the number that the kind says if there is one."""
    return f"partial(kinds.{function}, number={number})" if number else f"kinds.{function}"


def _tables(family: str, ops: list[Op], loops: Loops, schema: Schema) -> dict[str, Any]:
    kernels = sorted(
        {
            k.module
            for op in ops
            for k in op.kernels
            if k.device == "cpu" and not k.is_numpy and "." not in k.module and k.module != arrays.GENERATED
        }
    )
    rules = {schema.rules[op.meta.function].module for op in ops if op.meta is not None}
    return {
        "family": family,
        "rule_modules": [(schema.home(name, "_rules"), name) for name in sorted(rules)],
        "rows": [forms.Row(op, loops.records.get(op.full_name, ()), schema) for op in ops],
        "kernel_modules": [(schema.home(name, "_backends.cpu.ops"), name) for name in kernels],
        "bases": sorted({op.base.family for op in ops if op.base is not None}),
    }


def _by_family(functions: list) -> dict[str, list]:
    found: dict[str, list] = {}
    for function in functions:
        found.setdefault(function.family, []).append(function)
    return found


def _namespaces(functions: list) -> dict[str, dict[str, str]]:
    """Public names by namespace: namespace -> {public name: name in the functions package}."""
    found: dict[str, dict[str, str]] = {}
    for function in functions:
        for name in function.exported:
            inplace = name in function.inplace_functions
            found.setdefault(function.namespace, {})[name] = function.name + "_" if inplace else function.python_name
    return {namespace: dict(sorted(names.items())) for namespace, names in sorted(found.items())}
