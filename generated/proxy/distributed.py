# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed, functional stub: one process, never initialised."""

from __future__ import annotations

import enum

from mindtorch_v2._torch_proxy.stubs.distributed import (
    Backend, GroupMember, get_backend, get_backend_config, get_default_backend_for_device, get_global_rank,
    get_group_rank, get_process_group_ranks, get_rank, get_world_size, group, reduce_op,
)
from torch.distributed.device_mesh import (
    DeviceMesh, init_device_mesh,
)
from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function, lazy_children, returning

_MODULE = "torch.distributed"
_BECAUSE = "mindtorch_v2 runs in one process"
default_pg_timeout = None
is_available = returning("is_available", _MODULE, False)
is_backend_available = returning("is_backend_available", _MODULE, False)
is_gloo_available = returning("is_gloo_available", _MODULE, False)
is_initialized = returning("is_initialized", _MODULE, False)
is_mpi_available = returning("is_mpi_available", _MODULE, False)
is_nccl_available = returning("is_nccl_available", _MODULE, False)
is_torchelastic_launched = returning("is_torchelastic_launched", _MODULE, False)
is_ucc_available = returning("is_ucc_available", _MODULE, False)
is_xccl_available = returning("is_xccl_available", _MODULE, False)
set_debug_level = returning("set_debug_level", _MODULE, None)
set_debug_level_from_env = returning("set_debug_level_from_env", _MODULE, None)
supports_complex = returning("supports_complex", _MODULE, False)
all_gather = import_only_function("all_gather", _MODULE, _BECAUSE, NotImplementedError)
all_gather_coalesced = import_only_function("all_gather_coalesced", _MODULE, _BECAUSE, NotImplementedError)
all_gather_into_tensor = import_only_function("all_gather_into_tensor", _MODULE, _BECAUSE, NotImplementedError)
all_gather_object = import_only_function("all_gather_object", _MODULE, _BECAUSE, NotImplementedError)
all_reduce = import_only_function("all_reduce", _MODULE, _BECAUSE, NotImplementedError)
all_reduce_coalesced = import_only_function("all_reduce_coalesced", _MODULE, _BECAUSE, NotImplementedError)
all_to_all = import_only_function("all_to_all", _MODULE, _BECAUSE, NotImplementedError)
all_to_all_single = import_only_function("all_to_all_single", _MODULE, _BECAUSE, NotImplementedError)
barrier = import_only_function("barrier", _MODULE, _BECAUSE, NotImplementedError)
batch_isend_irecv = import_only_function("batch_isend_irecv", _MODULE, _BECAUSE, NotImplementedError)
breakpoint = import_only_function("breakpoint", _MODULE, _BECAUSE, NotImplementedError)
broadcast = import_only_function("broadcast", _MODULE, _BECAUSE, NotImplementedError)
broadcast_object_list = import_only_function("broadcast_object_list", _MODULE, _BECAUSE, NotImplementedError)
destroy_process_group = import_only_function("destroy_process_group", _MODULE, _BECAUSE, NotImplementedError)
gather = import_only_function("gather", _MODULE, _BECAUSE, NotImplementedError)
gather_object = import_only_function("gather_object", _MODULE, _BECAUSE, NotImplementedError)
get_debug_level = import_only_function("get_debug_level", _MODULE, _BECAUSE, NotImplementedError)
get_node_local_rank = import_only_function("get_node_local_rank", _MODULE, _BECAUSE, NotImplementedError)
get_pg_count = import_only_function("get_pg_count", _MODULE, _BECAUSE, NotImplementedError)
init_process_group = import_only_function("init_process_group", _MODULE, _BECAUSE, NotImplementedError)
irecv = import_only_function("irecv", _MODULE, _BECAUSE, NotImplementedError)
isend = import_only_function("isend", _MODULE, _BECAUSE, NotImplementedError)
monitored_barrier = import_only_function("monitored_barrier", _MODULE, _BECAUSE, NotImplementedError)
new_group = import_only_function("new_group", _MODULE, _BECAUSE, NotImplementedError)
new_subgroups = import_only_function("new_subgroups", _MODULE, _BECAUSE, NotImplementedError)
new_subgroups_by_enumeration = import_only_function("new_subgroups_by_enumeration", _MODULE, _BECAUSE, NotImplementedError)
recv = import_only_function("recv", _MODULE, _BECAUSE, NotImplementedError)
recv_object_list = import_only_function("recv_object_list", _MODULE, _BECAUSE, NotImplementedError)
reduce = import_only_function("reduce", _MODULE, _BECAUSE, NotImplementedError)
reduce_scatter = import_only_function("reduce_scatter", _MODULE, _BECAUSE, NotImplementedError)
reduce_scatter_tensor = import_only_function("reduce_scatter_tensor", _MODULE, _BECAUSE, NotImplementedError)
register_rendezvous_handler = import_only_function("register_rendezvous_handler", _MODULE, _BECAUSE, NotImplementedError)
rendezvous = import_only_function("rendezvous", _MODULE, _BECAUSE, NotImplementedError)
scatter = import_only_function("scatter", _MODULE, _BECAUSE, NotImplementedError)
scatter_object_list = import_only_function("scatter_object_list", _MODULE, _BECAUSE, NotImplementedError)
send = import_only_function("send", _MODULE, _BECAUSE, NotImplementedError)
send_object_list = import_only_function("send_object_list", _MODULE, _BECAUSE, NotImplementedError)
split_group = import_only_function("split_group", _MODULE, _BECAUSE, NotImplementedError)
__getattr__ = lazy_children(_MODULE)


class DebugLevel(enum.Enum):
    """An enumeration of torch.distributed."""

    OFF = enum.auto()
    INFO = enum.auto()
    DETAIL = enum.auto()


class ReduceOp(enum.Enum):
    """An enumeration of torch.distributed."""

    SUM = enum.auto()
    AVG = enum.auto()
    PRODUCT = enum.auto()
    MIN = enum.auto()
    MAX = enum.auto()
    BAND = enum.auto()
    BOR = enum.auto()
    BXOR = enum.auto()
    PREMUL_SUM = enum.auto()
    UNUSED = enum.auto()


class DistBackendError(RuntimeError):
    """An error of torch.distributed, which mindtorch_v2 never raises."""


class DistError(RuntimeError):
    """An error of torch.distributed, which mindtorch_v2 never raises."""


class DistNetworkError(RuntimeError):
    """An error of torch.distributed, which mindtorch_v2 never raises."""


class DistStoreError(RuntimeError):
    """An error of torch.distributed, which mindtorch_v2 never raises."""


class QueueEmptyError(RuntimeError):
    """An error of torch.distributed, which mindtorch_v2 never raises."""


class BackendConfig(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class BarrierOptions(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class BroadcastOptions(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class FileStore(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class GradBucket(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class HashStore(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class P2POp(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class PrefixStore(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ProcessGroup(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ProcessGroupGloo(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ReduceOptions(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class Reducer(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class Store(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class TCPStore(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class Work(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
