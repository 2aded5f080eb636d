"""Gradient members of Tensor: `requires_grad`, `grad`, `backward`, hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._autograd import (
    api,
    wiring as _wiring,  # noqa: F401 (connects the extension)
)
from ..._autograd.engine import run_callbacks
from ..._autograd.node import (
    VIEW,
    AccumulateGrad,
    HookTable,
    extras_of,
    is_interior,
    keep_gradient,
    live_node,
    need_extras,
    requires_grad as _requires_grad,
)
from ..._dispatch import native
from ..._handles import RemovableHandle
from ..._sparse_payload import SparsePayload
from ..._state import TLS
from ..._tensor import Tensor, belongs_to_inference, given_away, wrap
from .signatures import checked


def _get_requires_grad(self: Tensor) -> bool:
    return self._node is not None and _requires_grad(self)


def _set_requires_grad(self: Tensor, value: bool) -> None:
    if value is not True and value is not False:
        raise RuntimeError("requires_grad must be a bool")
    if value and self.is_leaf and not (self._dtype.is_floating_point or self._dtype.is_complex):
        raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
    self.requires_grad_(value)


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Record operations on this leaf from now on, or stop doing so. RuntimeError for integer tensors and interior tensors."""
    if requires_grad is not True and requires_grad is not False:
        raise TypeError(
            f"requires_grad_(): argument 'requires_grad' (position 1) must be bool, not {type(requires_grad).__name__}"
        )
    node = live_node(self) if self._node is not None else None
    if is_interior(node):
        if requires_grad:
            return self
        raise RuntimeError(
            "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph "
            "that doesn't require differentiation use var_no_grad = var.detach()."
        )
    if not requires_grad:
        self._node = VIEW if self._base is not None else None
        return self
    if not (self._dtype.is_floating_point or self._dtype.is_complex):
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    if self._inference and not TLS.inference:
        raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
    if node is None:
        self._node = AccumulateGrad(self)
        if self._base is not None:
            self._epoch = self._base._epoch
    return self


def _get_grad(self: Tensor) -> Tensor | None:
    grad = self._grad
    if grad is None and is_interior(self._node) and not self._retains:
        _warn_non_leaf()
    return grad


def _warn_non_leaf() -> None:
    import warnings

    warnings.warn(
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated "
        "during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use "
        ".retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the leaf "
        "Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more information.",
        UserWarning,
        stacklevel=3,
    )


def _set_grad(self: Tensor, value: Tensor | None) -> None:
    if value is None:
        self._grad = None
        return
    if not isinstance(value, Tensor):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}")
    if value is self:
        raise RuntimeError("can't assign Variable as its own grad")
    if value._dtype is not self._dtype:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{value._dtype.ctype}' to a tensor with grad_dtype '{self._dtype.cpp}'. The gradient "
            "must match the tensor's grad_dtype (defaults to the tensor's dtype). You can set the tensor's grad_dtype attribute with a "
            "specific dtype, or None to allow any dtype. Set grad_dtype with caution. Diverging the dtypes of a tensor and its gradient "
            "may break downstream systems that assume they match."
        )
    if value.device.type != self.device.type:
        raise RuntimeError(
            f"attempting to assign a gradient with device type '{value.device.type}' to a tensor with device type '{self.device.type}'. "
            "Please ensure that the gradient and the tensor are on the same device"
        )
    if value._payload.shape != self._payload.shape:
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(value._payload.shape)}' to a tensor of size '{list(self._payload.shape)}'. Please "
            "ensure that the gradient and the tensor are the same size"
        )
    self._grad = value


def _del_grad(self: Tensor) -> None:
    self._grad = None


def _grad_fn(self: Tensor) -> Any:
    node = self._node
    if node is None:
        return None
    node = live_node(self)
    return node if is_interior(node) else None


def _del_grad_fn(self: Tensor) -> None:
    raise RuntimeError("Deletion of _grad_fn not allowed. Detach tensor instead!")


def _get_backward_hooks(self: Tensor) -> Any:
    """The hooks that run on the gradient of this tensor, by id, or None; what was assigned, if anything was."""
    if "_backward_hooks" in self.__dict__:
        return self.__dict__["_backward_hooks"]
    node = live_node(self) if self._node is not None else None
    extras = extras_of(node) if node is not None else None
    return extras.tensor_hooks.get(self._nr) if extras is not None and extras.tensor_hooks else None


def _set_backward_hooks(self: Tensor, value: Any) -> None:
    if isinstance(value, dict) and self._node is not None:
        for hook in value.values():
            register_hook(self, hook)
    self.__dict__["_backward_hooks"] = value


def _del_backward_hooks(self: Tensor) -> None:
    raise RuntimeError("Deletion of _backwards_hooks not allowed!")


def _is_leaf(self: Tensor) -> bool:
    return _grad_fn(self) is None


def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradient of this tensor to the `.grad` of the leaves it was computed from.

    gradient: the cotangent, of this tensor's shape; may be left out for a tensor of one element.
    RuntimeError when there is no history, or its saved tensors were freed by an earlier pass.
    """
    plain = gradient is None and inputs is None and not create_graph and not TLS.transforms
    if plain and (retain_graph is None or retain_graph.__class__ is bool) and _quick_backward(self, bool(retain_graph)):
        if TLS.final_callbacks:
            run_callbacks()
        return
    api.backward(self, gradient, retain_graph, create_graph, inputs=inputs)


_quick_backward: Callable[[Tensor, bool], bool] = (
    (lambda tensor, retain_graph: False) if native.extension is None else native.extension.quick_backward
)


def detach_(self: Tensor) -> Tensor:
    """Forget the history of this tensor. RuntimeError for a view, whose base would still have one."""
    if self._base is not None:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, and "
            "gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be called on "
            "these gradients. To fix this error, please refer to the Optimizer.zero_grad() function in torch/optim/optimizer.py "
            "as the solution."
        )
    if self._node is not None:
        self._v = self._v  # from here on the node cannot be told of changes: Note [Versions of results] in `keeping.py`
        self._node.note_written(self)
    self._node = None
    if TLS.tangents is not None:
        TLS.tangents.forget(self)
    return self


def register_hook(self: Tensor, hook: Callable) -> RemovableHandle:
    """Run `hook(grad)` whenever the gradient of this tensor is computed; it may return another gradient."""
    if not _get_requires_grad(self):
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    extras = need_extras(live_node(self))
    if extras.tensor_hooks is None:
        extras.tensor_hooks = {}
    table = extras.tensor_hooks.setdefault(self._nr, HookTable())
    handle = RemovableHandle(table)
    table[handle.id] = hook
    return handle


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable) -> RemovableHandle:
    """Run `hook(tensor)` after the gradient of this leaf was added to its `.grad`."""
    node = self._node
    if node.__class__ is not AccumulateGrad:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    extras = need_extras(node)
    table = extras.post_accumulate_hooks
    if table is None:
        table = extras.post_accumulate_hooks = HookTable()
    handle = RemovableHandle(table)
    table[handle.id] = hook
    return handle


def retain_grad(self: Tensor) -> None:
    """Let this interior tensor keep its gradient in `.grad`."""
    if not _get_requires_grad(self):
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    node = live_node(self)
    if not is_interior(node) or self._retains:
        return
    keep_gradient(self, node, self._nr)


def _retains_grad(self: Tensor) -> bool:
    return bool(self._retains)


def _get_data(self: Tensor) -> Tensor:
    given_away(self)
    made = wrap(self._payload, self._dtype)
    if self._inference:
        made._inference = True
    return made


def _set_data(self: Tensor, value: Tensor) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
    kinds = [p.layout if isinstance(p, SparsePayload) else None for p in (self._payload, value._payload)]
    if kinds[0] is not kinds[1] or "meta" in (here := {self.device.type, value.device.type}) and len(here) > 1:
        raise RuntimeError(
            "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type."
        )
    node = self._node
    if (
        value._dtype is not self._dtype
        and node is not None
        and not (value._dtype.is_floating_point or value._dtype.is_complex)
    ):
        raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
    for tensor in (self, value):
        given_away(tensor)
    self._payload = value._payload
    self._dtype = value._dtype


def _del_data(self: Tensor) -> None:
    raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")


def _del_requires_grad(self: Tensor) -> None:
    raise RuntimeError("requires_grad must be a bool")


def is_inference(self: Tensor) -> bool:
    """Whether the tensor, or what it is a view of, was made in inference mode."""
    return belongs_to_inference(self)


def _is_view(self: Tensor) -> bool:
    """Whether the tensor is a view of another one whose history it shares: none of those made in inference mode is."""
    base = self._base
    return (base is not None and not (self._inference or base._inference)) or bool(self._multi_view)


def _output_nr(self: Tensor) -> int:
    return self._nr


MEMBERS = {
    "requires_grad": property(_get_requires_grad, _set_requires_grad, _del_requires_grad),
    "requires_grad_": requires_grad_,
    "grad": property(_get_grad, _set_grad, _del_grad),
    "grad_fn": property(_grad_fn),
    "_grad_fn": property(_grad_fn, None, _del_grad_fn),
    "_backward_hooks": property(_get_backward_hooks, _set_backward_hooks, _del_backward_hooks),
    "is_leaf": property(_is_leaf),
    "backward": backward,
    "detach_": detach_,
    "register_hook": register_hook,
    "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook,
    "retain_grad": retain_grad,
    "retains_grad": property(_retains_grad),
    "data": property(_get_data, _set_data, _del_data),
    "is_inference": is_inference,
    "_is_view": _is_view,
    "output_nr": property(_output_nr),
}
ATTACHED = native.members(Tensor, checked(MEMBERS))
