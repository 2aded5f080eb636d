"""`torch.distributed.distributed_c10d`: all of groups and calls, by the names that programs know there."""

from __future__ import annotations

from ._backend import (
    Backend as Backend,
    BackendConfig as BackendConfig,
    get_default_backend_for_device as get_default_backend_for_device,
    is_backend_available as is_backend_available,
    is_gloo_available as is_gloo_available,
    is_mpi_available as is_mpi_available,
    is_nccl_available as is_nccl_available,
    is_ucc_available as is_ucc_available,
    is_xccl_available as is_xccl_available,
)
from ._collectives import (
    P2POp as P2POp,
    _all_gather_base as _all_gather_base,
    _check_single_tensor as _check_single_tensor,
    _check_tensor_list as _check_tensor_list,
    _coalescing_manager as _coalescing_manager,
    _CoalescingManager as _CoalescingManager,
    _ensure_all_tensors_same_dtype as _ensure_all_tensors_same_dtype,
    _reduce_scatter_base as _reduce_scatter_base,
    all_gather as all_gather,
    all_gather_coalesced as all_gather_coalesced,
    all_gather_into_tensor as all_gather_into_tensor,
    all_gather_single as all_gather_single,
    all_reduce as all_reduce,
    all_reduce_coalesced as all_reduce_coalesced,
    all_to_all as all_to_all,
    all_to_all_single as all_to_all_single,
    barrier as barrier,
    batch_isend_irecv as batch_isend_irecv,
    broadcast as broadcast,
    gather as gather,
    irecv as irecv,
    isend as isend,
    monitored_barrier as monitored_barrier,
    recv as recv,
    reduce as reduce,
    reduce_scatter as reduce_scatter,
    reduce_scatter_single as reduce_scatter_single,
    reduce_scatter_tensor as reduce_scatter_tensor,
    scatter as scatter,
    send as send,
    supports_complex as supports_complex,
)
from ._debug import DebugLevel as DebugLevel, get_debug_level as get_debug_level
from ._groups import (
    GroupMember as GroupMember,
    GroupName as GroupName,
    _canonicalize_group_rank as _canonicalize_group_rank,
    _check_valid_timeout as _check_valid_timeout,
    _device_capability as _device_capability,
    _find_pg_by_ranks_and_tag as _find_pg_by_ranks_and_tag,
    _get_default_group as _get_default_group,
    _get_default_store as _get_default_store,
    _get_global_rank as _get_global_rank,
    _get_group_size as _get_group_size,
    _get_group_tag as _get_group_tag,
    _get_object_coll_device as _get_object_coll_device,
    _get_pg_default_device as _get_pg_default_device,
    _get_process_group_name as _get_process_group_name,
    _get_process_group_store as _get_process_group_store,
    _group_or_default_group as _group_or_default_group,
    _rank_not_in_group as _rank_not_in_group,
    _resolve_process_group as _resolve_process_group,
    _set_pg_timeout as _set_pg_timeout,
    _update_default_pg as _update_default_pg,
    _warn_not_in_group as _warn_not_in_group,
    _World as _World,
    _world as _world,
    get_backend as get_backend,
    get_backend_config as get_backend_config,
    get_global_rank as get_global_rank,
    get_group_rank as get_group_rank,
    get_node_local_rank as get_node_local_rank,
    get_pg_count as get_pg_count,
    get_process_group_ranks as get_process_group_ranks,
    get_rank as get_rank,
    get_world_size as get_world_size,
    group as group,
    is_initialized as is_initialized,
    is_torchelastic_launched as is_torchelastic_launched,
)
from ._making import (
    _abort_process_group as _abort_process_group,
    destroy_process_group as destroy_process_group,
    init_process_group as init_process_group,
    new_group as new_group,
    new_subgroups as new_subgroups,
    new_subgroups_by_enumeration as new_subgroups_by_enumeration,
    split_group as split_group,
)
from ._objects import (
    _object_to_tensor as _object_to_tensor,
    _tensor_to_object as _tensor_to_object,
    all_gather_object as all_gather_object,
    broadcast_object_list as broadcast_object_list,
    gather_object as gather_object,
    recv_object_list as recv_object_list,
    scatter_object_list as scatter_object_list,
    send_object_list as send_object_list,
)
from ._options import (
    AllgatherOptions as AllgatherOptions,
    AllreduceCoalescedOptions as AllreduceCoalescedOptions,
    AllreduceOptions as AllreduceOptions,
    AllToAllOptions as AllToAllOptions,
    BarrierOptions as BarrierOptions,
    BroadcastOptions as BroadcastOptions,
    GatherOptions as GatherOptions,
    ReduceOptions as ReduceOptions,
    ReduceScatterOptions as ReduceScatterOptions,
    ScatterOptions as ScatterOptions,
)
from ._process_group import ProcessGroup as ProcessGroup
from ._reduction import RedOpType, ReduceOp as ReduceOp, premul_sum
from ._stores import PrefixStore as PrefixStore, Store as Store
from ._work import Work as Work
from .constants import default_pg_nccl_timeout as default_pg_nccl_timeout, default_pg_timeout as default_pg_timeout
from .rendezvous import (
    register_rendezvous_handler as register_rendezvous_handler,
    rendezvous as rendezvous,
)

ProcessGroupGloo = ProcessGroup
_make_nccl_premul_sum = premul_sum


class _ReduceOperators:
    """The former names of ReduceOp's members."""

    __members__ = RedOpType.__members__

    def __getattr__(self, name: str) -> RedOpType:
        import warnings

        if name in RedOpType.__members__:
            warnings.warn(
                "`torch.distributed.reduce_op` is deprecated, please use `torch.distributed.ReduceOp` instead",
                FutureWarning,
                stacklevel=2,
            )
            return RedOpType[name]
        raise AttributeError(name)


reduce_op = _ReduceOperators()
