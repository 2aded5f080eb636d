"""Imported by programs that were written for CUDA: from then on NPUs stand for CUDA devices, as with torch_npu's module of that name.

Note [Standing for CUDA]
What is asked for on `cuda` goes to the NPU of the same index: `.cuda()`, `.to("cuda:0")`, `device=` of factories and generators, default devices, autocast, scalers, `map_location`
and tensors that were saved on CUDA. All of them ask `_device.placed`, which looks into `STANDS_FOR`, so no function is wrapped. `torch.cuda` is `torch.npu`, modules below it
those of the same names; `Tensor.is_cuda` is true of tensors on NPUs; the backend "nccl" is "hccl". As with torch_npu, a device that the program itself made keeps its type
(`torch.device("cuda").type` is "cuda", for programs that ask), and tensors say where they are: `npu:0`. Names that a program took from `torch.cuda` before are not changed.
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings

import mindtorch_v2

from ..._device import STANDS_FOR

__all__: list[str] = []

_BELOW = ("amp", "amp.autocast_mode", "amp.grad_scaler", "graphs", "memory", "random", "streams")
_OTHER = {"CUDAGraph": "NPUGraph", "DoubleTensor": "FloatTensor"}
"""What `torch.cuda` has that `torch.npu` has by another name, or as torch_npu says in place of it."""
_SAID = (
    "torch.Tensor.cuda, torch.nn.Module.cuda and torch.cuda.* are those of NPUs now: what is asked for on a device of type cuda "
    'goes to the NPU of its index, and the backend "nccl" of torch.distributed is "hccl".'
)


def begin() -> None:
    """Let NPUs stand for CUDA devices in this process; a second call changes nothing."""
    if "cuda" in STANDS_FOR:
        return
    if os.environ.get("RANK", "0") == "0":
        warnings.warn(_SAID, ImportWarning, stacklevel=2)
    npu = mindtorch_v2.npu
    STANDS_FOR["cuda"] = "npu"
    mindtorch_v2.__dict__["cuda"] = npu
    for name, other in _OTHER.items():
        vars(npu)[name] = getattr(npu, other)
    sys.modules["torch.cuda"] = npu
    for name in _BELOW:
        sys.modules[f"torch.cuda.{name}"] = importlib.import_module(f".{name}", npu.__spec__.name)


def end() -> None:
    """Take `begin` back."""
    if STANDS_FOR.pop("cuda", None) is None:
        return
    mindtorch_v2.__dict__.pop("cuda", None)
    for name in _OTHER:
        vars(mindtorch_v2.npu).pop(name, None)
    for name in ("", *(f".{below}" for below in _BELOW)):
        sys.modules.pop(f"torch.cuda{name}", None)


begin()
