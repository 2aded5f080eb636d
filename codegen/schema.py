"""Reads a whole schema: every family file, the aclnn prototypes, and all their problems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from .acl import ACL, read_acl
from .arrays import with_kernels
from .checks import check
from .derived import with_derived
from .entries import read_entries
from .flops import check_entries, check_rules, formulas
from .loader import Mapping, Node, Scalar, Sequence, load
from .model import Op, Parameter, Prototype, Schema
from .problems import Problem, arranged, did_you_mean
from .sources import Sources

OPS = Path("schema/ops")
ACLNN = Path("schema/aclnn.yaml")
DIRECTIONS = ("in", "out", "inout")


def read_schema(root: Path) -> tuple[Schema, list[Problem]]:
    """The schema of a source tree and what is wrong with it, causes first, sorted by place. Only a schema without problems is to be used."""
    schema, problems = read(root, root / OPS, root / ACLNN, Sources(root))
    if (root / "schema" / ACL).exists():
        problems = [*problems, *read_acl(root / "schema")[1]]
    return schema, arranged(problems)


def read(
    root: Path,
    folder: Path,
    prototypes: Path,
    runtime: Sources,
    adopted: Callable[[Op, list[Problem]], Op] | None = None,
) -> tuple[Schema, list[Problem]]:
    """The schema of the families in a folder, with aclnn prototypes of a file. adopted: what each operator becomes once it is read."""
    problems: list[Problem] = []
    ops: list[Op] = []
    sources: list[str] = []
    for path in sorted(folder.glob("*.yaml")):
        file = path.relative_to(root).as_posix()
        tree, found = load(path, file)
        problems += found
        ops += read_entries(tree, file, problems)
        sources.append(file)
    aclnn: dict[str, Prototype] = {}
    if prototypes.exists():
        tree, found = load(prototypes, ACLNN.as_posix())
        problems += found
        aclnn = _prototypes(tree, problems)
        sources.append(ACLNN.as_posix())
    if adopted is not None:
        ops = [adopted(op, problems) for op in ops]
    ops = list(with_derived(with_kernels([_as_ruled(op, runtime) for op in ops], runtime)))
    found = check(tuple(ops), aclnn, runtime)
    if problems:  # what could not be read is missed by what names it: so many lines would hide the cause
        problems += [replace(problem, is_late=True) for problem in found if not problem.is_of_a_name]
    else:
        problems += [*found, *check_rules(runtime), *check_entries(tuple(ops), runtime)]
    schema = Schema(
        tuple(ops),
        aclnn,
        tuple(sources),
        tuple(sorted(runtime.formulas)),
        formulas(tuple(ops), runtime),
        tuple(sorted(runtime.costs)),
        runtime.native_functions,
        runtime.elements,
        tuple(sorted(runtime.npu_arguments)),
        runtime.rule_table,
        runtime.axes,
        runtime.axes_of_kinds,
        library=runtime.known_operators(),
    )
    return schema, problems


def _as_ruled(op: Op, runtime: Sources) -> Op:
    """The operator with what its rule says of ufuncs and of batches."""
    rule = None if op.meta is None else runtime.rule_table.get(op.meta.function)
    return op if rule is None else replace(op, inline=rule.inline, batch=rule.batch)


def _prototypes(tree: Node | None, problems: list[Problem]) -> dict[str, Prototype]:
    if tree is None:
        return {}
    if not isinstance(tree, Mapping):
        problems.append(Problem(tree.location, "", "must map aclnn functions to their parameters"))
        return {}
    found = {}
    for key, node in tree:
        rows = node.items if isinstance(node, Sequence) else (node,)
        parameters = [_parameter(key.text, row, problems) for row in rows]
        found[key.text] = Prototype(key.text, tuple(p for p in parameters if p is not None))
    return found


def _parameter(function: str, row: Node, problems: list[Problem]) -> Parameter | None:
    cells = [cell.text for cell in row if isinstance(cell, Scalar)] if isinstance(row, Sequence) else []
    if len(cells) != 3:
        problems.append(Problem(row.location, function, "a parameter is [C type, name, in | out | inout]"))
        return None
    if cells[2] not in DIRECTIONS:
        problems.append(
            Problem(row.location, function, f"unknown direction '{cells[2]}'{did_you_mean(cells[2], DIRECTIONS)}")
        )
    return Parameter(*cells)
