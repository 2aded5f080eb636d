"""What operators cost: the `@rule(flops=...)` of their rule says it, an entry's own `flops` says it better.

A formula reads `out` (the result, a tuple if there are several), the parameters of the rule (in an entry: the operator's arguments) and the functions of
`_planning/costs.py`. Views cost nothing and composites what their parts cost, so neither needs a formula.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .checking import BUILTINS
from .model import Op, Work
from .problems import Problem, did_you_mean
from .sources import Parameters, Sources

RESULT = "out"


def check_rules(sources: Sources) -> Iterator[Problem]:
    """Every formula of a rule reads the rule's parameters."""
    for name, rule in sources.rule_table.items():
        if rule.flops is not None:
            parameters = Parameters.of(rule.arguments)
            names = (*parameters.positional, *parameters.keyword_only)
            yield from _unknown_names(rule.flops, name, f"rule '{name}' has no parameter", names, sources)


def check_entries(ops: tuple[Op, ...], sources: Sources) -> Iterator[Problem]:
    """Every operator with a kernel has a formula, whose names it has."""
    for op in ops:
        if op.flops is not None:
            if not _needs_formula(op):
                yield Problem(
                    _place(op.flops), op.full_name, "flops: only an operator with kernels has costs of its own"
                )
            names = [a.python_name for a in op.arguments]
            yield from _unknown_names(op.flops, op.full_name, "flops: unknown argument", names, sources)
        elif _needs_formula(op) and op.meta is not None and op.meta.function in sources.rules:
            work = sources.rule_table[op.meta.function].flops
            if work is None:
                message = f"rule '{op.meta.function}' has no formula; give its @rule 'flops', or the entry"
                yield Problem(op.location_of("meta"), op.full_name, message)
                continue
            bound = _bound(op, sources.rules[op.meta.function])
            for use in work.uses:
                if use.name not in bound and use.name != RESULT and use.name not in sources.costs:
                    if use.name in BUILTINS:
                        continue
                    message = f"flops: the formula of rule '{op.meta.function}' reads '{use.name}', which is not passed"
                    yield Problem(op.location_of("meta"), op.full_name, message)


def formulas(ops: tuple[Op, ...], sources: Sources) -> dict[str, str]:
    """By full name, the formula of every operator with a kernel, over `out` and its own arguments."""
    found = {}
    for op in ops:
        if not _needs_formula(op) or op.meta is None:
            continue
        if op.flops is not None:
            found[op.full_name] = op.flops.formula
            continue
        rule = sources.rule_table.get(op.meta.function)
        if rule is not None and rule.flops is not None:
            found[op.full_name] = rule.flops.rewritten(_binder(_bound(op, Parameters.of(rule.arguments))))
    return found


def _binder(bound: Mapping[str, str]):
    def replace(name: str, attribute: str | None) -> str | None:
        text = bound.get(name)
        if text is None:
            return None
        text = text if text.isidentifier() or text.isdigit() else f"({text})"
        return text if attribute is None else f"{text}.{attribute}"

    return replace


def _needs_formula(op: Op) -> bool:
    return bool(op.kernels) and not op.is_composite and not op.is_missing


def _bound(op: Op, parameters: Parameters | None) -> dict[str, str]:
    """What the entry passes, or else the default, by the rule's parameter."""
    if parameters is None or op.meta is None:
        return {}
    bound = dict(parameters.defaults)
    bound |= {name: str(value) for name, value in zip(parameters.positional, op.meta.args)}
    return bound | {name: str(value) for name, value in op.meta.kwargs}


def _unknown_names(work: Work, subject: str, what: str, names: object, sources: Sources) -> Iterator[Problem]:
    known = {*names, RESULT, *sources.costs, *BUILTINS}  # type: ignore[misc]
    for use in work.uses:
        if use.name not in known:
            yield Problem(use.location or _place(work), subject, f"{what} '{use.name}'{did_you_mean(use.name, known)}")


def _place(work: Work):
    assert work.location is not None
    return work.location
