"""What a call gives, for comparing the C extension with the Python code behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._autograd.node import VIEW, Node
from mindtorch_v2._dispatch import native
from mindtorch_v2._pending import settled
from mindtorch_v2._tensor import Tensor

needs_extension = pytest.mark.skipif(
    native.extension is None, reason="the C extension is not built, or MINDTORCH_V2_NATIVE=0 leaves it out"
)


def history(tensor: Tensor) -> Any:
    assert tensor.grad_fn is None or tensor.requires_grad  # a view looks at its base when it is asked
    node = tensor._node
    if node is None or node is VIEW:
        return repr(node)
    described: list = [node.name(), repr(node.outputs)]
    for edge in node.edges:
        described.append(None if edge is None else (edge[0].name(), edge[1]))
    described.append(plain(node.saved))
    described.append([plain(alone(const)) for const in node.consts or ()])
    return described


def alone(value: Any) -> Any:
    """A dimension, alone or as a list of one, is the same to the formulas."""
    return value[0] if isinstance(value, (tuple, list)) and len(value) == 1 and isinstance(value[0], int) else value


def plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [type(value).__name__ if isinstance(value, torch.Size) else "sequence", *map(plain, value)]
    if isinstance(value, Tensor):
        return ("tensor", value.dtype, tuple(value.shape))
    if type(value).__name__ == "SavedOutput":
        return (type(value).__name__, value.dtype, value.version, value.number)
    return value.name() if isinstance(value, Node) else repr(value)


def outcome(call: Callable, args: tuple, keywords: dict) -> Any:
    with np.errstate(all="ignore"):
        try:
            result = call(*args, **keywords)
            for one in result if isinstance(result, (tuple, list)) else (result,):
                if isinstance(one, Tensor):
                    settled(one)  # what a pipeline recorded fails when it runs
            return result
        except TypeError as error:  # in which words it is said is up to what stands before the function
            return type(error), ""
        except Exception as error:  # noqa: BLE001 (the error is what is compared)
            return type(error), str(error)


def assert_same(found: Any, wanted: Any, what: str) -> None:
    assert type(found) is type(wanted), f"{what}: {found!r} where Python gives {wanted!r}"
    if isinstance(wanted, tuple) and wanted and isinstance(wanted[0], Tensor):
        for one, other in zip(found, wanted):
            assert_same(one, other, what)
        return
    if not isinstance(found, Tensor):
        assert found == wanted, what
        return
    assert found.dtype is wanted.dtype and found.shape == wanted.shape and found.device == wanted.device, what
    if wanted.layout is not torch.strided:
        assert found.layout is wanted.layout and history(found) == history(wanted), what
        for one, other in zip(found._payload.members(), wanted._payload.members()):
            assert_same(one, other, what)
        return
    if found.numel():
        assert found.stride() == wanted.stride() and found.storage_offset() == wanted.storage_offset(), what
    assert (found._base is None) == (wanted._base is None), what
    if found._base is not None:
        assert found._base.shape == wanted._base.shape and found._version == wanted._version, what
    assert history(found) == history(wanted), what
    assert (found._nr, found._epoch, found._inference) == (wanted._nr, wanted._epoch, wanted._inference), what
    if found.device.type == "cpu":
        assert_close(settled(found), settled(wanted), what)


def assert_close(found: np.ndarray, wanted: np.ndarray, what: str, ulps: float = 64) -> None:
    if found.dtype.kind == "V":  # bfloat16
        found, wanted = found.astype(np.float32), wanted.astype(np.float32)
    if found.dtype.kind != "f":
        assert np.array_equal(found, wanted, equal_nan=found.dtype.kind == "c"), what
        return
    with np.errstate(all="ignore"):
        finite = wanted[np.isfinite(wanted)]
        scale = max(1, np.abs(finite).max()) if finite.size else 1
        bound = ulps * np.finfo(found.dtype).eps * (np.abs(wanted) + scale / 8)
        same = (found == wanted) | (np.isnan(found) & np.isnan(wanted)) | (np.abs(found - wanted) <= bound)
    assert same.all(), f"{what}: {found[~same]} where Python gives {wanted[~same]}"
