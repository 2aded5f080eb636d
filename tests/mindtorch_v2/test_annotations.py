"""Programs ask classes that they derive from ours for their annotations, and every word of those must be known where the class says that it is from."""

from __future__ import annotations

import typing

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.distributed import fsdp, tensor
from mindtorch_v2.optim import lr_scheduler

BASES = [
    torch.Tensor,
    nn.Parameter,
    nn.Buffer,
    nn.Module,
    nn.Linear,
    nn.UninitializedParameter,
    torch.autograd.Function,
    torch.autograd.function.FunctionCtx,
    torch.autograd.graph.Node,
    torch.optim.Optimizer,
    torch.utils.data.Dataset,
    lr_scheduler.LRScheduler,
    lr_scheduler.LambdaLR,
    lr_scheduler.SequentialLR,
    fsdp.FSDPModule,
    tensor.DTensor,
]


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.__qualname__)
def test_annotations_of_derived_classes(base):
    found = typing.get_type_hints(type("Derived", (base,), {"__annotations__": {"width": int}}))
    assert found["width"] is int
