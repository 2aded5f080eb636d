"""What can be wrong with the kernels of an operator, for each device and layout, and with the reason why one is not there."""

from __future__ import annotations

from collections.abc import Iterator

from . import arrays, slips, words
from .aclnn import kind_of, takes
from .checking import Context, article, binding_problems, look_up, module_hint, name_problems, problem_of, without_out
from .model import DEVICES, LAYOUTS, VALUES, Kernel, Op, Prototype
from .problems import Problem, did_you_mean
from .sources import numpy_function, numpy_names, numpy_parameters


def check_kernels(op: Op, context: Context) -> Iterator[Problem]:
    for kernel in op.kernels:
        if kernel.device == "cpu":
            yield from _cpu_kernel(op, kernel, context)
        elif kernel.device == "npu":
            yield from _npu_kernel(op, kernel, context)
        else:
            place = f"kernels.{kernel.device}"
            hint = did_you_mean(kernel.device, DEVICES) or f"; known are {' and '.join(DEVICES)}"
            yield problem_of(op, place, f"unknown device '{kernel.device}'{hint}")


def check_fallback(op: Op, context: Context) -> Iterator[Problem]:
    """`fallback` says why there is no kernel, of an operator that the CPU can compute."""
    if op.fallback is None:
        return
    known = words.names(words.FALLBACKS)
    if op.fallback not in known:
        yield problem_of(op, "fallback", f"unknown reason '{op.fallback}'{did_you_mean(op.fallback, known)}")
    elif op.kernel("cpu") is None:
        yield problem_of(op, "fallback", "has a 'fallback' but no kernel 'cpu' to fall back on")
    elif op.kernel("npu") is not None:
        yield problem_of(op, "fallback", "has both 'fallback' and a kernel 'npu'")


def check_states(context: Context) -> Iterator[Problem]:
    """Where entries say why they have no kernel on NPUs, all do."""
    if any(op.fallback for op in context.ops):
        for op in context.ops:
            if op.kernel("cpu") is not None and op.kernel("npu") is None and op.fallback is None:
                yield problem_of(
                    op, "func", "has a kernel 'cpu', and needs one 'npu', or a 'fallback' that says why not"
                )


def _cpu_kernel(op: Op, kernel: Kernel, context: Context) -> Iterator[Problem]:
    if arrays.is_made(op):
        return  # check_block looks at it
    if kernel.is_numpy:
        function = numpy_function(kernel.target.partition(".")[2])
        if function is None:
            hint = did_you_mean(kernel.target, numpy_names())
            yield problem_of(op, kernel.location, f"unknown kernel '{kernel.target}'{hint}")
            return
        parameters = numpy_parameters(function)
        if parameters is None:
            return
    else:
        parameters, problem = look_up(op, kernel.location, "kernel", kernel.target, context.sources.cpu)
        if problem is not None:
            hint = module_hint(kernel.target, context.sources.cpu_modules, context.sources.cpu)
            yield problem_of(op, kernel.location, problem + hint)
        if parameters is None:
            return
    count = len(op.arguments)
    if kernel.call is not None:
        yield from binding_problems(op, kernel.call, f"kernel '{kernel.target}'", without_out(parameters))
        yield from name_problems(op, kernel.call, "kernels.cpu")
    elif not without_out(parameters).accepts(count):
        counts = without_out(parameters).counts
        yield problem_of(op, kernel.location, f"kernel '{kernel.target}' takes {counts}, the operator has {count}")


def _npu_kernel(op: Op, kernel: Kernel, context: Context) -> Iterator[Problem]:
    if not kernel.target.startswith("aclnn"):
        yield from _npu_function(op, kernel, context)
        return
    prototype = context.aclnn.get(kernel.target)
    if prototype is None:
        hint = did_you_mean(kernel.target, context.aclnn)
        yield problem_of(op, kernel.location, f"unknown aclnn function '{kernel.target}'{hint}")
    elif kernel.call is None:
        yield problem_of(
            op, kernel.location, f"'{kernel.target}' needs its arguments, in the order of schema/aclnn.yaml"
        )
    elif kernel.call.kwargs:
        yield problem_of(op, kernel.call.kwargs[0][1].location, "aclnn functions take their arguments by position")
    elif len(kernel.call.args) != len(prototype.inputs):
        wanted = ", ".join(p.name for p in prototype.inputs)
        message = f"'{kernel.target}' takes {len(prototype.inputs)} arguments ({wanted}), {len(kernel.call.args)} given"
        yield problem_of(op, kernel.location, message)
    else:
        yield from _binding_types(op, kernel, prototype)
        yield from slips.literals(op, kernel, prototype)
    if kernel.call is not None:
        yield from name_problems(op, kernel.call, "kernels.npu", [*context.sources.npu_arguments, "out"])


def _npu_function(op: Op, kernel: Kernel, context: Context) -> Iterator[Problem]:
    """`module.function` of `_backends/npu/ops`: takes the operator's arguments, as tensors."""
    sources = context.sources
    parameters, problem = look_up(op, kernel.location, "kernel", kernel.target, sources.npu)
    if problem is not None:
        yield problem_of(op, kernel.location, problem + module_hint(kernel.target, sources.npu_modules, sources.npu))
    elif kernel.call is not None:
        yield problem_of(
            op, kernel.location, f"'{kernel.target}' takes the operator's arguments as they are; leave out the brackets"
        )
    elif parameters is not None and not parameters.accepts(len(op.arguments) + 1):
        message = f"kernel '{kernel.target}' takes {parameters.counts}, the results and {len(op.arguments)} are given"
        yield problem_of(op, kernel.location, message)


def _binding_types(op: Op, kernel: Kernel, prototype: Prototype) -> Iterator[Problem]:
    """Where a plain argument is passed, its type must be one that the C parameter takes."""
    assert kernel.call is not None
    for parameter, expression in zip(prototype.inputs, kernel.call.args):
        kind = kind_of(parameter.type)
        if kind is None:
            yield problem_of(op, kernel.location, f"'{kernel.target}': no way to pass the C type '{parameter.type}'")
            continue
        argument = op.signature.argument(expression.text)
        if parameter.direction == "inout" and argument is None:
            yield problem_of(op, expression.location, f"'{parameter.name}' is changed in place: it must be an argument")
        if argument is not None and not takes(kind, argument.type):
            message = f"'{argument.name}' is {article(str(argument.type))}, the C parameter '{parameter.name}' {article(parameter.type)}"
            yield problem_of(op, expression.location, message)
    outputs = len(prototype.outputs) + sum(p.direction == "inout" for p in prototype.inputs)
    if outputs < len(op.returns) and not op.is_inplace:
        yield problem_of(
            op, kernel.location, f"'{kernel.target}' gives {outputs} results, the operator has {len(op.returns)}"
        )


def check_sparse(op: Op, context: Context) -> Iterator[Problem]:
    sources = context.sources
    for kernel in op.sparse:
        if kernel.device not in LAYOUTS:
            hint = did_you_mean(kernel.device, LAYOUTS) or f"; known are {', '.join(LAYOUTS)}"
            yield problem_of(op, f"sparse.{kernel.device}", f"unknown layout '{kernel.device}'{hint}")
        if kernel.target == VALUES:
            continue
        parameters, problem = look_up(op, kernel.location, "kernel", kernel.target, sources.sparse)
        if problem is not None:
            hint = module_hint(kernel.target, sources.sparse_modules, sources.sparse)
            yield problem_of(op, kernel.location, problem + hint)
        elif parameters is not None and not without_out(parameters).accepts(len(op.arguments)):
            counts = without_out(parameters).counts
            message = f"kernel '{kernel.target}' takes {counts}, the operator has {len(op.arguments)}"
            yield problem_of(op, kernel.location, message)
