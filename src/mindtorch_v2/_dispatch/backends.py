"""Devices as the dispatcher sees them: each backend registers one object that allocates and runs.

A device type without a backend has a reason, which is what allocating on it says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from numpy import ndarray

from .. import _payload
from .._above import module_above
from .._device import device
from .operator import Operator


class Backend(Protocol):
    """What a device must be able to do."""

    combine: Any
    """None, or what finds recorded operators that a function of the device computes together: see `schedule.py` of pipelines."""

    def empty(self, shape: tuple, stride: tuple | None, dtype: Any, where: device) -> Any:
        """An uninitialised payload; `stride` None means contiguous."""

    def run(self, op: Operator, spec: Any, args: tuple, where: device) -> Any:
        """Fresh payloads as the spec (or each spec of several) says."""

    def run_into(self, op: Operator, spec: Any, args: tuple, target: Any, where: device) -> None:
        """The result of one spec, written into a payload of its shape."""

    def place(self, where: device) -> device:
        """The device that tensors made on `where` say they are on."""

    def supports(self, op: Operator, specs: Sequence[Any]) -> bool:
        """Whether there is a kernel, and memory of these dtypes; else a call fails whatever the elements are."""

    def copy(self, target: Any, source: Any, non_blocking: bool = False) -> None:
        """Elements of one payload into another of the same shape, both of this device (or the target of the host), with conversion. non_blocking: where the
        device can, it need not be done when this returns."""

    def to_host(self, payload: Any) -> ndarray:
        """The elements as an array. NotImplementedError without any."""


_BACKENDS: dict[str, Backend] = {}
_PACKAGES = {"cpu": "cpu", "meta": "meta", "npu": "npu.backend"}


def register(device_type: str, backend: Backend) -> None:
    """Make a device type usable."""
    _BACKENDS[device_type] = backend


def backend_of(where: device) -> Backend:
    """The backend of a device; its package registers it when it is imported. RuntimeError, with the reason, when it has none (AssertionError for CUDA)."""
    backend = _BACKENDS.get(where.type)
    if backend is None and where.type in _PACKAGES:
        module_above("backends", _PACKAGES[where.type])
        backend = _BACKENDS.get(where.type)
    if backend is None:
        # PyTorch's class for an absent CUDA.
        kind = {"cuda": AssertionError, "xpu": AssertionError, "npu": RuntimeError}.get(where.type, NotImplementedError)
        raise kind(_payload.unavailable(where))
    return backend


def empty(shape: tuple, stride: tuple | None, dtype: Any, where: device) -> Any:
    """An uninitialised payload on a device."""
    return backend_of(where).empty(shape, stride, dtype, where)


def data_needed(name: str) -> NotImplementedError:
    """The error of an operator whose result, or its shape, needs the data that tensors on the meta device do not have."""
    return NotImplementedError(
        f"aten::{name}: the result depends on the data, which tensors on the meta device do not have"
    )


def no_kernel(op: Operator, where: device) -> NotImplementedError:
    """The error of an operator that the schema gives no kernel for a device."""
    return NotImplementedError(
        f"Could not run 'aten::{op.full_name}' with arguments from the '{where.type.upper()}' backend: the schema has no kernel for it"
    )
