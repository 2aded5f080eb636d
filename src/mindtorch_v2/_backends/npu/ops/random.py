"""Random numbers: each call takes a seed and an offset from the device's generator, so equal seeds give equal numbers.

They are not the CPU's: an NPU counts (Philox), the CPU walks (Mersenne Twister).
"""

from __future__ import annotations

import math
from typing import Any

from ...._dispatch import ops
from ...._dtype import DTYPES
from ...._generated.npu.functions import (
    aclnnInplaceBernoulli,
    aclnnInplaceNormal,
    aclnnInplaceRandom,
    aclnnInplaceUniform,
    aclnnMultinomial,
    aclnnRandperm,
)
from ...._tensor import wrap
from ..aclnn import launch
from ..creation import empty
from ..generator import NpuGenerator, get

_bool = DTYPES["bool"]
_SIGNED = (1 << 63) - 1  # some functions take int64_t


def _numbers(payload: Any, generator: Any) -> tuple[int, int]:
    """(seed, offset) for as many numbers as a payload has elements. RuntimeError for a generator of another device."""
    if generator is None:
        generator = get(payload.device.index)
    elif not isinstance(generator, NpuGenerator) or generator.device != payload.device:
        raise RuntimeError(f"Expected a '{payload.device}' device type for generator but found '{generator.device}'")
    seed, offset = generator.next(payload.size)
    return seed & _SIGNED, offset & _SIGNED


def _uniform(target: Any, low: float, high: float, generator: Any) -> None:
    if target.size:
        launch(aclnnInplaceUniform, target, low, high, *_numbers(target, generator))


def _normal(target: Any, mean: float, std: float, generator: Any) -> None:
    if target.size:
        launch(aclnnInplaceNormal, target, mean, std, *_numbers(target, generator))


def _integers(target: Any, low: int, high: int, generator: Any) -> None:
    if target.size:
        launch(aclnnInplaceRandom, target, low, high, *_numbers(target, generator))


def uniform_(out: Any, self: Any, from_: float, to: float, generator: Any) -> None:
    _uniform(out[0], from_, to, generator)


def normal_(out: Any, self: Any, mean: float, std: float, generator: Any) -> None:
    _normal(out[0], mean, std, generator)


def random_from(out: Any, self: Any, from_: int, to: int | None, generator: Any) -> None:
    _integers(out[0], from_, _above(self.dtype) if to is None else to, generator)


def random_to(out: Any, self: Any, to: int, generator: Any) -> None:
    _integers(out[0], 0, to, generator)


def random_(out: Any, self: Any, generator: Any) -> None:
    _integers(out[0], 0, _above(self.dtype), generator)


def _above(dtype: Any) -> int:
    """One more than the largest number that `random_()` gives: all of an integral dtype, what a floating one holds exactly."""
    if dtype is _bool:
        return 2
    if dtype.is_floating_point:
        return 1 << {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[str(dtype).rpartition(".")[2]]
    bits = 8 * dtype.itemsize
    return 1 << min(bits if str(dtype).rpartition(".")[2].startswith("u") else bits - 1, 62)


def bernoulli_(out: Any, self: Any, p: float, generator: Any) -> None:
    if out[0].size:
        launch(aclnnInplaceBernoulli, out[0], p, *_numbers(out[0], generator))


def bernoulli(out: Any, self: Any, generator: Any) -> Any:
    drawn = empty(tuple(self.shape), None, self.dtype, self.device)
    _uniform(drawn, 0.0, 1.0, generator)
    return ops._to_copy(ops.lt(wrap(drawn, self.dtype), self), dtype=self.dtype)


def rand(out: Any, *args: Any) -> None:
    _uniform(out[0], 0.0, 1.0, None)


def rand_generator(out: Any, size: Any, generator: Any, *args: Any) -> None:
    _uniform(out[0], 0.0, 1.0, generator)


def rand_like(out: Any, *args: Any) -> None:
    _uniform(out[0], 0.0, 1.0, None)


def randn(out: Any, *args: Any) -> None:
    _normal(out[0], 0.0, 1.0, None)


def randn_generator(out: Any, size: Any, generator: Any, *args: Any) -> None:
    _normal(out[0], 0.0, 1.0, generator)


def randn_like(out: Any, *args: Any) -> None:
    _normal(out[0], 0.0, 1.0, None)


def randint(out: Any, high: int, *args: Any) -> None:
    _integers(out[0], 0, high, None)


def randint_low(out: Any, low: int, high: int, *args: Any) -> None:
    _integers(out[0], low, high, None)


def randint_like(out: Any, self: Any, high: int, *args: Any) -> None:
    _integers(out[0], 0, high, None)


def randint_like_low(out: Any, self: Any, low: int, high: int, *args: Any) -> None:
    _integers(out[0], low, high, None)


def randperm(out: Any, n: int, *args: Any) -> None:
    if n:
        launch(aclnnRandperm, n, *_numbers(out[0], None), out[0])


def multinomial(out: Any, self: Any, num_samples: int, replacement: bool, generator: Any) -> None:
    if out[0].size:
        launch(aclnnMultinomial, self._payload, num_samples, replacement, *_numbers(out[0], generator), out[0])


def native_dropout(out: Any, input: Any, p: float, train: bool | None) -> Any:
    """(the scaled elements that are left, which those are)."""
    if train is False or p == 0:
        return ops.clone(input), ops.ones_like(input, dtype=_bool)
    kept = empty(tuple(input.shape), None, DTYPES["float32"], input.device)
    _uniform(kept, 0.0, 1.0, None)
    mask = ops.ge(wrap(kept, DTYPES["float32"]), p)
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return ops.mul(ops.mul(input, mask), scale), mask


# The same with a generator of the caller's


def rand_like_generator(out: Any, self: Any, generator: Any, *args: Any) -> None:
    _uniform(out[0], 0.0, 1.0, generator)


def randn_like_generator(out: Any, self: Any, generator: Any, *args: Any) -> None:
    _normal(out[0], 0.0, 1.0, generator)


def randint_generator(out: Any, high: int, size: Any, generator: Any, *args: Any) -> None:
    _integers(out[0], 0, high, generator)


def randint_low_generator(out: Any, low: int, high: int, size: Any, generator: Any, *args: Any) -> None:
    _integers(out[0], low, high, generator)


def randperm_generator(out: Any, n: int, generator: Any, *args: Any) -> None:
    if n:
        launch(aclnnRandperm, n, *_numbers(out[0], generator), out[0])


def normal_numbers(out: Any, mean: float, std: float, size: Any, generator: Any, *args: Any) -> None:
    _normal(out[0], mean, std, generator)


# Other distributions, made of uniform and normal numbers


def _drawn(result: Any, generator: Any, draw: Any, *parameters: float) -> Any:
    """Numbers for a result, in a dtype that can hold them well enough."""
    kind = result.dtype if result.dtype.is_floating_point and result.dtype.itemsize >= 4 else DTYPES["float32"]
    made = empty(tuple(result.shape), None, kind, result.device)
    draw(made, *parameters, generator)
    return wrap(made, kind)


def bernoulli_tensor(out: Any, self: Any, p: Any, generator: Any) -> Any:
    drawn = _drawn(out[0], generator, _uniform, 0.0, 1.0)
    return ops._to_copy(ops.lt(drawn, p), dtype=out[0].dtype)


def _as_result(out: Any, made: Any) -> Any:
    return ops._to_copy(made, dtype=out[0].dtype)


def exponential_(out: Any, self: Any, lambd: float, generator: Any) -> Any:
    drawn = _drawn(out[0], generator, _uniform, 0.0, 1.0)
    return _as_result(out, ops.div(ops.neg(ops.log1p(ops.neg(drawn))), lambd))


def geometric_(out: Any, self: Any, p: float, generator: Any) -> Any:
    drawn = _drawn(out[0], generator, _uniform, 0.0, 1.0)
    if p == 1:
        return _as_result(out, ops.ones_like(drawn))
    return _as_result(out, ops.clamp_min(ops.ceil(ops.div(ops.log1p(ops.neg(drawn)), math.log1p(-p))), 1))


def cauchy_(out: Any, self: Any, median: float, sigma: float, generator: Any) -> Any:
    drawn = _drawn(out[0], generator, _uniform, 0.0, 1.0)
    return _as_result(out, ops.add(ops.mul(ops.tan(ops.mul(ops.sub(drawn, 0.5), math.pi)), sigma), median))


def log_normal_(out: Any, self: Any, mean: float, std: float, generator: Any) -> Any:
    return _as_result(out, ops.exp(_drawn(out[0], generator, _normal, mean, std)))


def normal_around(out: Any, mean: Any, std: Any, generator: Any) -> Any:
    drawn = _drawn(out[0], generator, _normal, 0.0, 1.0)
    return _as_result(out, ops.add(ops.mul(drawn, std), mean))
