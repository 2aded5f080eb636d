"""Names of torch_npu whose work nothing here does: they can be imported, and say what is missing when they are called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

CAPTURE = (
    "graphs of an NPU's work are not captured: nothing binds aclmdlRICapture, so work is put on the stream call by call"
)
_POOLS = "the caching allocator has one pool for each stream, and no others"
_RECOVERY = "nothing binds CANN's recovery of devices: end the process, and start another one"
_OBFUSCATION = "nothing binds the services that obfuscate models"
_RESOURCES = "nothing binds CANN's limits of cores for devices and streams"
_HANDLERS = "graphs of an NPU's work are not captured, so there is nothing to handle their updates"

_FUNCTIONS = {
    "change_current_allocator": "the caching allocator cannot be replaced",
    "check_uce_in_memory": _RECOVERY,
    "clear_npu_overflow_flag": "no function of aclnn clears the flag of overflows; chips from Ascend910B1 on give infinities and NaN in its place",
    "current_blas_handle": "functions of aclnn take no handle",
    "finalize_dump": "nothing binds CANN's dumps of operators",
    "get_device_limit": _RESOURCES,
    "get_npu_overflow_flag": "no function of aclnn reads the flag of overflows; chips from Ascend910B1 on give infinities and NaN in its place",
    "get_stream_limit": _RESOURCES,
    "graph_pool_handle": CAPTURE,
    "graph_task_group_begin": CAPTURE,
    "graph_task_group_end": CAPTURE,
    "graph_task_update_begin": CAPTURE,
    "graph_task_update_end": CAPTURE,
    "init_dump": "nothing binds CANN's dumps of operators",
    "make_graphed_callables": CAPTURE,
    "npurt": "the runtime's handles are not given out",
    "obfuscation_calculate": _OBFUSCATION,
    "obfuscation_finalize": _OBFUSCATION,
    "obfuscation_initialize": _OBFUSCATION,
    "register_npu_graph_handler": _HANDLERS,
    "reset_stream_limit": _RESOURCES,
    "restart_device": _RECOVERY,
    "set_aoe": "operators are functions of aclnn, which no tuning of graphs reaches",
    "set_device_limit": _RESOURCES,
    "set_dump": "nothing binds CANN's dumps of operators",
    "set_stream_limit": _RESOURCES,
    "stop_device": _RECOVERY,
    "stress_detect": "nothing binds CANN's tests of hardware",
    "super_kernel_scope_begin": CAPTURE,
    "super_kernel_scope_end": CAPTURE,
    "use_mem_pool": _POOLS,
    "utilization": "nothing binds CANN's rates of utilisation",
}
_CLASSES = {
    "ExternalEvent": CAPTURE,
    "MemPool": _POOLS,
    "NPUGraph": CAPTURE,
    "NPUPluggableAllocator": "the caching allocator cannot be replaced",
    "NpuGraphOpHandler": _HANDLERS,
    "SyncLaunchStream": "streams that are waited for after every launch are not made; ASCEND_LAUNCH_BLOCKING=1 asks CANN for that",
    "graph": CAPTURE,
}


def _function(name: str, why: str) -> Callable[..., NoReturn]:
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"torch.npu.{name} can be imported but not called: {why}")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"NotImplementedError: {why}."
    function.__dict__["import_only"] = why
    return function


def _class(name: str, why: str) -> type:
    def __init__(self: object, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"torch.npu.{name} can be imported but not called: {why}")

    return type(
        name,
        (),
        {"__init__": __init__, "__module__": __name__.rpartition(".")[0], "__doc__": f"NotImplementedError: {why}."},
    )


NAMES: dict[str, Any] = {
    **{name: _function(name, why) for name, why in _FUNCTIONS.items()},
    **{name: _class(name, why) for name, why in _CLASSES.items()},
}
"""What stands for each name."""
