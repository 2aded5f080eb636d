"""Results of calls as JSON data, and their comparison with what another library gives."""

from __future__ import annotations

import math
from typing import Any

from .operands import pack_number, unpack
from .outcomes import Failure, is_tensor

DIGITS = {"float64": 17, "complex128": 17, "float32": 9, "complex64": 9}
TOLERANCES = {
    "float64": (1e-7, 1e-7),
    "complex128": (1e-7, 1e-7),
    "float32": (1.3e-6, 1e-5),
    "complex64": (1.3e-6, 1e-5),
    "float16": (1e-3, 1e-4),
    "bfloat16": (1.6e-2, 5e-4),
}
"""(relative, absolute) by dtype, those of torch.testing but for half types; everything else is compared exactly."""


def pack_result(result: Any, values: bool = True) -> Any:
    """A result, or a Failure, as JSON data. Without `values` only its geometry."""
    if isinstance(result, Failure):
        return {"error": result.kind, "message": result.message}
    if is_tensor(result):
        dtype = str(result.dtype).split(".")[-1]
        packed: dict[str, Any] = {"dtype": dtype, "shape": list(result.shape), "stride": list(result.stride())}
        if values:
            packed["values"] = [_rounded(value, dtype) for value in _flat(result)]
        return packed
    if isinstance(result, (tuple, list)):
        return {"items": [pack_result(item, values) for item in result]}
    return {"value": pack_number(result) if isinstance(result, (int, float, complex)) else repr(result)}


def _flat(tensor: Any) -> list:
    return tensor.detach().resolve_conj().resolve_neg().reshape(-1).tolist()


def _rounded(value: Any, dtype: str) -> Any:
    digits = DIGITS.get(dtype, 6)
    if isinstance(value, complex):
        return pack_number(complex(float(f"{value.real:.{digits}g}"), float(f"{value.imag:.{digits}g}")))
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.{digits}g}")
    return pack_number(value)


def size_of(result: Any) -> int:
    """The number of elements in a result."""
    if is_tensor(result):
        return result.numel()
    if isinstance(result, (tuple, list)):
        return sum(size_of(item) for item in result)
    return 1


def difference(expected: dict, found: Any, where: str = "") -> tuple[str, str] | None:
    """How a result differs from a recorded one: the kind (error, message, result, dtype, shape, strides, values) and a sentence. Or None."""
    if "error" in expected:
        return _error_difference(expected, found)
    if isinstance(found, Failure):
        return "error", f"{where}raised {found.kind}: {found.whole}"
    if "items" in expected:
        items = list(found) if isinstance(found, (tuple, list)) else None
        if items is None or len(items) != len(expected["items"]):
            return "result", f"{where}expected {len(expected['items'])} results, got {found}"
        for number, (one, other) in enumerate(zip(expected["items"], items)):
            if problem := difference(one, other, f"result {number}: "):
                return problem
        return None
    if "dtype" not in expected:
        packed = pack_result(found)
        return None if packed == expected else ("result", f"{where}expected {expected}, got {packed}")
    if not is_tensor(found):
        return "result", f"{where}expected a tensor, got {found!r}"
    return _tensor_difference(expected, found, where)


def _error_difference(expected: dict, found: Any) -> tuple[str, str] | None:
    told = f"{expected['error']}: {expected['message']}"
    if not isinstance(found, Failure):
        return "error", f"expected {told}\ngot {pack_result(found)}"
    if found.kind != expected["error"]:
        return "message", f"expected {told}\ngot      {found.kind}: {found.whole}"
    if found.kind != "TypeError" and not found.whole.strip().startswith(expected["message"]):
        return "message", f"expected {told}\ngot      {found.kind}: {found.whole}"
    return None


def _tensor_difference(expected: dict, found: Any, where: str) -> tuple[str, str] | None:
    dtype = str(found.dtype).split(".")[-1]
    if dtype != expected["dtype"]:
        return "dtype", f"{where}expected dtype {expected['dtype']}, got {dtype}"
    if list(found.shape) != expected["shape"]:
        return "shape", f"{where}expected shape {expected['shape']}, got {list(found.shape)}"
    if "values" in expected:
        wanted = [unpack(value) for value in expected["values"]]
        rtol, atol = TOLERANCES.get(dtype, (0.0, 0.0))
        if dtype in ("float16", "bfloat16"):
            # Sums round where PyTorch does, or once at the end: the error goes with the largest terms.
            atol = max(atol, rtol * max((abs(v) for v in wanted if math.isfinite(v)), default=0.0))
        for index, (one, other) in enumerate(zip(wanted, _flat(found))):
            if not close(one, other, rtol, atol):
                return "values", f"{where}element {index} of {expected['shape']}: expected {one}, got {other} ({dtype})"
    if found.numel():
        for size, one, other in zip(expected["shape"], expected["stride"], found.stride()):
            if size > 1 and one != other:
                return "strides", f"{where}expected strides {expected['stride']}, got {list(found.stride())}"
    return None


def close(one: Any, other: Any, rtol: float, atol: float) -> bool:
    """Whether two numbers agree: nan with nan, infinities with their like."""
    if isinstance(one, complex) or isinstance(other, complex):
        one, other = complex(one), complex(other)
        if math.isfinite(abs(one)) and math.isfinite(abs(other)):
            return abs(one - other) <= atol + rtol * abs(one)
        return close(one.real, other.real, rtol, atol) and close(one.imag, other.imag, rtol, atol)
    if one == other:
        return True
    if isinstance(one, float) and math.isnan(one):
        return isinstance(other, float) and math.isnan(other)
    if not (rtol or atol) or not math.isfinite(one) or not math.isfinite(other):
        return False
    return abs(one - other) <= atol + rtol * abs(one)
