# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.multiprocessing.spawn, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.multiprocessing import (
    ProcessContext, ProcessException, ProcessExitedException, ProcessRaisedException, spawn, start_processes,
)

_MODULE = "torch.multiprocessing.spawn"
