"""`python -m codegen list | rules | functions`: what there is, for authors, a line each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .model import Schema
from .sources import Functions, Sources

WHERE = {
    "formulas": "grad:",
    "batches": "vmap:",
    "costs": "flops:",
    "blocks": "block:",
    "kernels": "kernels: cpu:",
    "sparse kernels": "sparse:",
    "composites": "composite:",
    "npu functions": "kernels: npu:",
    "npu arguments": "in the arguments of aclnn functions",
}
"""The kinds of functions that entries name, and the fields that do."""


def operators(schema: Schema, part: str) -> str:
    """The signatures whose name has a part, with their places."""
    lines = [f"{op.signature}  # {op.location.file}:{op.location.line}" for op in schema.ops if part in op.full_name]
    return _lines(lines)


def rules(schema: Schema, part: str) -> str:
    """The rules that `meta:` may name, with their parameters and the first line of what they say."""
    found = [rule for name, rule in sorted(schema.rules.items()) if part in name]
    return _lines(f"{rule.call}  # {rule.module}: {rule.meaning.partition('. ')[0]}" for rule in found)


def functions(schema: Schema, sources: Sources, part: str) -> str:
    """All other functions that entries may name, by the field in which."""
    kinds: dict[str, Iterable[str]] = {
        "formulas": _calls(sources.formulas),
        "batches": _calls(sources.batches),
        "costs": _calls(sources.costs),
        "blocks": (
            f"{name}({', '.join('xyzw'[: function.arity])})"
            for name, function in sorted(schema.native_functions.items())
        ),
        "kernels": _of_modules(sources.cpu_modules, sources.cpu),
        "sparse kernels": _of_modules(sources.sparse_modules, sources.sparse),
        "composites": _of_modules(sources.composite_modules, sources.composite),
        "npu functions": _of_modules(sources.npu_modules, sources.npu),
        "npu arguments": sorted(sources.npu_arguments),
    }
    lines: list[str] = []
    for kind, calls in kinds.items():
        named = [f"  {call}" for call in calls if part in call.partition("(")[0]]
        if named:
            lines += [f"{kind} ({WHERE[kind]})", *named]
    return _lines(lines)


def _calls(found: Functions, module: str = "") -> Iterator[str]:
    for name, parameters in sorted(found.items()):
        if parameters is not None and not name.startswith("_"):
            named = [*parameters.positional, *["*"][: bool(parameters.keyword_only)], *parameters.keyword_only]
            yield f"{module}{name}({', '.join(named)})"


def _of_modules(modules: tuple[str, ...], read: object) -> Iterator[str]:
    for module in modules:
        yield from _calls(read(module) or {}, f"{module}.")  # type: ignore[operator]


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
