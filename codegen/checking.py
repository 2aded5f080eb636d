"""What checks have in common: what an operator is checked against, problems with their places, calls and functions that entries name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from .model import Call, Expression, Location, Op, Prototype
from .problems import Problem, did_you_mean
from .sources import Functions, Parameters, Sources

BUILTINS = frozenset(
    (
        "None",
        "True",
        "False",
        "len",
        "range",
        "zip",
        "enumerate",
        "tuple",
        "list",
        "reversed",
        "isinstance",
        "bool",
        "int",
    )
    + ("float", "complex", "max", "min", "any", "all", "sum", "abs", "slice", "sorted", "map")
)
"""Python's own names that a formula or an argument may use; an operator of the same name comes first."""


@dataclass(frozen=True)
class Context:
    """What the operators of a schema are checked against."""

    ops: tuple[Op, ...]
    aclnn: Mapping[str, Prototype]
    sources: Sources
    op_names: frozenset[str]


def problem_of(op: Op, place: str | Location | None, message: str) -> Problem:
    """A problem of an operator at a field (or at the place itself)."""
    location = op.location_of(place) if isinstance(place, str) else place or op.location
    return Problem(location, op.full_name, message)


def binding_problems(op: Op, call: Call, what: str, parameters: Parameters) -> Iterator[Problem]:
    """Whether the arguments of a call bind to the parameters of a function."""
    given = len(call.args)
    if given > len(parameters.positional) and not parameters.variadic:
        extra = call.args[len(parameters.positional)]
        message = f"{what} takes at most {len(parameters.positional)} positional arguments, {given} given"
        yield problem_of(op, extra.location, message)
    bound = set(parameters.positional[:given])
    by_keyword = {*parameters.positional[parameters.positional_only :], *parameters.keyword_only}
    for name, value in call.kwargs:
        if name in bound:
            yield problem_of(op, value.location, f"{what} gets '{name}' twice")
        elif name not in by_keyword and not parameters.keyword_variadic:
            yield problem_of(op, value.location, f"{what} has no parameter '{name}'{did_you_mean(name, by_keyword)}")
        bound.add(name)
    required = (*parameters.positional[: parameters.required], *parameters.keyword_required)
    for name in required:
        if name not in bound:
            yield problem_of(op, call.location, f"{what} needs '{name}'")


def name_problems(op: Op, call: Call, what: str, extra: Iterable[str] = ()) -> Iterator[Problem]:
    """Arguments of a call read the operator's arguments, their attributes, and literals."""
    arguments = [a.python_name for a in op.arguments]
    known = {*arguments, *extra, *BUILTINS}
    expressions: list[Expression] = [*call.args, *(value for _, value in call.kwargs)]
    for expression in expressions:
        for name in expression.names:
            if name not in known:
                hint = did_you_mean(name, [*arguments, *extra])
                yield problem_of(op, expression.location, f"{what}: unknown argument '{name}'{hint}")


def look_up(
    op: Op, location: Location | None, what: str, target: str, modules: Callable[[str], Functions | None]
) -> tuple[Parameters | None, str | None]:
    """The parameters of `module.function`, or the sentence that says why it is not found."""
    module, _, function = target.rpartition(".")
    if not module:
        return None, f"{what} '{target}' must be given as 'module.function'"
    functions = modules(module)
    if functions is None:
        return None, f"unknown {what} module '{module}'"
    if function not in functions or function.startswith("_"):
        return None, f"unknown {what} '{target}'"
    return functions[function], None


def module_hint(target: str, names: tuple[str, ...], modules: Callable[[str], Functions | None]) -> str:
    """What `target` may have meant: a function of its module, or the module."""
    module, _, _ = target.rpartition(".")
    functions = modules(module) if module else None
    if functions is None:
        return did_you_mean(module, names) if module else ""
    return did_you_mean(target, [f"{module}.{name}" for name in functions if not name.startswith("_")])


def without_out(parameters: Parameters) -> Parameters:
    """The parameters that the operator's arguments go to; `out` is filled by the dispatcher."""
    if "out" not in parameters.positional[parameters.required :]:
        return parameters
    rest = tuple(name for name in parameters.positional if name != "out")
    return Parameters(
        rest,
        parameters.required,
        parameters.variadic,
        parameters.keyword_only,
        parameters.keyword_required,
        parameters.keyword_variadic,
        parameters.positional_only,
    )


def article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
