"""Operators without a kernel on NPUs, computed by their CPU kernels, and said so: a warning for each operator, and counts.

Note [Fallback]
It stands where a kernel would: the rule has run, and whatever surrounds a kernel (history, versions, in-place forms, `out=`, pipelines, batches) goes on
as ever. So a result is what the rule says, in new memory of the device, or is written into the memory of an in-place or `out=` form after everything was
read; inputs are copied with their strides. A copy waits for what was queued on the stream. Operators of a program's own (`register`) have no fallback:
they say themselves what they run on.
"""

from __future__ import annotations

import os
from typing import Any

from ... import _forks
from ..._device import CPU
from ..._dispatch import registry
from ..._dispatch.backends import backend_of, no_kernel
from ..._dispatch.operator import Operator
from ..._pending import settled
from ..._random.generator import Generator
from ..._rules.spec import Spec
from ..._tensor import Tensor, wrap
from ..._warnings import always, warn_of_call
from . import copies
from .creation import empty
from .generator import NpuGenerator, get
from .payload import NpuPayload

__all__ = ["counts", "execute", "possible", "reason", "reset"]

VARIABLE = "MINDTORCH_NPU_FALLBACK"
_NOT_SAID = "the package that it is of binds no kernel"
_MASK = (1 << 64) - 1

_counts: dict[str, dict[str, Any]] = {}
_warned: set[str] = set()
_lock = _forks.lock()


def counts() -> dict[str, dict[str, Any]]:
    """The operators that the CPU computed for NPUs in this process, with `calls`, `bytes_to_host`, `bytes_to_device` and the `reason` of each; a copy."""
    with _lock:
        return {name: dict(found) for name, found in _counts.items()}


def reset() -> None:
    """Begin to count anew. Warnings that were given are not given again."""
    with _lock:
        _counts.clear()


def allowed() -> bool:
    """Whether the environment lets the CPU compute: unless `MINDTORCH_NPU_FALLBACK` is 0."""
    return os.environ.get(VARIABLE, "1") != "0"


def possible(op: Operator) -> bool:
    """Whether an operator that has no kernel on NPUs has one on the CPU that may stand for it."""
    return "cpu" in op.kernels and registry.find_custom(op.full_name) is not op


def reason(op: Operator) -> str:
    """Why an operator has no kernel, as the schema says it."""
    from ..._generated.npu import FALLBACKS, REASONS

    word = FALLBACKS.get(op.full_name)
    return _NOT_SAID if word is None else REASONS[word]


def execute(op: Operator, args: tuple, results: Any, why: str = "") -> None:
    """Compute results on the CPU and put them where the results' specs say; `why` a kernel did not. NotImplementedError where that is forbidden, or the CPU
    has no kernel either."""
    if not possible(op):
        raise no_kernel(op, results.where)
    if not allowed():
        raise NotImplementedError(
            f"Could not run 'aten::{op.full_name}' with arguments from the 'NPU' backend: {why or reason(op)}. "
            f"Without {VARIABLE}=0 the CPU would compute it, with copies both ways"
        )
    host = _Host(results.where)
    given = tuple(host.argument(value) for value in args)
    spec = results.spec
    made = backend_of(CPU).run(op, spec, _with_streams(op, given, args, results), CPU)
    back = 0
    for index, payload in enumerate([made] if spec.__class__ is Spec else made):
        if payload is None:
            continue
        if results.specs[index].shape is None:
            stride = tuple(step // payload.itemsize for step in payload.strides)
            results[index] = empty(payload.shape, stride, results.specs[index].dtype, results.where)
        copies.copy(results[index], payload)
        back += payload.nbytes
    _count(op, host.nbytes, back, results.where, why or reason(op))


class _Host:
    """Arguments on the host: tensors of NPUs as copies with the same strides, each storage's part once for each tensor."""

    def __init__(self, where: Any) -> None:
        self.where = where
        self.nbytes = 0

    def argument(self, value: Any) -> Any:
        if value.__class__ is list:
            return [self.argument(item) for item in value]
        if not isinstance(value, Tensor):
            return value
        payload = settled(value)
        if not isinstance(payload, NpuPayload):
            return value
        array = copies.to_host(payload)
        self.nbytes += payload.size * payload.dtype.itemsize
        return wrap(array, value._dtype)


def _with_streams(op: Operator, given: tuple, args: tuple, results: Any) -> tuple:
    """The arguments of an operator that draws: with a generator of the CPU whose stream begins where that of the device stands, which goes on."""
    at = next((i for i, p in enumerate(op.params) if p.type == "Generator"), None)
    if at is None:
        return given
    generator = args[at]
    if generator is None:
        generator = get(results.where.index)
    elif not isinstance(generator, NpuGenerator) or generator.device != results.where:
        raise RuntimeError(f"Expected a '{results.where}' device type for generator but found '{generator.device}'")
    sizes = (value.numel() for value in given if isinstance(value, Tensor))
    seed, offset = generator.next(max(1, *sizes, 1))
    return (*given[:at], Generator().manual_seed(_mixed(seed, offset)), *given[at + 1 :])


def _mixed(seed: int, offset: int) -> int:
    """One seed of both numbers, so that neighbours have streams that do not look alike (the finaliser of splitmix64)."""
    mixed = (seed + (offset + 1) * 0x9E3779B97F4A7C15) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return (mixed ^ (mixed >> 31)) >> 1  # a seed of any generator


def _count(op: Operator, there: int, back: int, where: Any, why: str) -> None:
    name = op.full_name
    with _lock:
        found = _counts.setdefault(name, {"calls": 0, "bytes_to_host": 0, "bytes_to_device": 0, "reason": why})
        found["calls"] += 1
        found["bytes_to_host"] += there
        found["bytes_to_device"] += back
        first = name not in _warned
        _warned.add(name)
    if first or always():
        warn_of_call(
            f"aten::{name} has no kernel on NPUs ({why}): the CPU computes it. Each call waits for {where} and copies its tensors both ways "
            f"(this one {_size(there)} to the host, {_size(back)} back). This is said once for each operator; torch.npu.fallbacks() counts calls, and "
            f"{VARIABLE}=0 makes them errors."
        )


def _size(nbytes: int) -> str:
    return (
        f"{nbytes} bytes"
        if nbytes < 1024
        else f"{nbytes / 1024:.1f} KiB"
        if nbytes < 1 << 20
        else f"{nbytes / (1 << 20):.1f} MiB"
    )
