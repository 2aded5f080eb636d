# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.distributed_c10d, functional stub."""

from __future__ import annotations

from torch.distributed import (
    Backend, BackendConfig, DebugLevel, GroupMember, P2POp, PrefixStore, ProcessGroup, ProcessGroupGloo, ReduceOp,
    Store, Work, all_gather, all_gather_into_tensor, all_gather_object, all_reduce, all_to_all, all_to_all_single,
    barrier, broadcast, broadcast_object_list, default_pg_timeout, destroy_process_group, gather, gather_object,
    get_backend, get_global_rank, get_process_group_ranks, get_rank, get_world_size, group, init_process_group,
    irecv, is_backend_available, is_gloo_available, is_initialized, is_mpi_available, is_nccl_available,
    is_torchelastic_launched, is_ucc_available, is_xccl_available, isend, new_group, recv, reduce, reduce_scatter,
    reduce_scatter_tensor, scatter, send,
)
from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch.distributed.distributed_c10d"
_BECAUSE = "mindtorch_v2 runs in one process"
_get_default_group = import_only_function("_get_default_group", _MODULE, _BECAUSE, NotImplementedError)
_object_to_tensor = import_only_function("_object_to_tensor", _MODULE, _BECAUSE, NotImplementedError)
_tensor_to_object = import_only_function("_tensor_to_object", _MODULE, _BECAUSE, NotImplementedError)
