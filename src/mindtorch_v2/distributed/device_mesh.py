"""`torch.distributed.device_mesh`: processes in the order of a grid, with a group for each of its lines.

Note [Dimensions of a mesh]
A mesh that was made has axes; a mesh that was sliced of it, or flattened, has dimensions that stand for one or several of these axes. All of them share the record of the mesh that was
made (`_Root`): the grid of ranks, the groups by axes, and the dimensions that were flattened by their names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import mindtorch_v2 as torch

from .._device import STANDS_FOR
from . import _groups
from ._groups import get_rank, get_world_size, is_initialized
from ._making import init_process_group, new_group

__all__ = ["init_device_mesh", "DeviceMesh"]

Axes = tuple[int, ...]


class _Root:
    """What all meshes of one grid share."""

    def __init__(self, grid: np.ndarray, names: tuple[str, ...] | None) -> None:
        self.grid = grid
        self.names = names
        self.groups: dict[Axes, Any] = {}
        self.flattened: dict[str, tuple[Axes, Any]] = {}
        self.mesh: Any = None  # the DeviceMesh of all axes
        self.alike: set[tuple[Axes, ...]] = set()  # the meshes whose ranks draw the same random numbers

    def lines(self, axes: Axes) -> list[list[int]]:
        """The ranks along these axes, for each place in the others."""
        others = [axis for axis in range(self.grid.ndim) if axis not in axes]
        count = math.prod(self.grid.shape[axis] for axis in axes)
        return self.grid.transpose(*others, *axes).reshape(-1, count).tolist()


class _Active:
    """The meshes that `with mesh:` has entered."""

    def __init__(self) -> None:
        self.mesh_stack: list[DeviceMesh] = []

    def get_current_mesh(self) -> DeviceMesh:
        if not self.mesh_stack:
            raise RuntimeError("No device mesh is currently active!")
        return self.mesh_stack[-1]

    @staticmethod
    def get_root_mesh(device_mesh: DeviceMesh) -> DeviceMesh:
        return device_mesh._get_root_mesh()

    @staticmethod
    def num_devices_per_host(device_type: str) -> int:
        return max(torch.npu.device_count(), 1) if device_type == "npu" else 1

    @staticmethod
    def num_hosts(device_type: str) -> int:
        return get_world_size() // _Active.num_devices_per_host(device_type)


_mesh_resources = _Active()


class DeviceMesh:
    """Processes in the order of a grid: `mesh` has the ranks of the default group, in any number of dimensions.

    All ranks of the default group make it, in the same order. `mesh["tp"]` and `mesh["dp", "tp"]` are the parts of it that this process is in.

    Raises:
        RuntimeError: for more ranks than there are.
        ValueError: for a rank that is given twice.
    """

    def __init__(
        self,
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: Sequence[str] | None = None,
        backend_override: Any = None,
        _init_backend: bool = True,
    ) -> None:
        if mesh is None:
            raise TypeError("The mesh argument is required except for PRIVATE USAGE ONLY!")
        grid = np.array(mesh.tolist() if isinstance(mesh, torch.Tensor) else mesh, dtype=np.int32)
        self._device_type = STANDS_FOR.get(device_type, device_type)
        if backend_override is not None and len(backend_override) != grid.ndim:
            raise ValueError(
                "backend_override should have the same length as the number of mesh dimensions, "
                f"but got {len(backend_override)} and {grid.ndim}."
            )
        names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        self._enter(_Root(grid, names), tuple((axis,) for axis in range(grid.ndim)), names)
        self._root.mesh = self
        if _init_backend:
            if not is_initialized():
                init_process_group()
            world = get_world_size()
            if grid.size > world:
                raise RuntimeError(
                    f"Mesh should not be bigger than default world size {world}, but found {grid.size} ranks!"
                )
            if len(set(grid.ravel().tolist())) != grid.size:
                raise ValueError(f"ranks list must not contain duplicate entries, got {grid.ravel().tolist()}")
            for axis in range(grid.ndim):
                self._make_group((axis,), None if backend_override is None else backend_override[axis])

    def _enter(self, root: _Root, dims: tuple[Axes, ...], names: tuple[str, ...] | None) -> None:
        self._root = root
        self._dims = dims
        self._names = names

    @classmethod
    def _part(cls, of: DeviceMesh, dims: tuple[Axes, ...], names: tuple[str, ...]) -> DeviceMesh:
        made = object.__new__(cls)
        made._device_type = of._device_type
        made._enter(of._root, dims, names)
        return made

    def _make_group(self, axes: Axes, backend: Any = None) -> None:
        """The groups along axes, of which this process keeps the one that it is in."""
        if axes in self._root.groups:
            return
        lines = self._root.lines(axes)
        if lines == [list(range(get_world_size()))] and backend is None:
            self._root.groups[axes] = _groups._get_default_group()
            return
        for ranks in lines:
            name = "_".join(str(axis) if self._root.names is None else self._root.names[axis] for axis in axes)
            made = new_group(ranks, backend=backend, group_desc=f"mesh_{name}", sort_ranks=False)
            if get_rank() in ranks:
                self._root.groups[axes] = made

    # What it is

    @property
    def device_type(self) -> str:
        """The type of the devices: "cpu" or "npu"."""
        return self._device_type

    @property
    def mesh_dim_names(self) -> tuple[str, ...] | None:
        """The names of the dimensions, or None."""
        return self._names

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions."""
        return tuple(math.prod(self._root.grid.shape[axis] for axis in axes) for axes in self._dims)

    @property
    def ndim(self) -> int:
        """How many dimensions there are."""
        return len(self._dims)

    @property
    def mesh(self) -> torch.Tensor:
        """The ranks, int32. RuntimeError for a part of a mesh that this process is not in."""
        return torch.tensor(self._own_grid())

    def _own_grid(self) -> np.ndarray:
        used = [axis for axes in self._dims for axis in axes]
        others = [axis for axis in range(self._root.grid.ndim) if axis not in used]
        parts = self._root.grid.transpose(*others, *used).reshape(-1, *self.shape)
        if len(parts) == 1:
            return np.ascontiguousarray(parts[0])
        rank = get_rank()
        for part in parts:
            if rank in part:
                return np.ascontiguousarray(part)
        raise RuntimeError(
            "In order to get the mesh Tensor of a DeviceMesh it needs to "
            "either have all its original dimensions (e.g., no slicing) "
            "or it needs to contain the local rank"
        )

    def size(self, mesh_dim: int | None = None) -> int:
        """How many ranks there are, or the size of a dimension."""
        return math.prod(self.shape) if mesh_dim is None else self.shape[mesh_dim]

    def __repr__(self) -> str:
        strides = tuple(self._stride(axes) for axes in self._dims)
        sizes = self.shape
        shown = (
            str(sizes) if not self._names else f"({', '.join(f'{n}={size}' for n, size in zip(self._names, sizes))})"
        )
        return f"DeviceMesh({shown}, '{self._device_type}', stride={strides})"

    def _stride(self, axes: Axes) -> Any:
        shape = self._root.grid.shape
        steps = [math.prod(shape[axis + 1 :]) for axis in axes]
        merged: list[int] = []
        for number, step in enumerate(steps):
            if number and steps[number - 1] == step * shape[axes[number]]:
                merged[-1] = step
            else:
                merged.append(step)
        return merged[0] if len(merged) == 1 else tuple(merged)

    def _key(self) -> tuple:
        return self._device_type, self._names, self._dims, self._root.grid.shape, self._root.grid.tobytes()

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, DeviceMesh) and self._key() == other._key())

    def __hash__(self) -> int:
        return hash(self._key())

    def __getstate__(self) -> dict:
        return {"device_type": self._device_type, "grid": self._root.grid, "root_names": self._root.names,
                "dims": self._dims, "names": self._names}  # fmt: skip

    def __setstate__(self, state: dict) -> None:
        self._device_type = state["device_type"]
        self._enter(_Root(state["grid"], state["root_names"]), state["dims"], state["names"])
        whole = self
        if len(self._dims) != self._root.grid.ndim or self._names != self._root.names:
            axes = tuple((axis,) for axis in range(self._root.grid.ndim))
            whole = DeviceMesh._part(self, axes, self._root.names or ())
        self._root.mesh = whole

    def __deepcopy__(self, memo: Any) -> DeviceMesh:
        return self

    def __enter__(self) -> DeviceMesh:
        _mesh_resources.mesh_stack.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _mesh_resources.mesh_stack.pop()

    # Where this process is

    def get_rank(self) -> int:
        """This process's rank in the default group."""
        return get_rank()

    def get_coordinate(self) -> tuple[int, ...] | None:
        """This process's place in each dimension; None if it is not in the mesh."""
        found = np.argwhere(self._root.grid == get_rank())
        if not len(found):
            return None
        shape = self._root.grid.shape
        place = []
        for axes in self._dims:
            number = 0
            for axis in axes:
                number = number * shape[axis] + int(found[0][axis])
            place.append(number)
        return tuple(place)

    def _is_current_rank_part_of_mesh(self) -> bool:
        return self.get_coordinate() is not None

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """This process's place in a dimension, which is given if there are several."""
        if self.ndim > 1 and mesh_dim is None:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions",
                "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.",
            )
        place = self.get_coordinate()
        if place is None:
            raise RuntimeError(f"rank {get_rank()} is not in {self}")
        return place[self._number(mesh_dim or 0)]

    # Groups

    def _number(self, mesh_dim: int | str) -> int:
        return self._get_mesh_dim_by_name(mesh_dim) if isinstance(mesh_dim, str) else mesh_dim

    def _get_mesh_dim_by_name(self, mesh_dim_name: str) -> int:
        if not self._names:
            raise KeyError("No `mesh_dim_names` found.")
        if mesh_dim_name not in self._names:
            raise KeyError(
                f"Mesh dimension '{mesh_dim_name}' does not exist.",
                f"Available mesh dimensions are: mesh_dim_names={self._names}",
            )
        return self._names.index(mesh_dim_name)

    def get_group(self, mesh_dim: int | str | None = None) -> Any:
        """The process group of a dimension, which is given if there are several. KeyError for an unknown name, IndexError for a number out of range."""
        if self.ndim > 1 and mesh_dim is None:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions",
                "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.",
                "If you want to get the list of all the ProcessGroups in the DeviceMesh,"
                "please use `get_all_groups()` instead.",
            )
        dims = list(self._dims)
        axes = dims[self._number(mesh_dim or 0)]
        if axes not in self._root.groups:
            raise RuntimeError("DeviceMesh process groups not initialized!")
        return self._root.groups[axes]

    def get_all_groups(self) -> list[Any]:
        """The process groups of all dimensions."""
        return [self.get_group(number) for number in range(self.ndim)]

    # Parts

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """The part of the mesh with some of its dimensions that this process is in; names of flattened dimensions may be among them."""
        if not self._names:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        asked = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if asked == self._names:
            return self
        known: dict[str, Axes] = dict(zip(self._names, self._dims))
        if self._root.mesh is self:
            known |= {name: axes for name, (axes, _) in self._root.flattened.items()}
        if not all(name in known for name in asked):
            raise KeyError(f"Invalid mesh_dim_names {asked} specified. Valid mesh_dim_names are {list(known)}.")
        dims = tuple(known[name] for name in asked)
        flat = [axis for axes in dims for axis in axes]
        if len(set(flat)) != len(flat):
            raise RuntimeError(f"Slicing overlapping dim_names {asked} is not allowed.")
        if flat != sorted(flat):
            raise KeyError(f"Invalid mesh_dim_names {asked} specified. Mesh dim indices should be in ascending order.")
        return DeviceMesh._part(self, dims, asked)

    def _get_root_mesh(self) -> DeviceMesh:
        return self._root.mesh

    def _flatten(self, mesh_dim_name: str | None = None, backend_override: Any = None) -> DeviceMesh:
        """A mesh of one dimension with the ranks of all dimensions; it can be sliced of the mesh that was made by its name.

        Raises:
            RuntimeError: if the dimensions have no names.
            ValueError: for a name that a dimension has already.
        """
        if not self._names:
            raise RuntimeError("Cannot flatten a DeviceMesh without mesh_dim_names!")
        name = mesh_dim_name or "_".join(self._names)
        root = self._get_root_mesh()
        if self.ndim == 1 and self._names[0] == name:
            return self
        taken = self._root.names or ()
        if name in taken:
            raise ValueError(
                f"{name} already exists for submesh of the {root}. ",
                f"The mesh_dim_names of submesh and flattened mesh are {taken}. "
                "Please specify another valid mesh_dim_name.",
            )
        axes = tuple(axis for axes in self._dims for axis in axes)
        if name in self._root.flattened:
            known, made = self._root.flattened[name]
            if known != axes:
                raise ValueError(
                    f"Flatten mesh with mesh_dim_name {name} has been created before, "
                    "Please specify another valid mesh_dim_name."
                )
            return made
        self._make_group(axes, backend_override)
        made = DeviceMesh._part(self, (axes,), (name,))
        self._root.flattened[name] = axes, made
        return made

    @staticmethod
    def from_group(
        group: Any, device_type: str, mesh: Any = None, *, mesh_dim_names: Sequence[str] | None = None
    ) -> DeviceMesh:
        """A mesh of groups that are there: one, or a list with one for each dimension of `mesh`.

        Raises:
            ValueError: for no group, or a mesh or names that do not fit them.
        """
        groups = list(group) if isinstance(group, (list, tuple)) else [group]
        if not groups:
            raise ValueError("Expects at least one ProcessGroup to be passed")
        if not isinstance(group, (list, tuple)):
            ranks = _groups.get_process_group_ranks(group)
            given = None if mesh is None else np.array(mesh.tolist() if isinstance(mesh, torch.Tensor) else mesh)
            if given is not None and given.tolist() != ranks:
                raise ValueError(f"Invalid mesh {mesh} for ProcessGroup with ranks {ranks}")
            grid: Any = ranks
        else:
            if mesh is None:
                raise ValueError("Must pass mesh if passing multiple ProcessGroups")
            if mesh_dim_names is None:
                raise ValueError("Must pass mesh_dim_names if passing multiple ProcessGroups")
            grid = mesh.tolist() if isinstance(mesh, torch.Tensor) else mesh
            if np.array(grid).ndim != len(groups):
                raise ValueError(
                    "Expects mesh with ndim equal to number of ProcessGroups but got "
                    f"mesh {np.array(grid).tolist()} and {len(groups)} ProcessGroups"
                )
        made = DeviceMesh(device_type, grid, mesh_dim_names=mesh_dim_names, _init_backend=False)
        for axis, one in enumerate(groups):
            made._root.groups[axis,] = one
        return made


def init_device_mesh(
    device_type: str,
    mesh_shape: Sequence[int],
    *,
    mesh_dim_names: Sequence[str] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """A mesh of the first ranks of the default group, row by row. Without a default group one is made.

    Args:
        device_type: "cpu" or "npu".
        mesh_shape: the sizes of the dimensions.
        mesh_dim_names: their names, each once.
        backend_override: by a dimension's name or number, the backend of its groups.

    Raises:
        RuntimeError: for names that are given twice or do not fit the shape, a device with an index, or more ranks than there are.
    """
    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError(
                f"Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names {mesh_dim_names}"
            )
        if len(mesh_shape) != len(mesh_dim_names):
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length! "
                f"Found len(mesh_dim_names): {len(mesh_dim_names)} and len(mesh_shape):{len(mesh_shape)}."
            )
    if device_type and not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. ",
            "If you maintained a 'torch.device' object, it's recommended to pass in 'device.type'.",
        )
    override = None
    if backend_override is not None:
        override = _override(backend_override, len(mesh_shape), mesh_dim_names)
    grid = np.arange(math.prod(mesh_shape), dtype=np.int32).reshape(tuple(mesh_shape))
    return DeviceMesh(device_type, grid, mesh_dim_names=mesh_dim_names, backend_override=override)


def _override(given: dict, ndim: int, names: Sequence[str] | None) -> list[Any]:
    """The backend of each dimension, by what is said of names and numbers."""
    left = {key: value[0] if isinstance(value, tuple) else value for key, value in given.items()}
    found = []
    for number in range(ndim):
        name = None if names is None else names[number]
        if number in left and name in left:
            raise RuntimeError(f"Found redundant dim index {number} and name {name} in backend_override")
        found.append(left.pop(number) if number in left else left.pop(name, None))
    if left:
        raise RuntimeError(
            f"Found invalid keys in backend_override: got {list(left)}, expected integers in range [0, {ndim}) or one of {names}"
        )
    return found
