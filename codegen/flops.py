"""What operators cost: `schema/flops.yaml` says it by meta rule, an entry's own `flops` says it better.

    - flops: 2 * numel(out) * size(self, -1)
      rules: [mm, bmm, matmul]

A formula reads `out` (the result, a tuple if there are several), the parameters of the rule (in an entry: the operator's arguments) and the functions of
`_planning/costs.py`. Views cost nothing and composites what their parts cost, so neither needs a formula.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from codegen.checks import BUILTINS
from codegen.entries import read_work
from codegen.loader import Mapping as MappingNode, Node, Scalar, Sequence
from codegen.model import Op, Work
from codegen.problems import Problem, did_you_mean
from codegen.sources import Parameters, Sources

FLOPS = Path("schema/flops.yaml")
RESULT = "out"


def read_defaults(tree: Node | None, problems: list[Problem]) -> dict[str, Work]:
    """The formulas by rule."""
    if tree is None:
        return {}
    if not isinstance(tree, Sequence):
        problems.append(Problem(tree.location, "", "must be a list of {flops: formula, rules: [names]}"))
        return {}
    found: dict[str, Work] = {}
    for row in tree:
        formula = row.get("flops") if isinstance(row, MappingNode) else None
        rules = row.get("rules") if isinstance(row, MappingNode) else None
        if formula is None or rules is None:
            problems.append(Problem(row.location, "", "a row needs 'flops' and 'rules'"))
            continue
        work = read_work(formula, "", problems)
        for name in rules.items if isinstance(rules, Sequence) else (rules,):
            if not isinstance(name, Scalar):
                problems.append(Problem(name.location, "", "'rules' must be names of meta rules"))
            elif name.text in found:
                problems.append(Problem(name.location, name.text, "has two formulas"))
            elif work is not None:
                found[name.text] = Work(work.formula, work.uses, name.location)
    return found


def check_defaults(defaults: Mapping[str, Work], ops: tuple[Op, ...], sources: Sources) -> Iterator[Problem]:
    """Every default is of a rule, reads the rule's parameters, and is of use."""
    used = {op.meta.function for op in ops if op.meta is not None and _needs_formula(op)}
    for name, work in defaults.items():
        if name not in sources.rules:
            hint = did_you_mean(name, sources.rules)
            yield Problem(_place(work), "", f"unknown meta rule '{name}'{hint}")
            continue
        if name not in used:
            yield Problem(_place(work), name, "no operator needs this formula")
        parameters = sources.rules[name]
        names = () if parameters is None else (*parameters.positional, *parameters.keyword_only)
        yield from _unknown_names(work, name, f"rule '{name}' has no parameter", names, sources)


def check_entries(defaults: Mapping[str, Work], ops: tuple[Op, ...], sources: Sources) -> Iterator[Problem]:
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
            work = defaults.get(op.meta.function)
            if work is None:
                message = f"rule '{op.meta.function}' has no formula in {FLOPS}; give it one, or the entry a 'flops'"
                yield Problem(op.location_of("meta"), op.full_name, message)
                continue
            bound = _bound(op, sources.rules[op.meta.function])
            for use in work.uses:
                if use.name not in bound and use.name != RESULT and use.name not in sources.costs:
                    if use.name in BUILTINS:
                        continue
                    message = f"flops: the formula of rule '{op.meta.function}' reads '{use.name}', which is not passed"
                    yield Problem(op.location_of("meta"), op.full_name, message)


def formulas(defaults: Mapping[str, Work], ops: tuple[Op, ...], sources: Sources) -> dict[str, str]:
    """By full name, the formula of every operator with a kernel, over `out` and its own arguments."""
    found = {}
    for op in ops:
        if not _needs_formula(op) or op.meta is None:
            continue
        if op.flops is not None:
            found[op.full_name] = op.flops.formula
        elif op.meta.function in defaults:
            bound = _bound(op, sources.rules.get(op.meta.function))
            found[op.full_name] = defaults[op.meta.function].rewritten(_binder(bound))
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
