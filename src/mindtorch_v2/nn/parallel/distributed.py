"""Data parallelism over processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import mindtorch_v2 as torch

from ..modules.module import Module

if TYPE_CHECKING:
    from ._buckets import Hook

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Calls ``module``, whose parameters become those of rank 0; backward averages gradients over all ranks, in buckets, while it goes on.

    Args:
        broadcast_buffers: every forward begins with rank 0's buffers.
        process_group: the ranks; all of them unless said.
        bucket_cap_mb: how large a bucket may be.
        find_unused_parameters: parameters that the output does not depend on are not waited for.

    Raises:
        ValueError: without a process group.
        RuntimeError: for a module of which no parameter requires a gradient, and, in forward, if the backward pass before left parameters out.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        **kwargs: Any,
    ) -> None:
        from ._buckets import Reducer

        super().__init__()
        if not any(param.requires_grad for param in module.parameters()):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
                "gradient."
            )
        distributed = torch.distributed
        self.process_group = (
            distributed.distributed_c10d._get_default_group() if process_group is None else process_group
        )
        self.module = module
        self.device_ids = device_ids
        self.output_device = output_device
        self.dim = dim
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self._join_config: Any = None  # that of a `Join`
        self._divide_by_initial_world_size = True
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self._kept = [buffer for name, buffer in module.named_buffers() if name not in ignored]
        params = [param for name, param in module.named_parameters() if name not in ignored]
        if init_sync:
            self._from_rank_0([param.detach() for param in params] + self._kept)
        wanted = [param for param in params if param.requires_grad]
        self.reducer = Reducer(
            wanted, self.process_group, int((bucket_cap_mb or 25) * (1 << 20)), find_unused_parameters
        )

    def _from_rank_0(self, tensors: list[Any]) -> None:
        works = [self.process_group.broadcast([tensor], root=0) for tensor in tensors]
        for work in works:
            work.wait()

    def register_comm_hook(self, state: Any, hook: Hook) -> None:
        """Let `hook(state, bucket)` exchange buckets; it gives a future of the averages. RuntimeError if there is one."""
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self.reducer.hook = (hook, state)

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """What libraries ask to know how it was made."""
        return {
            "world_size": self.process_group.size(),
            "rank": self.process_group.rank(),
            "module_name": type(self.module).__name__,
            "backend_name": self.process_group.name(),
            "find_unused_parameters": self.find_unused_parameters,
            "broadcast_buffers": self.broadcast_buffers,
            "can_set_static_graph": False,
        }

    def _set_static_graph(self) -> None:
        """Say that every iteration uses the same parameters. Nothing follows from it here."""
        self.static_graph = True

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Forward passes within it are followed by backward passes that exchange nothing: gradients add up."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def _shares_buffers(self) -> bool:
        return bool(self.broadcast_buffers and self._kept and self.require_backward_grad_sync and self.training)

    def join_hook(self, **kwargs: Any) -> Any:
        """What a rank without inputs does within `torch.distributed.algorithms.Join`; `divide_by_initial_world_size`: averages are over all ranks, those without inputs too."""
        self._divide_by_initial_world_size = kwargs.get("divide_by_initial_world_size", True)
        from ._joining import Shadow

        return Shadow(self)

    @property
    def join_device(self) -> Any:
        """The parameters' device."""
        return next(self.module.parameters()).device

    @property
    def join_process_group(self) -> Any:
        """The ranks."""
        return self.process_group

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module."""
        self._before_forward()
        return self._after_forward(self.module(*inputs, **kwargs))

    def _before_forward(self) -> None:
        """What ranks exchange before the module runs."""
        synchronized = torch.is_grad_enabled() and self.require_backward_grad_sync
        if self._join_config is not None and self._join_config.enable:
            from ._joining import announce

            announce(self, synchronized)
        elif self._shares_buffers():
            self._from_rank_0(self._kept)

    def _after_forward(self, output: Any) -> Any:
        """The output, for whose backward pass everything is ready."""
        if torch.is_grad_enabled() and self.require_backward_grad_sync:
            from ...utils._pytree import tree_leaves

            self.reducer.begin(leaf for leaf in tree_leaves(output) if isinstance(leaf, torch.Tensor))
        return output
