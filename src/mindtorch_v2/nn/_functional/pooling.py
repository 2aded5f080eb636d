"""Pooling. Inputs are ``(N, C, *spatial)`` or ``(C, *spatial)``; sizes are one number or one for each dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mindtorch_v2 as torch

from ..._dispatch.native import builtin
from ..._generated import functions as _f
from ..._tensor import Tensor


def _make_max_pool(ndim: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """``max_pool{ndim}d`` and ``max_pool{ndim}d_with_indices``."""
    name = f"max_pool{ndim}d"

    def with_indices(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> tuple[Tensor, Tensor]:
        operator = getattr(_f, f"{name}_with_indices")
        return operator(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)

    def max_pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        if return_indices:
            return with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
        return getattr(_f, name)(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)

    with_indices.__name__ = with_indices.__qualname__ = f"{name}_with_indices"
    with_indices.__doc__ = "Maxima of windows and where they are in the flattened spatial dimensions."
    max_pool.__name__ = max_pool.__qualname__ = name
    max_pool.__doc__ = "Maxima of windows; with ``return_indices`` a pair of them and where they are."
    return max_pool, with_indices


max_pool1d, max_pool1d_with_indices = _make_max_pool(1)
max_pool2d, max_pool2d_with_indices = _make_max_pool(2)
max_pool3d, max_pool3d_with_indices = _make_max_pool(3)


def _sizes(value: Any, n: int) -> list[Any]:
    return list(value) if isinstance(value, Sequence) else [value] * n


def _list_with_default(out_size: Any, defaults: Sequence[int]) -> Any:
    # In the module of helpers for modules, which imports nothing of this package; looked up late, since the package
    # of modules imports these functions.
    from ..modules.utils import _list_with_default as fill

    return fill(out_size, defaults)


def _unpool_output_size(
    input: Tensor, kernel_size: list[int], stride: list[int], padding: list[int], output_size: Any
) -> list[int]:
    """The spatial sizes of an unpooling: ``output_size`` when it is possible, else the smallest ones."""
    n = len(kernel_size)
    spatial = input.size()[-n:]
    default = [(spatial[d] - 1) * stride[d] + kernel_size[d] - 2 * padding[d] for d in range(n)]
    if output_size is None:
        sizes = default
    else:
        sizes = list(output_size)
        if len(sizes) == n + 2:
            sizes = sizes[2:]
        if len(sizes) != n:
            raise ValueError(
                f"output_size should be a sequence containing {n} or {n + 2} elements, "
                f"but it has a length of '{len(sizes)}'"
            )
        for d in range(n):
            low, high = default[d] - stride[d], default[d] + stride[d]
            if not low < sizes[d] < high:
                raise ValueError(f'invalid output_size "{output_size}" (dim {d} must be between {low} and {high})')
    for d in range(n):
        if sizes[d] < 0:
            raise ValueError(
                f"max_unpooling: output_size must contain non-negative spatial dimensions, but got "
                f"output_size[{d}]={sizes[d]}"
            )
    return sizes


def _unpool(n: int, input: Tensor, kernel_size: Any, stride: Any, padding: Any, output_size: Any) -> tuple[Any, ...]:
    kernel = _sizes(kernel_size, n)
    steps = kernel if stride is None else _sizes(stride, n)
    pads = _sizes(padding, n)
    return _unpool_output_size(input, kernel, steps, pads, output_size), steps, pads


def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Put the maxima back where ``indices`` say, zeros elsewhere."""
    size, _, _ = _unpool(1, input, kernel_size, stride, padding, output_size)
    return _f.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1]).squeeze(-1)


def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Put the maxima back where ``indices`` say, zeros elsewhere."""
    size, _, _ = _unpool(2, input, kernel_size, stride, padding, output_size)
    return _f.max_unpool2d(input, indices, size)


def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Put the maxima back where ``indices`` say, zeros elsewhere."""
    size, steps, pads = _unpool(3, input, kernel_size, stride, padding, output_size)
    return _f.max_unpool3d(input, indices, size, steps, pads)


def _lp_pool(n: int, input: Tensor, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool) -> Tensor:
    average = getattr(_f, f"avg_pool{n}d")
    maximum = (max_pool1d, max_pool2d, max_pool3d)[n - 1]
    if norm_type == float("inf"):
        return maximum(input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    if norm_type == -float("inf"):
        return -maximum(-input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    count = 1
    for size in _sizes(kernel_size, n):
        count *= size
    powers = input.pow(norm_type)
    if stride is None:
        out = average(powers, kernel_size, padding=0, ceil_mode=ceil_mode)
    else:
        out = average(powers, kernel_size, stride, 0, ceil_mode)
    return (torch.sign(out) * torch.relu(torch.abs(out))).mul(count).pow(1.0 / norm_type)


def lp_pool1d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """The p-norms of windows of ``(N, C, L)``."""
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """The p-norms of windows of ``(N, C, H, W)``."""
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """The p-norms of windows of ``(N, C, D, H, W)``."""
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


def _fractional(n: int, input: Tensor, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Any) -> Any:
    name = f"fractional_max_pool{n}d"
    if output_size is None:
        if output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        ratios = _sizes(output_ratio, n)
        if len(ratios) > n and n == 2:
            raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
        output_size = [int(input.size(d - n) * ratios[d]) for d in range(n)]
    if samples is None:
        batch = 1 if input.dim() == n + 1 else input.size(0)
        samples = torch.rand(batch, input.size(-n - 1), n, dtype=input.dtype, device=input.device)
    return getattr(_f, name)(input, kernel_size, output_size, samples)


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Maxima of windows at random places, and where they are."""
    return _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Maxima of windows at random places; with ``return_indices`` a pair of them and where they are."""
    result = _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return result if return_indices else result[0]


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Maxima of windows at random places, and where they are."""
    return _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Maxima of windows at random places; with ``return_indices`` a pair of them and where they are."""
    result = _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return result if return_indices else result[0]


@builtin
def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Means of as many windows as ``output_size`` says."""
    return _f.adaptive_avg_pool1d(input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Means of as many windows as ``output_size`` says; None keeps a dimension's size."""
    return _f.adaptive_avg_pool2d(input, _list_with_default(output_size, input.size()))


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Means of as many windows as ``output_size`` says; None keeps a dimension's size."""
    return _f.adaptive_avg_pool3d(input, _list_with_default(output_size, input.size()))


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Maxima of as many windows as ``output_size`` says, and where they are."""
    return _f.adaptive_max_pool1d(input, output_size)


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of as many windows as ``output_size`` says; with ``return_indices`` also where they are."""
    result = adaptive_max_pool1d_with_indices(input, output_size)
    return result if return_indices else result[0]


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Maxima of as many windows as ``output_size`` says, and where they are."""
    return _f.adaptive_max_pool2d(input, _list_with_default(output_size, input.size()))


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of as many windows as ``output_size`` says; with ``return_indices`` also where they are."""
    result = adaptive_max_pool2d_with_indices(input, output_size)
    return result if return_indices else result[0]


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Maxima of as many windows as ``output_size`` says, and where they are."""
    return _f.adaptive_max_pool3d(input, _list_with_default(output_size, input.size()))


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of as many windows as ``output_size`` says; with ``return_indices`` also where they are."""
    result = adaptive_max_pool3d_with_indices(input, output_size)
    return result if return_indices else result[0]
