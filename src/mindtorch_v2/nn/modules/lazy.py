"""What modules share that learn their parameters' shapes from the first input."""

from __future__ import annotations

from typing import Any

from ..parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """Comes before the Module class among the bases. The first call runs :meth:`initialize_parameters` and changes the class
    of the module to ``cls_to_become``."""

    cls_to_become: type | None = None
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _non_persistent_buffers_set: set[str]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        module: Any = self
        self._load_hook = module._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = module.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        # Uninitialized parameters have no detach.
        for members, skipped in (
            (self._parameters, ()),
            (self._buffers, self._non_persistent_buffers_set),
        ):
            for name, tensor in members.items():
                if tensor is not None and name not in skipped:
                    keep = keep_vars or is_lazy(tensor)
                    destination[prefix + name] = tensor if keep else tensor.detach()

    def _lazy_load_hook(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Give uninitialized parameters the shapes of what is about to be loaded."""
        import mindtorch_v2 as torch

        for name, own in (*self._parameters.items(), *self._buffers.items()):
            given = state_dict.get(prefix + name)
            if given is not None and own is not None and is_lazy(own) and not is_lazy(given):
                with torch.no_grad():
                    own.materialize(given.shape)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materialize the parameters for the given input. Every lazy class defines it."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Whether some parameter or buffer still has no shape."""
        members = (*self._parameters.values(), *self._buffers.values())
        return any(is_lazy(tensor) for tensor in members)

    def _infer_parameters(self, module: Any, args: Any, kwargs: Any = None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {module._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook
        del module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self) -> Any:
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy forward pass to "
            "correctly initialize the modules"
        )
