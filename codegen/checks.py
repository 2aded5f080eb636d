"""Everything that can be wrong in a schema, one function a rule.

A check of one operator takes the operator and what is around it, and yields problems. All of them run, so that an author sees all mistakes
of a run at once. Problems of shape (no YAML, no signature, a list where a text belongs) were found before, by `codegen.entries`.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from . import arrays, blocks, slips, words
from .checking import (
    BUILTINS,
    Context,
    article,
    binding_problems,
    look_up,
    module_hint,
    name_problems,
    problem_of,
)
from .entries import result_number
from .kernel_checks import check_fallback, check_kernels, check_sparse, check_states
from .model import VARIANTS, Op, Prototype
from .problems import Problem, did_you_mean
from .sources import Parameters, Sources, numpy_function, numpy_names

SAMPLE_HINTS = words.names(words.HINTS)
"""What `sample` may say about an argument; anything that is no text is the value itself."""

_GRADIENTS = frozenset(("grad", "grads", "given", "needs"))


def check(ops: tuple[Op, ...], aclnn: Mapping[str, Prototype], sources: Sources) -> list[Problem]:
    """Run every check over all operators."""
    _ = sources.rules, sources.formulas  # read, so that their problems are told even when no entry uses them
    context = Context(ops, aclnn, sources, frozenset(op.name for op in ops) | sources.known_operators())
    found = [problem for op in ops for rule in OP_CHECKS for problem in rule(op, context)]
    found += [problem for rule in SCHEMA_CHECKS for problem in rule(context)]
    return found + sources.problems


# Forms and names


def check_variants(op: Op, context: Context) -> Iterator[Problem]:
    for variant in op.variants:
        place = f"variants.{variant}" if f"variants.{variant}" in op.locations else "variants"
        if variant not in VARIANTS:
            yield problem_of(op, place, f"unknown variant '{variant}'{did_you_mean(variant, VARIANTS)}")
        elif variant == "method" and op.signature.argument("self") is None:
            yield problem_of(op, place, "a method needs an argument 'self'")
        elif variant == "inplace" and op.is_inplace:
            yield problem_of(op, place, "the signature is in-place already; drop the variant 'inplace'")
        elif variant == "inplace" and not _has_tensor_self(op):
            yield problem_of(op, place, "an in-place form needs a tensor 'self'")
        elif variant == "out" and op.is_inplace:
            yield problem_of(op, place, "an in-place operator has no 'out' form")
        elif variant == "out" and op.signature.argument("out") is not None:
            yield problem_of(op, place, "the signature has an argument 'out' already; drop the variant 'out'")


def _has_tensor_self(op: Op) -> bool:
    argument = op.signature.argument("self")
    return argument is not None and argument.is_tensor_like


def check_name(op: Op, context: Context) -> Iterator[Problem]:
    if keyword.iskeyword(op.name):
        yield problem_of(op, "func", f"'{op.name}' is a word of Python, which no function can be called")


def check_inplace_name(op: Op, context: Context) -> Iterator[Problem]:
    """PyTorch's convention: what writes its `self` says so by a trailing underscore."""
    writes_self = op.signature.argument("self")
    if writes_self is not None and writes_self.is_written and not op.is_inplace:
        yield problem_of(op, "func", f"writes its 'self', so its name must be '{op.name}_'")


def check_words(op: Op, context: Context) -> Iterator[Problem]:
    """Python operators, tags and what `out` says are words of the manual."""
    for field, what, given, known in (
        ("operators", "Python operator", op.operators, words.DUNDERS),
        ("tags", "tag", op.tags, words.TAGS),
        ("out", "word of 'out'", op.out, words.OUT),
    ):
        for name in given:
            if name not in words.names(known):
                place = f"{field}.{name}" if f"{field}.{name}" in op.locations else field
                yield problem_of(op, place, f"unknown {what} '{name}'{did_you_mean(name, words.names(known))}")


def check_out(op: Op, context: Context) -> Iterator[Problem]:
    """`out` is about a form that the operator has; a call with `out=` comes to no overload without it."""
    if op.out and not op.has("out"):
        yield problem_of(op, "out", "says how a buffer is treated, but there is no variant 'out'")


def check_aliases(op: Op, context: Context) -> Iterator[Problem]:
    for name in op.aliases:
        place = f"aliases.{name}" if f"aliases.{name}" in op.locations else "aliases"
        if not name.isidentifier():
            yield problem_of(op, place, f"alias '{name}' is no name")
        elif name in context.op_names:
            yield problem_of(op, place, f"alias '{name}' is an operator of its own")


def check_namespace(op: Op, context: Context) -> Iterator[Problem]:
    known = context.sources.namespaces()
    if op.namespace not in known:
        message = f"unknown namespace '{op.namespace}'{did_you_mean(op.namespace, known)}"
        yield problem_of(op, "namespace", message)


def check_mutates(op: Op, context: Context) -> Iterator[Problem]:
    known = [a.python_name for a in op.arguments]
    for name in op.mutates:
        argument = op.signature.argument(name)
        place = f"mutates.{name}" if f"mutates.{name}" in op.locations else "mutates"
        if argument is None:
            yield problem_of(op, place, f"mutates: unknown argument '{name}'{did_you_mean(name, known)}")
        elif not argument.is_tensor_like:
            yield problem_of(op, place, f"mutates: '{name}' is {article(str(argument.type))}, not a tensor")


def check_recomputed(op: Op, context: Context) -> Iterator[Problem]:
    """What a node saves is what its derivative reads; a result that is computed again needs all arguments. Flags of other devices' libraries do not matter."""
    if "recomputed" in op.tags:
        read = {name for derivative in op.derivatives for name in derivative.names}
        place = "tags.recomputed" if "tags.recomputed" in op.locations else "tags"
        for argument in op.arguments:
            if argument.python_name not in read and not argument.python_name.startswith("cudnn"):
                yield problem_of(
                    op, place, f"recomputed: no derivative reads '{argument.python_name}', so no node saves it"
                )


# Completeness


def check_implementation(op: Op, context: Context) -> Iterator[Problem]:
    """Exactly one of: kernels with a rule, a rule alone (a view), a composite, or a reason why it is missing."""
    given = op.locations
    if "missing" in given:
        for field in ("kernels", "composite", "sparse"):
            if field in given:
                yield problem_of(op, "missing", f"is 'missing' but has '{field}'")
        return
    if "composite" in given:
        for field in ("kernels", "meta"):
            if field in given:
                yield problem_of(op, "composite", f"has both '{field}' and 'composite'")
        return
    if "meta" not in given:
        if "kernels" in given:
            yield problem_of(op, "kernels", "has kernels but no 'meta' rule")
        elif "sparse" not in given:
            yield problem_of(op, "func", "needs 'meta' and 'kernels', or 'composite', or 'missing' with a reason")
        elif "grad" not in given:
            yield problem_of(op, "sparse", "needs 'grad': a formula for each differentiable input, or 'none'")
        return
    if "grad" not in given:
        yield problem_of(op, "meta", "needs 'grad': a formula for each differentiable input, or 'none'")


def check_node(op: Op, context: Context) -> Iterator[Problem]:
    """`node` names a node in PyTorch's way, of an operator that has one."""
    if op.node is None:
        return
    if not op.derivatives:
        yield problem_of(op, "node", "has a 'node' but no derivative")
    elif not _NODE_NAME.fullmatch(op.node):
        yield problem_of(op, "node", f"'{op.node}' is no name of a node like 'MaxBackward1'")


_NODE_NAME = re.compile(r"[A-Z]\w*Backward\d+|CopyBackwards|NotImplemented")


# Rules


def check_meta(op: Op, context: Context) -> Iterator[Problem]:
    if op.meta is None:
        return
    rules = context.sources.rules
    name = op.meta.function
    if name not in rules:
        module = context.sources.unmarked_rule(name)
        hint = did_you_mean(name, rules) if module is None else f"; the function in _rules/{module}.py lacks @rule"
        yield problem_of(op, op.meta.location, f"unknown meta rule '{name}'{hint}")
    elif (parameters := rules[name]) is not None:
        yield from binding_problems(op, op.meta, f"rule '{name}'", parameters)
    yield from name_problems(op, op.meta, "meta")


def check_vmap(op: Op, context: Context) -> Iterator[Problem]:
    if op.batch is not None and op.batch.partition("(")[0] not in (kinds := context.sources.kinds):
        name = op.batch.partition("(")[0]
        yield problem_of(
            op, op.location_of("meta"), f"its rule says batch='{name}', which is no kind{did_you_mean(name, kinds)}"
        )
    if op.vmap is None:
        return
    functions = context.sources.batches
    parameters = functions.get(op.vmap.function)
    if parameters is None:
        yield problem_of(
            op,
            op.vmap.location,
            f"vmap: unknown function '{op.vmap.function}'{did_you_mean(op.vmap.function, functions)}",
        )
        return
    # The first parameter is the level.
    own = replace(parameters, positional=parameters.positional[1:], required=max(parameters.required - 1, 0))
    yield from binding_problems(op, op.vmap, f"'{op.vmap.function}'", own)
    yield from name_problems(op, op.vmap, "vmap")


def check_composite(op: Op, context: Context) -> Iterator[Problem]:
    if op.composite is None or op.base is not None:
        return
    sources = context.sources
    parameters, problem = look_up(op, op.location_of("composite"), "composite", op.composite, sources.composite)
    if problem is not None:
        hint = module_hint(op.composite, sources.composite_modules, sources.composite)
        yield problem_of(op, "composite", problem + hint)
    if parameters is None:
        return
    by_keyword = {a.python_name for a in op.arguments if a.kwarg_only and a.python_name in parameters.keyword_only}
    left = [name for name in parameters.keyword_required if name not in by_keyword]
    positional = Parameters(parameters.positional, parameters.required, parameters.variadic, (), tuple(left), False)
    count = len(op.arguments) - len(by_keyword)
    if not positional.accepts(count):
        message = f"composite '{op.composite}' takes {positional.counts}, the operator has {count}"
        yield problem_of(op, "composite", message)


def check_fast(op: Op, context: Context) -> Iterator[Problem]:
    if op.fast is None:
        return
    if op.fast == "block":
        if not op.block:
            yield problem_of(op, "fast", "'fast: block' needs a block")
        return
    if op.fast == "ufunc" or op.fast.startswith("numpy."):
        yield from _check_fast_ufunc(op, op.fast)
        return
    sources = context.sources
    _, problem = look_up(op, op.location_of("fast"), "fast path", op.fast, sources.cpu)
    if problem is not None:
        yield problem_of(op, "fast", problem + module_hint(op.fast, sources.cpu_modules, sources.cpu))


def _check_fast_ufunc(op: Op, fast: str) -> Iterator[Problem]:
    """`ufunc` is that of the cpu kernel, `numpy.add` one by name. It is inlined, so the rule must be simple enough."""
    kernel = op.kernel("cpu")
    target = fast if fast != "ufunc" else kernel.target if kernel is not None else ""
    function = numpy_function(target.partition(".")[2]) if target.startswith("numpy.") else None
    if function is None and fast == "ufunc":
        yield problem_of(op, "fast", "'fast: ufunc' needs a numpy ufunc as the cpu kernel")
    elif function is None:
        yield problem_of(op, "fast", f"unknown fast path '{fast}'{did_you_mean(fast, numpy_names())}")
    elif not hasattr(function, "nin"):
        yield problem_of(op, "fast", f"'{target}' is no ufunc")
    elif op.meta is not None and op.inline is None:
        yield problem_of(
            op, "fast", f"a ufunc as the fast path needs a rule that says 'inline'; '{op.meta.function}' does not"
        )


# Blocks


def check_block(op: Op, context: Context) -> Iterator[Problem]:
    problems = list(blocks.check_block(op, context.sources.native_functions))
    if arrays.is_made(op) and not problems:
        problems += arrays.check_made(op, context.sources.elements)
    for place, message in problems:
        yield problem_of(op, place, message)


# Derivatives


def check_derivative_inputs(op: Op, context: Context) -> Iterator[Problem]:
    seen: set[str] = set()
    differentiable = [a.python_name for a in op.arguments if a.type.is_differentiable]
    for derivative in op.derivatives:
        for name in derivative.inputs:
            place = f"grad.{name}" if f"grad.{name}" in op.locations else derivative.location
            argument = op.signature.argument(name)
            if argument is None:
                yield problem_of(op, place, f"grad: unknown input '{name}'{did_you_mean(name, differentiable)}")
            elif not argument.type.is_differentiable:
                yield problem_of(
                    op, place, f"grad: input '{name}' is {article(str(argument.type))}, not differentiable"
                )
            elif name in seen:
                yield problem_of(op, place, f"grad: input '{name}' has two formulas")
            seen.add(name)


def check_derivative_names(op: Op, context: Context) -> Iterator[Problem]:
    """Every name of a formula is an argument, a gradient, a result, an operator, a formula function or Python's."""
    arguments = {a.python_name for a in op.arguments}
    near = {*arguments, *_GRADIENTS, *op.signature.return_names, "result"}
    known = {*near, *context.op_names, *context.sources.formulas}
    for derivative in op.derivatives:
        key = ", ".join(derivative.inputs)
        for use in derivative.uses:
            if use.name in near or use.name in BUILTINS or result_number(use.name, op.signature) is not None:
                continue
            if use.name in known and use.called:
                continue
            if use.name in known:
                message = (
                    f"grad of '{key}': '{use.name}' is a function, and is not called{did_you_mean(use.name, near)}"
                )
            elif re.fullmatch(r"result\d*", use.name):
                message = f"grad of '{key}': '{use.name}' is none of the {len(op.returns)} results"
            else:
                file = context.sources.unexported_formula(use.name)
                hint = did_you_mean(use.name, near, known) if file is None else f"; add it to '__all__' in {file}"
                message = f"grad of '{key}': unknown name '{use.name}'{hint}"
            yield problem_of(op, use.location, message)


# Samples


def check_sample(op: Op, context: Context) -> Iterator[Problem]:
    names = [a.python_name for a in op.arguments]
    for name, hint in op.sample.items():
        if op.signature.argument(name) is None:
            yield problem_of(op, f"sample.{name}", f"sample: unknown argument '{name}'{did_you_mean(name, names)}")
        elif isinstance(hint, str) and hint not in SAMPLE_HINTS and not _takes_text(op, name):
            message = f"sample: unknown hint '{hint}' for '{name}'"
            yield problem_of(op, f"sample.{name}", message + did_you_mean(hint, SAMPLE_HINTS))


def _takes_text(op: Op, name: str) -> bool:
    """A string argument is given by its value."""
    argument = op.signature.argument(name)
    return argument is not None and argument.type.base == "str"


# Across the schema


def check_duplicate_overloads(context: Context) -> Iterator[Problem]:
    first: dict[str, Op] = {}
    for op in context.ops:
        if op.full_name in first:
            place = first[op.full_name].location_of("func")
            yield problem_of(op, "func", f"duplicate overload; the first is at {place}")
        else:
            first[op.full_name] = op


def check_one_namespace(context: Context) -> Iterator[Problem]:
    """Overloads of one function live in one namespace."""
    first: dict[str, Op] = {}
    for op in context.ops:
        other = first.setdefault(op.name, op)
        if other.namespace != op.namespace and op.namespace in context.sources.namespaces():
            message = f"namespace '{op.namespace}' differs from '{other.namespace}' of {other.full_name}"
            yield problem_of(op, "namespace", message)


def check_owners(context: Context) -> Iterator[Problem]:
    yield from slips.owners(context.ops)


def check_slips(op: Op, context: Context) -> Iterator[Problem]:
    yield from slips.of_entry(op, context.sources.rule_table)


OP_CHECKS: tuple[Callable[[Op, Context], Iterator[Problem]], ...] = (
    check_variants,
    check_name,
    check_inplace_name,
    check_words,
    check_out,
    check_aliases,
    check_namespace,
    check_mutates,
    check_recomputed,
    check_node,
    check_implementation,
    check_meta,
    check_vmap,
    check_kernels,
    check_fallback,
    check_sparse,
    check_composite,
    check_fast,
    check_block,
    check_derivative_inputs,
    check_derivative_names,
    check_sample,
    check_slips,
)
SCHEMA_CHECKS: tuple[Callable[[Context], Iterator[Problem]], ...] = (
    check_duplicate_overloads,
    check_one_namespace,
    check_states,
    check_owners,
)
