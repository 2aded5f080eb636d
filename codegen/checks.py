"""Everything that can be wrong in a schema, one function a rule.

A check of one operator takes the operator and what is around it, and yields problems. All of them run, so that an author sees all mistakes
of a run at once. Problems of shape (no YAML, no signature, a list where a text belongs) were found before, by `codegen.entries`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from . import arrays, blocks, slips, words
from .aclnn import kind_of, takes
from .entries import result_number
from .model import (
    DEVICES,
    LAYOUTS,
    VALUES,
    VARIANTS,
    Call,
    Expression,
    Kernel,
    Location,
    Op,
    Prototype,
)
from .problems import Problem, did_you_mean
from .sources import Functions, Parameters, Sources, numpy_function, numpy_names, numpy_parameters

SAMPLE_HINTS = words.names(words.HINTS)
"""What `sample` may say about an argument; anything that is no text is the value itself."""

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

_GRADIENTS = frozenset(("grad", "grads", "given", "needs"))


@dataclass(frozen=True)
class Context:
    """What the operators of a schema are checked against."""

    ops: tuple[Op, ...]
    aclnn: Mapping[str, Prototype]
    sources: Sources
    op_names: frozenset[str]


def check(ops: tuple[Op, ...], aclnn: Mapping[str, Prototype], sources: Sources) -> list[Problem]:
    """Run every check over all operators."""
    _ = sources.rules, sources.formulas  # read, so that their problems are told even when no entry uses them
    context = Context(ops, aclnn, sources, frozenset(op.name for op in ops) | sources.known_operators())
    found = [problem for op in ops for rule in OP_CHECKS for problem in rule(op, context)]
    found += [problem for rule in SCHEMA_CHECKS for problem in rule(context)]
    return found + sources.problems


def _problem(op: Op, place: str | Location | None, message: str) -> Problem:
    """A problem of an operator at a field (or at the place itself)."""
    location = op.location_of(place) if isinstance(place, str) else place or op.location
    return Problem(location, op.full_name, message)


# Forms and names


def check_variants(op: Op, context: Context) -> Iterator[Problem]:
    for variant in op.variants:
        place = f"variants.{variant}" if f"variants.{variant}" in op.locations else "variants"
        if variant not in VARIANTS:
            yield _problem(op, place, f"unknown variant '{variant}'{did_you_mean(variant, VARIANTS)}")
        elif variant == "method" and op.signature.argument("self") is None:
            yield _problem(op, place, "a method needs an argument 'self'")
        elif variant == "inplace" and op.is_inplace:
            yield _problem(op, place, "the signature is in-place already; drop the variant 'inplace'")
        elif variant == "inplace" and not _has_tensor_self(op):
            yield _problem(op, place, "an in-place form needs a tensor 'self'")
        elif variant == "out" and op.is_inplace:
            yield _problem(op, place, "an in-place operator has no 'out' form")
        elif variant == "out" and op.signature.argument("out") is not None:
            yield _problem(op, place, "the signature has an argument 'out' already; drop the variant 'out'")


def _has_tensor_self(op: Op) -> bool:
    argument = op.signature.argument("self")
    return argument is not None and argument.is_tensor_like


def check_inplace_name(op: Op, context: Context) -> Iterator[Problem]:
    """PyTorch's convention: what writes its `self` says so by a trailing underscore."""
    writes_self = op.signature.argument("self")
    if writes_self is not None and writes_self.is_written and not op.is_inplace:
        yield _problem(op, "func", f"writes its 'self', so its name must be '{op.name}_'")


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
                yield _problem(op, place, f"unknown {what} '{name}'{did_you_mean(name, words.names(known))}")


def check_out(op: Op, context: Context) -> Iterator[Problem]:
    """`out` is about a form that the operator has; a call with `out=` comes to no overload without it."""
    if op.out and not op.has("out"):
        yield _problem(op, "out", "says how a buffer is treated, but there is no variant 'out'")


def check_aliases(op: Op, context: Context) -> Iterator[Problem]:
    for name in op.aliases:
        place = f"aliases.{name}" if f"aliases.{name}" in op.locations else "aliases"
        if not name.isidentifier():
            yield _problem(op, place, f"alias '{name}' is no name")
        elif name in context.op_names:
            yield _problem(op, place, f"alias '{name}' is an operator of its own")


def check_namespace(op: Op, context: Context) -> Iterator[Problem]:
    known = context.sources.namespaces()
    if op.namespace not in known:
        message = f"unknown namespace '{op.namespace}'{did_you_mean(op.namespace, known)}"
        yield _problem(op, "namespace", message)


def check_mutates(op: Op, context: Context) -> Iterator[Problem]:
    known = [a.python_name for a in op.arguments]
    for name in op.mutates:
        argument = op.signature.argument(name)
        place = f"mutates.{name}" if f"mutates.{name}" in op.locations else "mutates"
        if argument is None:
            yield _problem(op, place, f"mutates: unknown argument '{name}'{did_you_mean(name, known)}")
        elif not argument.is_tensor_like:
            yield _problem(op, place, f"mutates: '{name}' is {_article(str(argument.type))}, not a tensor")


# Completeness


def check_implementation(op: Op, context: Context) -> Iterator[Problem]:
    """Exactly one of: kernels with a rule, a rule alone (a view), a composite, or a reason why it is missing."""
    given = op.locations
    if "missing" in given:
        for field in ("kernels", "composite", "sparse"):
            if field in given:
                yield _problem(op, "missing", f"is 'missing' but has '{field}'")
        return
    if "composite" in given:
        for field in ("kernels", "meta"):
            if field in given:
                yield _problem(op, "composite", f"has both '{field}' and 'composite'")
        return
    if "meta" not in given:
        if "kernels" in given:
            yield _problem(op, "kernels", "has kernels but no 'meta' rule")
        elif "sparse" not in given:
            yield _problem(op, "func", "needs 'meta' and 'kernels', or 'composite', or 'missing' with a reason")
        elif "grad" not in given:
            yield _problem(op, "sparse", "needs 'grad': a formula for each differentiable input, or 'none'")
        return
    if "grad" not in given:
        yield _problem(op, "meta", "needs 'grad': a formula for each differentiable input, or 'none'")


def check_node(op: Op, context: Context) -> Iterator[Problem]:
    """`node` names a node in PyTorch's way, of an operator that has one."""
    if op.node is None:
        return
    if not op.derivatives:
        yield _problem(op, "node", "has a 'node' but no derivative")
    elif not _NODE_NAME.fullmatch(op.node):
        yield _problem(op, "node", f"'{op.node}' is no name of a node like 'MaxBackward1'")


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
        yield _problem(op, op.meta.location, f"unknown meta rule '{name}'{hint}")
    elif (parameters := rules[name]) is not None:
        yield from _check_binding(op, op.meta, f"rule '{name}'", parameters)
    yield from _check_names(op, op.meta, "meta")


def check_vmap(op: Op, context: Context) -> Iterator[Problem]:
    if op.batch is not None and op.batch.partition("(")[0] not in (kinds := context.sources.kinds):
        name = op.batch.partition("(")[0]
        yield _problem(
            op, op.location_of("meta"), f"its rule says batch='{name}', which is no kind{did_you_mean(name, kinds)}"
        )
    if op.vmap is None:
        return
    functions = context.sources.batches
    parameters = functions.get(op.vmap.function)
    if parameters is None:
        yield _problem(
            op,
            op.vmap.location,
            f"vmap: unknown function '{op.vmap.function}'{did_you_mean(op.vmap.function, functions)}",
        )
        return
    # The first parameter is the level.
    own = replace(parameters, positional=parameters.positional[1:], required=max(parameters.required - 1, 0))
    yield from _check_binding(op, op.vmap, f"'{op.vmap.function}'", own)
    yield from _check_names(op, op.vmap, "vmap")


def _check_binding(op: Op, call: Call, what: str, parameters: Parameters) -> Iterator[Problem]:
    """Whether the arguments of a call bind to the parameters of a function."""
    given = len(call.args)
    if given > len(parameters.positional) and not parameters.variadic:
        extra = call.args[len(parameters.positional)]
        message = f"{what} takes at most {len(parameters.positional)} positional arguments, {given} given"
        yield _problem(op, extra.location, message)
    bound = set(parameters.positional[:given])
    by_keyword = {*parameters.positional[parameters.positional_only :], *parameters.keyword_only}
    for name, value in call.kwargs:
        if name in bound:
            yield _problem(op, value.location, f"{what} gets '{name}' twice")
        elif name not in by_keyword and not parameters.keyword_variadic:
            yield _problem(op, value.location, f"{what} has no parameter '{name}'{did_you_mean(name, by_keyword)}")
        bound.add(name)
    required = (*parameters.positional[: parameters.required], *parameters.keyword_required)
    for name in required:
        if name not in bound:
            yield _problem(op, call.location, f"{what} needs '{name}'")


def _check_names(op: Op, call: Call, what: str, extra: Iterable[str] = ()) -> Iterator[Problem]:
    """Arguments of a call read the operator's arguments, their attributes, and literals."""
    arguments = [a.python_name for a in op.arguments]
    known = {*arguments, *extra, *BUILTINS}
    expressions: list[Expression] = [*call.args, *(value for _, value in call.kwargs)]
    for expression in expressions:
        for name in expression.names:
            if name not in known:
                hint = did_you_mean(name, [*arguments, *extra])
                yield _problem(op, expression.location, f"{what}: unknown argument '{name}'{hint}")


# Kernels


def check_kernels(op: Op, context: Context) -> Iterator[Problem]:
    for kernel in op.kernels:
        if kernel.device == "cpu":
            yield from _check_cpu_kernel(op, kernel, context)
        elif kernel.device == "npu":
            yield from _check_npu_kernel(op, kernel, context)
        else:
            place = f"kernels.{kernel.device}"
            hint = did_you_mean(kernel.device, DEVICES) or f"; known are {' and '.join(DEVICES)}"
            yield _problem(op, place, f"unknown device '{kernel.device}'{hint}")


def check_fallback(op: Op, context: Context) -> Iterator[Problem]:
    """`fallback` says why there is no kernel, of an operator that the CPU can compute."""
    if op.fallback is None:
        return
    known = words.names(words.FALLBACKS)
    if op.fallback not in known:
        yield _problem(op, "fallback", f"unknown reason '{op.fallback}'{did_you_mean(op.fallback, known)}")
    elif op.kernel("cpu") is None:
        yield _problem(op, "fallback", "has a 'fallback' but no kernel 'cpu' to fall back on")
    elif op.kernel("npu") is not None:
        yield _problem(op, "fallback", "has both 'fallback' and a kernel 'npu'")


def check_states(context: Context) -> Iterator[Problem]:
    """Where entries say why they have no kernel on NPUs, all do."""
    if any(op.fallback for op in context.ops):
        for op in context.ops:
            if op.kernel("cpu") is not None and op.kernel("npu") is None and op.fallback is None:
                yield _problem(op, "func", "has a kernel 'cpu', and needs one 'npu', or a 'fallback' that says why not")


def _check_cpu_kernel(op: Op, kernel: Kernel, context: Context) -> Iterator[Problem]:
    if arrays.is_made(op):
        return  # check_block looks at it
    if kernel.is_numpy:
        function = numpy_function(kernel.target.partition(".")[2])
        if function is None:
            hint = did_you_mean(kernel.target, numpy_names())
            yield _problem(op, kernel.location, f"unknown kernel '{kernel.target}'{hint}")
            return
        parameters = numpy_parameters(function)
        if parameters is None:
            return
    else:
        parameters, problem = _lookup(op, kernel.location, "kernel", kernel.target, context.sources.cpu)
        if problem is not None:
            hint = _module_hint(kernel.target, context.sources.cpu_modules, context.sources.cpu)
            yield _problem(op, kernel.location, problem + hint)
        if parameters is None:
            return
    count = len(op.arguments)
    if kernel.call is not None:
        yield from _check_binding(op, kernel.call, f"kernel '{kernel.target}'", _without_out(parameters))
        yield from _check_names(op, kernel.call, "kernels.cpu")
    elif not _without_out(parameters).accepts(count):
        counts = _without_out(parameters).counts
        yield _problem(op, kernel.location, f"kernel '{kernel.target}' takes {counts}, the operator has {count}")


def _check_npu_kernel(op: Op, kernel: Kernel, context: Context) -> Iterator[Problem]:
    if not kernel.target.startswith("aclnn"):
        yield from _check_npu_function(op, kernel, context)
        return
    prototype = context.aclnn.get(kernel.target)
    if prototype is None:
        hint = did_you_mean(kernel.target, context.aclnn)
        yield _problem(op, kernel.location, f"unknown aclnn function '{kernel.target}'{hint}")
    elif kernel.call is None:
        yield _problem(op, kernel.location, f"'{kernel.target}' needs its arguments, in the order of schema/aclnn.yaml")
    elif kernel.call.kwargs:
        yield _problem(op, kernel.call.kwargs[0][1].location, "aclnn functions take their arguments by position")
    elif len(kernel.call.args) != len(prototype.inputs):
        wanted = ", ".join(p.name for p in prototype.inputs)
        message = f"'{kernel.target}' takes {len(prototype.inputs)} arguments ({wanted}), {len(kernel.call.args)} given"
        yield _problem(op, kernel.location, message)
    else:
        yield from _check_binding_types(op, kernel, prototype)
        yield from slips.literals(op, kernel, prototype)
    if kernel.call is not None:
        yield from _check_names(op, kernel.call, "kernels.npu", [*context.sources.npu_arguments, "out"])


def _check_npu_function(op: Op, kernel: Kernel, context: Context) -> Iterator[Problem]:
    """`module.function` of `_backends/npu/ops`: takes the operator's arguments, as tensors."""
    sources = context.sources
    parameters, problem = _lookup(op, kernel.location, "kernel", kernel.target, sources.npu)
    if problem is not None:
        yield _problem(op, kernel.location, problem + _module_hint(kernel.target, sources.npu_modules, sources.npu))
    elif kernel.call is not None:
        yield _problem(
            op, kernel.location, f"'{kernel.target}' takes the operator's arguments as they are; leave out the brackets"
        )
    elif parameters is not None and not parameters.accepts(len(op.arguments) + 1):
        message = f"kernel '{kernel.target}' takes {parameters.counts}, the results and {len(op.arguments)} are given"
        yield _problem(op, kernel.location, message)


def _check_binding_types(op: Op, kernel: Kernel, prototype: Prototype) -> Iterator[Problem]:
    """Where a plain argument is passed, its type must be one that the C parameter takes."""
    assert kernel.call is not None
    for parameter, expression in zip(prototype.inputs, kernel.call.args):
        kind = kind_of(parameter.type)
        if kind is None:
            yield _problem(op, kernel.location, f"'{kernel.target}': no way to pass the C type '{parameter.type}'")
            continue
        argument = op.signature.argument(expression.text)
        if parameter.direction == "inout" and argument is None:
            yield _problem(op, expression.location, f"'{parameter.name}' is changed in place: it must be an argument")
        if argument is not None and not takes(kind, argument.type):
            message = f"'{argument.name}' is {_article(str(argument.type))}, the C parameter '{parameter.name}' {_article(parameter.type)}"
            yield _problem(op, expression.location, message)
    outputs = len(prototype.outputs) + sum(p.direction == "inout" for p in prototype.inputs)
    if outputs < len(op.returns) and not op.is_inplace:
        yield _problem(
            op, kernel.location, f"'{kernel.target}' gives {outputs} results, the operator has {len(op.returns)}"
        )


def check_sparse(op: Op, context: Context) -> Iterator[Problem]:
    sources = context.sources
    for kernel in op.sparse:
        if kernel.device not in LAYOUTS:
            hint = did_you_mean(kernel.device, LAYOUTS) or f"; known are {', '.join(LAYOUTS)}"
            yield _problem(op, f"sparse.{kernel.device}", f"unknown layout '{kernel.device}'{hint}")
        if kernel.target == VALUES:
            continue
        parameters, problem = _lookup(op, kernel.location, "kernel", kernel.target, sources.sparse)
        if problem is not None:
            hint = _module_hint(kernel.target, sources.sparse_modules, sources.sparse)
            yield _problem(op, kernel.location, problem + hint)
        elif parameters is not None and not _without_out(parameters).accepts(len(op.arguments)):
            counts = _without_out(parameters).counts
            message = f"kernel '{kernel.target}' takes {counts}, the operator has {len(op.arguments)}"
            yield _problem(op, kernel.location, message)


def check_composite(op: Op, context: Context) -> Iterator[Problem]:
    if op.composite is None or op.base is not None:
        return
    sources = context.sources
    parameters, problem = _lookup(op, op.location_of("composite"), "composite", op.composite, sources.composite)
    if problem is not None:
        hint = _module_hint(op.composite, sources.composite_modules, sources.composite)
        yield _problem(op, "composite", problem + hint)
    if parameters is None:
        return
    by_keyword = {a.python_name for a in op.arguments if a.kwarg_only and a.python_name in parameters.keyword_only}
    left = [name for name in parameters.keyword_required if name not in by_keyword]
    positional = Parameters(parameters.positional, parameters.required, parameters.variadic, (), tuple(left), False)
    count = len(op.arguments) - len(by_keyword)
    if not positional.accepts(count):
        message = f"composite '{op.composite}' takes {positional.counts}, the operator has {count}"
        yield _problem(op, "composite", message)


def check_fast(op: Op, context: Context) -> Iterator[Problem]:
    if op.fast is None:
        return
    if op.fast == "block":
        if not op.block:
            yield _problem(op, "fast", "'fast: block' needs a block")
        return
    if op.fast == "ufunc" or op.fast.startswith("numpy."):
        yield from _check_fast_ufunc(op, op.fast)
        return
    sources = context.sources
    _, problem = _lookup(op, op.location_of("fast"), "fast path", op.fast, sources.cpu)
    if problem is not None:
        yield _problem(op, "fast", problem + _module_hint(op.fast, sources.cpu_modules, sources.cpu))


def _check_fast_ufunc(op: Op, fast: str) -> Iterator[Problem]:
    """`ufunc` is that of the cpu kernel, `numpy.add` one by name. It is inlined, so the rule must be simple enough."""
    kernel = op.kernel("cpu")
    target = fast if fast != "ufunc" else kernel.target if kernel is not None else ""
    function = numpy_function(target.partition(".")[2]) if target.startswith("numpy.") else None
    if function is None and fast == "ufunc":
        yield _problem(op, "fast", "'fast: ufunc' needs a numpy ufunc as the cpu kernel")
    elif function is None:
        yield _problem(op, "fast", f"unknown fast path '{fast}'{did_you_mean(fast, numpy_names())}")
    elif not hasattr(function, "nin"):
        yield _problem(op, "fast", f"'{target}' is no ufunc")
    elif op.meta is not None and op.inline is None:
        yield _problem(
            op, "fast", f"a ufunc as the fast path needs a rule that says 'inline'; '{op.meta.function}' does not"
        )


def _lookup(
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


def _module_hint(target: str, names: tuple[str, ...], modules: Callable[[str], Functions | None]) -> str:
    """What `target` may have meant: a function of its module, or the module."""
    module, _, _ = target.rpartition(".")
    functions = modules(module) if module else None
    if functions is None:
        return did_you_mean(module, names) if module else ""
    return did_you_mean(target, [f"{module}.{name}" for name in functions if not name.startswith("_")])


def _without_out(parameters: Parameters) -> Parameters:
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


# Blocks


def check_block(op: Op, context: Context) -> Iterator[Problem]:
    problems = list(blocks.check_block(op, context.sources.native_functions))
    if arrays.is_made(op) and not problems:
        problems += arrays.check_made(op, context.sources.elements)
    for place, message in problems:
        yield _problem(op, place, message)


# Derivatives


def check_derivative_inputs(op: Op, context: Context) -> Iterator[Problem]:
    seen: set[str] = set()
    differentiable = [a.python_name for a in op.arguments if a.type.is_differentiable]
    for derivative in op.derivatives:
        for name in derivative.inputs:
            place = f"grad.{name}" if f"grad.{name}" in op.locations else derivative.location
            argument = op.signature.argument(name)
            if argument is None:
                yield _problem(op, place, f"grad: unknown input '{name}'{did_you_mean(name, differentiable)}")
            elif not argument.type.is_differentiable:
                yield _problem(op, place, f"grad: input '{name}' is {_article(str(argument.type))}, not differentiable")
            elif name in seen:
                yield _problem(op, place, f"grad: input '{name}' has two formulas")
            seen.add(name)


def check_derivative_names(op: Op, context: Context) -> Iterator[Problem]:
    """Every name of a formula is an argument, a gradient, a result, an operator, a formula function or Python's."""
    arguments = {a.python_name for a in op.arguments}
    near = {*arguments, *_GRADIENTS, *op.signature.return_names, "result"}
    known = {*near, *context.op_names, *context.sources.formulas}
    for derivative in op.derivatives:
        key = ", ".join(derivative.inputs)
        for use in derivative.uses:
            if use.name in known or use.name in BUILTINS or result_number(use.name, op.signature) is not None:
                continue
            if re.fullmatch(r"result\d*", use.name):
                message = f"grad of '{key}': '{use.name}' is none of the {len(op.returns)} results"
            else:
                file = context.sources.unexported_formula(use.name)
                hint = did_you_mean(use.name, near, known) if file is None else f"; add it to '__all__' in {file}"
                message = f"grad of '{key}': unknown name '{use.name}'{hint}"
            yield _problem(op, use.location, message)


# Samples


def check_sample(op: Op, context: Context) -> Iterator[Problem]:
    names = [a.python_name for a in op.arguments]
    for name, hint in op.sample.items():
        if op.signature.argument(name) is None:
            yield _problem(op, f"sample.{name}", f"sample: unknown argument '{name}'{did_you_mean(name, names)}")
        elif isinstance(hint, str) and hint not in SAMPLE_HINTS and not _takes_text(op, name):
            message = f"sample: unknown hint '{hint}' for '{name}'"
            yield _problem(op, f"sample.{name}", message + did_you_mean(hint, SAMPLE_HINTS))


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
            yield _problem(op, "func", f"duplicate overload; the first is at {place}")
        else:
            first[op.full_name] = op


def check_one_namespace(context: Context) -> Iterator[Problem]:
    """Overloads of one function live in one namespace."""
    first: dict[str, Op] = {}
    for op in context.ops:
        other = first.setdefault(op.name, op)
        if other.namespace != op.namespace and op.namespace in context.sources.namespaces():
            message = f"namespace '{op.namespace}' differs from '{other.namespace}' of {other.full_name}"
            yield _problem(op, "namespace", message)


def check_owners(context: Context) -> Iterator[Problem]:
    yield from slips.owners(context.ops)


def check_slips(op: Op, context: Context) -> Iterator[Problem]:
    yield from slips.of_entry(op, context.sources.rule_table)


def _article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


OP_CHECKS: tuple[Callable[[Op, Context], Iterator[Problem]], ...] = (
    check_variants,
    check_inplace_name,
    check_words,
    check_out,
    check_aliases,
    check_namespace,
    check_mutates,
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
