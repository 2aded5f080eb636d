# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.multiprocessing, functional stub: the multiprocessing module; tensors travel by pickling."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.multiprocessing import (
    Array, Barrier, BoundedSemaphore, Condition, Event, JoinableQueue, Lock, Manager, Pipe, Pool, Process, Queue,
    RLock, Semaphore, SimpleQueue, Value, active_children, cpu_count, current_process, get_all_sharing_strategies,
    get_all_start_methods, get_context, get_logger, get_sharing_strategy, get_start_method, parent_process,
    set_sharing_strategy, set_start_method,
)
from torch.multiprocessing.spawn import (
    ProcessContext, ProcessExitedException, ProcessRaisedException, spawn, start_processes,
)
from mindtorch_v2._torch_proxy.placeholders import lazy_children

_MODULE = "torch.multiprocessing"
__getattr__ = lazy_children(_MODULE)
