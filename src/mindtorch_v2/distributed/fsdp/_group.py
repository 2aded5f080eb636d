"""The parameters that are gathered and whose gradients are averaged together: those of one module that `fully_shard` was called with.

Note [Whole parameters]
A parameter is a DTensor in the module as long as it is in parts, and a plain Parameter (of a tensor-parallel module a DTensor on the other dimension of the mesh) while it is gathered. The
gathered one is always the same object, since the graph has it as its leaf; while it is in parts its memory is let go, and it is filled again before the module's backward pass, with the
same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import mindtorch_v2 as torch

from .._collectives import all_gather_single, all_reduce, reduce_scatter_single
from .._reduction import ReduceOp
from ..device_mesh import DeviceMesh
from ..placements import Placement, Replicate, Shard, _StridedShard, part_of
from ..tensor import DTensor
from ..tensor._redistribute import cut
from ..tensor._spec import DTensorSpec, TensorMeta, contiguous_strides
from ._policies import MixedPrecisionPolicy

Tensor = torch.Tensor


@dataclass
class Mesh:
    """The mesh as parameters see it: the dimension along which they are in parts, and the one along which these are the same, if there is one."""

    mesh: DeviceMesh
    shard: Any = None  # groups
    replicate: Any = None
    shard_count: int = 1
    number: int = 0

    @classmethod
    def of(cls, mesh: DeviceMesh) -> Mesh:
        if mesh.ndim not in (1, 2):
            raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
        last = mesh.ndim - 1
        made = cls(mesh, mesh.get_group(last), shard_count=mesh.size(last), number=mesh.get_local_rank(last))
        if mesh.ndim == 2:
            made.replicate = mesh.get_group(0)
        return made


@dataclass
class Param:
    """One parameter: where modules have it, its part, and the whole."""

    places: list[tuple[Any, str]]
    mesh: Mesh
    dim: int
    sharded: Any
    shape: tuple[int, ...]  # of what is gathered: of the whole, or of the piece of a tensor-parallel one
    inner: DTensorSpec | None = None  # of a tensor-parallel one
    whole: Any = None
    heard: Any = None  # the whole whose gradients are heard of
    spec: Any = field(default=None)
    waiting: Any = None  # what passes without an average among replicas have left

    @classmethod
    def divide(cls, parameter: Any, places: list[tuple[Any, str]], mesh: Mesh, dim: int) -> Param:
        """Take a parameter to parts, and put these in its places."""
        inner = parameter._spec if isinstance(parameter, DTensor) else None
        local = parameter._local_tensor if isinstance(parameter, DTensor) else parameter.detach()
        if not local.dim():
            raise ValueError(
                "fully_shard doesn't support scalar parameters. Change them to a 1D tensor with numel equal to 1."
            )
        if dim and local.shape[dim] % mesh.shard_count:
            raise NotImplementedError(
                f"FSDP does not support uneven sharding on dim {dim}: {tuple(local.shape)} (world size: {mesh.shard_count})"
            )
        made = cls(places, mesh, dim, None, tuple(local.shape), inner)
        made.spec = made._spec_of(parameter, inner)
        part = cut(local, dim, mesh.shard_count, mesh.number) if local.device.type != "meta" else local.narrow(
            dim, *part_of(local.shape[dim], mesh.shard_count, mesh.number)).clone()  # fmt: skip
        made.sharded = torch.nn.Parameter(
            DTensor(part, made.spec, requires_grad=False), requires_grad=parameter.requires_grad
        )
        for name, value in vars(parameter).items():
            if name not in ("_spec", "_local_tensor"):
                setattr(made.sharded, name, value)
        made.put(made.sharded)
        return made

    def _spec_of(self, parameter: Any, inner: DTensorSpec | None) -> DTensorSpec:
        own: list[Placement] = [Shard(self.dim)]
        meta = TensorMeta(torch.Size(parameter.shape), contiguous_strides(parameter.shape), parameter.dtype)
        if self.mesh.replicate is not None:
            own.insert(0, Replicate())
        if inner is None:
            return DTensorSpec(self.mesh.mesh, tuple(own), meta)
        outer = self.mesh.mesh
        root = outer._get_root_mesh()
        if inner.mesh._get_root_mesh() != root or outer.mesh_dim_names is None or inner.mesh.mesh_dim_names is None:
            raise ValueError("FSDP requires the DP and model parallel TP/EP mesh to have the same parent mesh")
        count = 1
        for number, p in enumerate(inner.placements):
            if p.is_shard(self.dim):
                count *= inner.mesh.size(number)
        if count > 1:
            own[-1] = _StridedShard(self.dim, split_factor=count)
        names = (*outer.mesh_dim_names, *inner.mesh.mesh_dim_names)
        return DTensorSpec(root[names], (*own, *inner.placements), meta)

    def put(self, parameter: Any) -> None:
        """Have the modules hold this."""
        for module, name in self.places:
            module._parameters[name] = parameter

    def adopt(self) -> None:
        """Take what a module holds now for the parts: programs may have put another parameter there, on another device or with what a file has."""
        module, name = self.places[0]
        held = module._parameters[name]
        if held is self.sharded or held is self.whole:
            return
        if not isinstance(held, DTensor):
            raise RuntimeError(f"parameter {name} of {type(module).__name__} was replaced by one that is not sharded")
        self.sharded = held
        self.put(held)

    @property
    def chunk(self) -> int:
        """How many rows each part has, the last ones with what is missing filled up."""
        return -(-self.shape[self.dim] // self.mesh.shard_count)

    @property
    def elements(self) -> int:
        """How many elements a part has."""
        total = self.chunk
        for dim, size in enumerate(self.shape):
            if dim != self.dim:
                total *= size
        return total

    def flat(self, tensor: Tensor, dtype: Any) -> Tensor:
        """A part as a row of `elements` numbers."""
        part = tensor.movedim(self.dim, 0).to(dtype).reshape(-1)
        short = self.elements - part.numel()
        return torch.cat([part, part.new_zeros(short)]) if short else part

    def joined(self, rows: Tensor) -> Tensor:
        """The whole of all ranks' rows [ranks, elements]."""
        rest = [size for dim, size in enumerate(self.shape) if dim != self.dim]
        whole = rows.reshape(self.mesh.shard_count * self.chunk, *rest)[: self.shape[self.dim]]
        return whole.movedim(0, self.dim).contiguous()

    def rows_of(self, grad: Tensor, dtype: Any) -> Tensor:
        """A whole gradient as rows for all ranks."""
        front = grad.movedim(self.dim, 0).to(dtype)
        short = self.mesh.shard_count * self.chunk - front.shape[0]
        if short:
            front = torch.cat([front, front.new_zeros((short, *front.shape[1:]))])
        return front.reshape(self.mesh.shard_count, -1)

    def part(self, row: Tensor) -> Tensor:
        """This rank's part of what a row has."""
        rest = [size for dim, size in enumerate(self.shape) if dim != self.dim]
        count = part_of(self.shape[self.dim], self.mesh.shard_count, self.mesh.number)[1]
        return row.reshape(self.chunk, *rest)[:count].movedim(0, self.dim).contiguous()


class ParamGroup:
    """See Note [Whole parameters]."""

    def __init__(self, params: list[Param], mesh: Mesh, policy: MixedPrecisionPolicy) -> None:
        self.params = params
        self.mesh = mesh
        self.policy = policy
        self.is_whole = False
        self.divide_factor: float | None = None
        self.sync = True
        self.all_reduces = True
        self.hook: Any = None
        self._pending: Any = None

    def begin(self) -> None:
        """Begin to gather, unless that has been begun."""
        if self.is_whole or self._pending is not None:
            return
        by_dtype: dict[Any, list[Param]] = {}
        for param in self.params:
            param.adopt()
            local = param.sharded._local_tensor
            if local.device.type == "meta":
                raise RuntimeError(
                    "FSDP parameters should be materialized from meta device before training, but the following were still on meta device: "
                    f"{[name for _, name in param.places]}"
                )
            by_dtype.setdefault(self.policy.param_dtype if self._casts(local.dtype) else local.dtype, []).append(param)
        self._pending = []
        with torch.no_grad():
            for dtype, params in by_dtype.items():
                own = torch.cat([param.flat(param.sharded._local_tensor, dtype) for param in params])
                taken = own.new_empty((self.mesh.shard_count, own.numel()))
                work = None
                if self.mesh.shard_count > 1:
                    work = all_gather_single(taken, own, self.mesh.shard, async_op=True)
                else:
                    taken.copy_(own)
                self._pending.append((params, taken, work))

    def _casts(self, dtype: Any) -> bool:
        return self.policy.param_dtype is not None and dtype.is_floating_point

    def gather(self) -> None:
        """Have the whole parameters in the modules."""
        if self.is_whole:
            return
        self.begin()
        with torch.no_grad():
            for params, taken, work in self._pending:
                if work is not None:
                    work.wait()
                start = 0
                for param in params:
                    self._fill(param, param.joined(taken[:, start : start + param.elements]))
                    start += param.elements
        self._pending = None
        self.is_whole = True

    def _fill(self, param: Param, whole: Tensor) -> None:
        needs = param.sharded.requires_grad
        if param.whole is None or param.whole.dtype is not whole.dtype:
            made: Any = whole
            if param.inner is not None:
                made = DTensor(whole, param.inner, requires_grad=False)
            param.whole = torch.nn.Parameter(made, requires_grad=needs)
            for name, value in vars(param.sharded).items():
                if name not in ("_spec", "_local_tensor"):
                    setattr(param.whole, name, value)
        else:
            _set(param.whole, whole)
            param.whole.requires_grad_(needs)
        param.put(param.whole)

    def release(self) -> None:
        """Have the parts in the modules, and let go of the memory of the whole parameters."""
        if self._pending is not None:
            for _, _, work in self._pending:
                if work is not None:
                    work.wait()
            self._pending = None
        if not self.is_whole:
            return
        for param in self.params:
            param.put(param.sharded)
            local = param.whole._local_tensor if param.inner is not None else param.whole
            _set(param.whole, local.new_empty(0))
        self.is_whole = False

    def reduce(self) -> None:
        """Average the gradients that have arrived, each rank its part, and add them to the parts' gradients."""
        arrived = [param for param in self.params if param.whole is not None and param.whole.grad is not None]
        by_dtype: dict[Any, list[Param]] = {}
        for param in arrived:
            grad = param.whole.grad
            by_dtype.setdefault(self.policy.reduce_dtype or grad.dtype, []).append(param)
        with torch.no_grad():
            for dtype, params in by_dtype.items():
                self._reduce(dtype, params)

    def _reduce(self, dtype: Any, params: list[Param]) -> None:
        rows = []
        for param in params:
            grad = param.whole.grad
            if param.inner is not None:
                grad = grad.redistribute(placements=param.inner.placements)._local_tensor
            rows.append(param.rows_of(grad, dtype))
            param.whole.grad = None
        given = torch.cat(rows, 1)
        factor = self.divide_factor
        op = ReduceOp.AVG if factor is None else ReduceOp.SUM
        taken = given.new_empty(given.shape[1])
        if self.mesh.shard_count > 1:
            reduce_scatter_single(taken, given.reshape(-1), op, self.mesh.shard)
        else:
            taken.copy_(given[0])
        if self.mesh.replicate is not None:
            self._add_waiting(params, taken)
            if not self.all_reduces:
                return
            all_reduce(taken, op, self.mesh.replicate)
        if factor is not None:
            taken /= factor
        if self.hook is not None:
            self.hook(taken)
        start = 0
        for param in params:
            self._add(param, param.part(taken[start : start + param.elements]))
            start += param.elements

    def _add_waiting(self, params: list[Param], taken: Tensor) -> None:
        """Add what earlier passes left for an average among replicas; a pass that takes none itself leaves the sum."""
        rows = taken.split([param.elements for param in params])
        for param, row in zip(params, rows, strict=True):
            if param.waiting is not None:
                row += param.waiting
            param.waiting = None if self.all_reduces else row

    def _add(self, param: Param, part: Tensor) -> None:
        sharded = param.sharded
        spec = sharded._spec
        made = DTensor(part.to(sharded.dtype).to(sharded._local_tensor.device), spec, requires_grad=False)
        if sharded.grad is None:
            sharded.grad = made
        else:
            sharded.grad += made


def _set(parameter: Any, local: Tensor) -> None:
    """Give a parameter, which the graph may have, other memory."""
    if isinstance(parameter, DTensor):
        parameter._local_tensor = local
    else:
        parameter.data = local
