"""Exchange of tensors with other libraries by DLPack, through numpy."""

from __future__ import annotations

from typing import Any

import numpy

import mindtorch_v2

from .._api.functions.exchange import NAMES, UNSIGNED, DLDeviceType, code_in, exported
from .._dispatch.native import unbound
from .._dispatch.refusals import check_by_text

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class _Capsule:
    """What numpy asks of an exporter, around a capsule that exists already."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (DLDeviceType.kDLCPU, 0)


@unbound
def to_dlpack(tensor: Any) -> Any:
    """A DLPack capsule that shares the memory of a CPU tensor.

    Raises:
        RuntimeError: if the tensor requires a gradient.
    """
    check_by_text("_to_dlpack", ("Tensor data",), (tensor,), {})
    if tensor.requires_grad:
        raise RuntimeError("Can't export tensors that require gradient, use tensor.detach()")
    return exported(tensor)


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Any:
    """A tensor that shares the memory of `ext_tensor`, an object with `__dlpack__` or a capsule, in CPU memory.

    Args:
        device: where the tensor is to be; another than the CPU is asked of the object.
        copy: True for memory of its own, False for an error where that would be needed, None for a copy where it is.
    """
    if not hasattr(ext_tensor, "__dlpack__") and not (device is None and copy is None):
        raise AssertionError("device and copy kwargs not supported when ext_tensor is already a DLPack capsule.")
    if device is not None and mindtorch_v2.device(device).type != "cpu":
        if copy is False:
            raise ValueError(f"cannot move data to {device} without a copy")
        return from_dlpack(ext_tensor).to(device)
    if hasattr(ext_tensor, "__dlpack_device__"):
        ext_tensor.__dlpack_device__()  # says so when there is none
    capsule = ext_tensor
    if hasattr(ext_tensor, "__dlpack__"):
        try:
            capsule = ext_tensor.__dlpack__(max_version=(1, 0))
        except TypeError:  # an exporter of before there were versions
            capsule = ext_tensor.__dlpack__()
    if type(capsule).__name__ != "PyCapsule":
        raise RuntimeError(
            "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you might have already "
            "constructed a tensor from it once."
        )
    code = code_in(capsule)
    name = NAMES.get(code.value)
    if name is not None:
        code.value = UNSIGNED
    array = numpy.from_dlpack(_Capsule(capsule))
    if copy:
        array = array.copy()
    made = mindtorch_v2.from_numpy(array if array.flags.writeable else numpy.asarray(_Writeable(array)))
    return made if name is None else made.view(getattr(mindtorch_v2, name))


class _Writeable:
    """The memory of an array that numpy takes to be read only, since older capsules cannot say whether they may be written to."""

    def __init__(self, array: numpy.ndarray) -> None:
        self.array = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.__array_interface__["data"][0], False)}
