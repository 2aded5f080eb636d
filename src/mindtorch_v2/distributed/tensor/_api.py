"""DTensor: a tensor of which each rank of a mesh has a piece, and how one is made."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import mindtorch_v2 as torch

from ..._dispatch.overrides import _disabled_torch_function_impl
from ..._tensor import Tensor
from .._collectives import broadcast
from ..device_mesh import DeviceMesh, _mesh_resources
from ..placements import Partial, Placement, Replicate, Shard
from . import _random
from ._dispatch import dispatch, write_at
from ._redistribute import redistribute
from ._spec import DTensorSpec, TensorMeta, contiguous_strides, for_gradient, local_part, normal

__all__ = ["DTensor", "distribute_tensor", "distribute_module", "ones", "empty", "full", "rand", "randn", "zeros"]


def _mesh_or_current(mesh: DeviceMesh | None) -> DeviceMesh:
    return mesh if mesh is not None else _mesh_resources.get_current_mesh()


class DTensor(Tensor):
    """A tensor of which each rank of a mesh has a piece.

    Shape, strides and dtype are those of the whole. Operators run on the pieces, and move them between ranks where they have to (docs/distributed.md). `DTensor.from_local`,
    `distribute_tensor` and the factories of this module make one.
    """

    _local_tensor: Tensor
    _spec: DTensorSpec

    __torch_function__ = _disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, local_tensor: Tensor, spec: DTensorSpec, *, requires_grad: bool) -> Any:
        if local_tensor.requires_grad and not requires_grad:
            warnings.warn(
                "To construct DTensor from torch.Tensor, it's recommended to use local_tensor.detach() and make requires_grad consistent."
            )
        meta = spec.tensor_meta
        made = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            meta.shape,
            strides=meta.stride,
            dtype=local_tensor.dtype,
            device=local_tensor.device,
            requires_grad=requires_grad,
        )
        made._spec = spec
        made._local_tensor = local_tensor
        return made

    def __init__(self, local_tensor: Tensor, spec: DTensorSpec, *, requires_grad: bool) -> None:
        pass

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return dispatch(DTensor, func, args, dict(kwargs or {}))

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"DTensor(local_tensor={self._local_tensor}, device_mesh={self._spec.mesh}, placements={self._spec.placements})"

    __str__ = __repr__

    @property
    def data(self) -> Any:  # type: ignore[override]
        """The tensor without history, sharing its pieces; what is assigned gives it other pieces. TypeError for what is no DTensor."""
        return self.detach()

    @data.setter
    def data(self, value: Any) -> None:
        if not isinstance(value, DTensor):
            raise TypeError(f"the data of a DTensor is a DTensor, not {type(value).__name__}")
        Tensor.data.__set__(self, value)  # type: ignore[attr-defined]
        self._local_tensor = value._local_tensor
        self._spec = value._spec

    def __setitem__(self, index: Any, value: Any) -> None:
        write_at(self, index, value)

    def __deepcopy__(self, memo: dict) -> Any:
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment."
            )
        if id(self) in memo:
            return memo[id(self)]
        made: Any = DTensor(self._local_tensor.detach().clone(), self._spec, requires_grad=False)
        if isinstance(self, torch.nn.Parameter):
            made = torch.nn.Parameter(made, requires_grad=self.requires_grad)
        else:
            made.requires_grad_(self.requires_grad)
        if self.grad is not None:
            made.grad = self.grad.clone()
        memo[id(self)] = made
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuilt, (self._local_tensor.detach(), self._spec, self.requires_grad)

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
        shape: Any = None,
        stride: tuple[int, ...] | None = None,
        grad_placements: Sequence[Placement] | None = None,
    ) -> Any:
        """The tensor whose piece on each rank is the rank's tensor. Differentiable.

        Args:
            placements: whole on each rank unless given.
            run_check: have all ranks take what the first one has, where they are to have the same.
            shape, stride: of the whole, given together; else all pieces are taken to be of one shape.

        Raises:
            RuntimeError: for a DTensor, or a shape without strides.
        """
        if isinstance(local_tensor, DTensor):
            raise RuntimeError(
                "the local_tensor argument only accepts torch.Tensor but got <class 'torch.distributed.tensor.DTensor'> value."
            )
        mesh = _mesh_or_current(device_mesh)
        if placements is None:
            placements = [Replicate()] * mesh.ndim
        if len(placements) != mesh.ndim:
            raise ValueError(f"`placements` must have the same length as `device_mesh.ndim`! Found placements length: {len(placements)}, and device_mesh.ndim: {mesh.ndim}.")  # fmt: skip
        places = normal(placements, local_tensor.dim())
        if (shape is None) != (stride is None):
            raise RuntimeError(
                f"Found shape:{shape}, stride:{stride}. Please pass both shape and stride at the same time."
            )
        if shape is None:
            shape, stride = _whole_geometry(local_tensor, mesh, places)
        meta = TensorMeta(torch.Size(shape), tuple(stride), local_tensor.dtype)  # type: ignore[arg-type]
        grads = None if grad_placements is None else normal(grad_placements, local_tensor.dim())
        return _FromLocal.apply(local_tensor, DTensorSpec(mesh, places, meta), grads, run_check)

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """This rank's piece, sharing its memory. Differentiable: `grad_placements` says how the pieces of its gradient lie, as the tensor itself unless given."""
        if not torch.is_grad_enabled():
            return self._local_tensor
        grads = None if grad_placements is None else normal(grad_placements, self.dim())
        return _ToLocal.apply(self, grads)

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        async_op: bool = False,
        forward_dtype: Any = None,
        backward_dtype: Any = None,
    ) -> Any:
        """The tensor under other placements. Differentiable: the gradient is brought to where the tensor was.

        Raises:
            RuntimeError: without placements, for terms that the tensor does not have, or for another mesh.
        """
        mesh = device_mesh or self._spec.mesh
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        if mesh != self._spec.mesh:
            raise NotImplementedError("Cross device mesh comm not supported yet!")
        if len(placements) != mesh.ndim:
            raise ValueError(f"`placements` must have the same length as `device_mesh.ndim`! Found placements length: {len(placements)}, and device_mesh.ndim: {mesh.ndim}.")  # fmt: skip
        places = normal(placements, self.dim())
        for before, after in zip(self._spec.placements, places):
            if isinstance(after, Partial) and after != before:
                raise RuntimeError(f"Can not redistribute from {before} to {after}, redistributing to Partial is for internal use only!")  # fmt: skip
        return _Redistribute.apply(self, places, forward_dtype, backward_dtype)

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """The whole tensor on every rank, as a plain one. Differentiable."""
        whole = self.redistribute(placements=[Replicate()] * self._spec.mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh whose ranks have the pieces."""
        return self._spec.mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """How the pieces lie, for each dimension of the mesh."""
        return self._spec.placements


def _whole_geometry(local: Tensor, mesh: DeviceMesh, places: Sequence[Placement]) -> tuple[list[int], tuple[int, ...]]:
    """The shape and strides of the whole whose pieces are all like one: dimensions outside of a divided one have larger steps."""
    shape, stride = list(local.shape), list(local.stride())
    for number, p in enumerate(places):
        if isinstance(p, Shard):
            count = mesh.shape[number]
            shape[p.dim] *= count
            stride = [s * count if d != p.dim and s >= stride[p.dim] else s for d, s in enumerate(stride)]
    return shape, tuple(stride)


def _rebuilt(local: Tensor, spec: DTensorSpec, requires_grad: bool) -> DTensor:
    return DTensor(local, spec, requires_grad=requires_grad)


def _fresh(local: Tensor, spec: DTensorSpec) -> DTensor:
    return DTensor(local, spec, requires_grad=False)


class _FromLocal(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, local: Tensor, spec: DTensorSpec, grads: Any, run_check: bool) -> Any:
        ctx.places = for_gradient(spec.placements if grads is None else grads)
        ctx.spec = spec
        local = local.detach()
        if spec.mesh.get_coordinate() is None:
            local = local.new_empty(0)
        elif run_check:
            local = local.clone(memory_format=torch.contiguous_format)
            for number, p in enumerate(spec.placements):
                if p.is_replicate() and spec.mesh.shape[number] > 1:
                    broadcast(local, group=spec.mesh.get_group(number), group_src=0)
        return _fresh(local.view_as(local), spec)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:  # type: ignore[override]
        return _moved(grad, ctx.places)._local_tensor, None, None, None


class _ToLocal(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, whole: Any, grads: Any) -> Any:
        ctx.spec = whole._spec
        ctx.grads = for_gradient(whole._spec.placements) if grads is None else grads
        return whole._local_tensor.view_as(whole._local_tensor)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:  # type: ignore[override]
        meta = ctx.spec.tensor_meta
        return _fresh(grad, DTensorSpec(ctx.spec.mesh, ctx.grads, TensorMeta(meta.shape, contiguous_strides(meta.shape), grad.dtype))), None  # fmt: skip


class _Redistribute(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, given: Any, places: Any, dtype: Any, backward_dtype: Any) -> Any:
        ctx.places = for_gradient(given._spec.placements)
        ctx.dtype, ctx.backward_dtype = given.dtype, backward_dtype
        if dtype is not None and dtype is not given.dtype:
            given = given.to(dtype)
        return _moved(given, places, fresh=True)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:  # type: ignore[override]
        if ctx.backward_dtype is not None:
            grad = grad.to(ctx.backward_dtype)
        return _moved(grad, ctx.places).to(ctx.dtype), None, None, None


def _moved(tensor: Any, places: Sequence[Placement], fresh: bool = False) -> Any:
    """A DTensor under other placements, without history."""
    spec = tensor._spec
    local = redistribute(tensor._local_tensor, spec.shape, spec.mesh, spec.placements, places)
    if local is tensor._local_tensor:
        if not fresh and tuple(places) == spec.placements:
            return tensor
        local = local.view_as(local)
    return _fresh(local, DTensorSpec(spec.mesh, tuple(places), spec.tensor_meta))


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """A tensor, the same one on every rank, as a DTensor: a leaf that requires grad if it does.

    Args:
        placements: whole on each rank unless given.
        src_data_rank: the rank in each line of the mesh whose elements all take; None: each takes its own, and nothing is sent.

    Raises:
        RuntimeError: for a tensor that is no leaf.
        ValueError: for as many placements as the mesh has no dimensions, or a DTensor on another mesh or with other placements.
    """
    mesh = _mesh_or_current(device_mesh)
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!")
    if placements is None:
        placements = [Replicate()] * mesh.ndim
    if len(placements) != mesh.ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found placements length: {len(placements)}, and device_mesh.ndim: {mesh.ndim}."
        )
    places = normal(placements, tensor.dim())
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != mesh:
            raise ValueError(f"Cannot distribute a DTensor with device mesh {tensor.device_mesh} to a different device mesh {mesh}.")  # fmt: skip
        if tensor.placements != places:
            raise ValueError(
                f"Cannot distribute a DTensor with placements {tensor.placements} to a different placements {list(places)}. do you want to call "
                "`redistribute` instead?"
            )
        return tensor
    if any(isinstance(p, Partial) for p in places):
        raise RuntimeError(
            "Cannot distribute a tensor to terms of a reduction: `from_local` takes the terms that the ranks have"
        )
    meta = TensorMeta(torch.Size(tensor.shape), tuple(tensor.stride()), tensor.dtype)
    local = tensor.detach()
    if mesh.get_coordinate() is None:
        local = local.new_empty(0)
    elif local.device.type != "meta":
        if src_data_rank is not None and mesh.size() > 1:
            local = local.clone(memory_format=torch.contiguous_format)
            for number, count in enumerate(mesh.shape):
                if count > 1:
                    broadcast(local, group=mesh.get_group(number), group_src=src_data_rank)
        local = redistribute(local, meta.shape, mesh, [Replicate()] * mesh.ndim, places)
    else:
        local = local.new_empty(local_part(meta.shape, mesh.shape, places, mesh.get_coordinate() or ())[0])
    return DTensor(local, DTensorSpec(mesh, places, meta), requires_grad=tensor.requires_grad)


def distribute_module(
    module: Any,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, Any, DeviceMesh], None] | None = None,
    input_fn: Callable[[Any, Any, DeviceMesh], Any] | None = None,
    output_fn: Callable[[Any, Any, DeviceMesh], Any] | None = None,
) -> Any:
    """A module whose parameters and buffers are DTensors: `partition_fn(name, submodule, mesh)` makes those that are not whole on each rank; `input_fn(module, inputs, mesh)` and
    `output_fn(module, outputs, mesh)` change what goes in and comes out.

    Raises:
        RuntimeError: for a module that has been distributed.
    """
    mesh = _mesh_or_current(device_mesh)
    if getattr(module, "_distribute_module_applied", False):
        raise RuntimeError(
            "distribute_module should only be called once on a module, but it has already been called on this module!"
        )
    for name, part in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, part, mesh)
        for key, parameter in part._parameters.items():
            if parameter is not None and not isinstance(parameter, DTensor):
                made = distribute_tensor(parameter.data, mesh)
                part._parameters[key] = torch.nn.Parameter(made, requires_grad=parameter.requires_grad)
        for key, buffer in part._buffers.items():
            if buffer is not None and not isinstance(buffer, DTensor):
                part._buffers[key] = distribute_tensor(buffer, mesh)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda mod, inputs: input_fn(mod, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda mod, inputs, outputs: output_fn(mod, outputs, mesh))
    module._distribute_module_applied = True
    return module


# Factories


def _made(
    make: Callable[..., Tensor], size: Any, options: dict, mesh: DeviceMesh | None, placements: Any, drawn: bool = False
) -> DTensor:
    if len(size) == 1 and isinstance(size[0], (list, tuple)):
        size = size[0]
    requires_grad = options.pop("requires_grad", False)
    mesh = _mesh_or_current(mesh)
    places = normal([Replicate()] * mesh.ndim if placements is None else placements, len(size))
    if len(places) != mesh.ndim:
        raise ValueError(f"`placements` must have the same length as `device_mesh.ndim`! Found placements length: {len(places)}, and device_mesh.ndim: {mesh.ndim}.")  # fmt: skip
    options.setdefault("device", mesh.device_type)
    place = mesh.get_coordinate()
    if place is None:
        local = make((0,), **options)
    elif drawn:
        _random.align(mesh)
        local = redistribute(make(tuple(size), **options), size, mesh, [Replicate()] * mesh.ndim, places)
    else:
        local = make(local_part(size, mesh.shape, places, place)[0], **options)
    spec = DTensorSpec(mesh, places, TensorMeta(torch.Size(size), contiguous_strides(size), local.dtype))
    return DTensor(local, spec, requires_grad=requires_grad)


def zeros(
    *size: Any, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, **options: Any
) -> DTensor:
    """A DTensor of zeros, whole on each rank unless placements are given; `dtype`, `layout` and `requires_grad` as for `torch.zeros`."""
    return _made(torch.zeros, size, options, device_mesh, placements)


def ones(
    *size: Any, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, **options: Any
) -> DTensor:
    """A DTensor of ones; see `zeros`."""
    return _made(torch.ones, size, options, device_mesh, placements)


def empty(
    *size: Any, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, **options: Any
) -> DTensor:
    """A DTensor whose elements are whatever is there; see `zeros`."""
    return _made(torch.empty, size, options, device_mesh, placements)


def full(
    size: Any,
    fill_value: Any,
    *,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    **options: Any,
) -> DTensor:
    """A DTensor of one number; see `zeros`."""
    return _made(
        lambda shape, **given: torch.full(shape, fill_value, **given), (size,), options, device_mesh, placements
    )


def rand(
    *size: Any, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, **options: Any
) -> DTensor:
    """A DTensor of uniform random numbers, the same however it lies; see `zeros`."""
    return _made(torch.rand, size, options, device_mesh, placements, drawn=True)


def randn(
    *size: Any, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, **options: Any
) -> DTensor:
    """A DTensor of normal random numbers, the same however it lies; see `zeros`."""
    return _made(torch.randn, size, options, device_mesh, placements, drawn=True)
