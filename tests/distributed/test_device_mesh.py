"""Meshes as one of eight ranks sees them, in a group that exchanges nothing."""

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.distributed as dist
from mindtorch_v2.distributed.device_mesh import DeviceMesh, init_device_mesh


@pytest.fixture(autouse=True)
def group():
    dist.init_process_group("fake", rank=5, world_size=8)
    yield
    dist.destroy_process_group()


@pytest.fixture
def mesh():
    return init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("dp", "cp", "tp"))


def test_what_it_is(mesh):
    assert repr(mesh) == "DeviceMesh((dp=2, cp=2, tp=2), 'cpu', stride=(4, 2, 1))" and mesh.device_type == "cpu"
    assert mesh.shape == (2, 2, 2) and mesh.size() == 8 and mesh.size(1) == 2 and mesh.ndim == 3
    assert mesh.mesh.dtype is torch.int32 and mesh.mesh.tolist() == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
    assert mesh.get_coordinate() == (1, 0, 1) and mesh.get_local_rank("tp") == 1 and mesh.get_rank() == 5
    again = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("dp", "cp", "tp"))
    assert mesh == again and hash(mesh) == hash(again) and mesh != init_device_mesh("cpu", (8,))
    assert DeviceMesh("cpu", [[0, 1], [2, 3]]).get_coordinate() is None
    assert len(mesh.get_all_groups()) == 3 and init_device_mesh("cpu", (8,)).get_group() is dist.group.WORLD


def test_parts(mesh):
    assert repr(mesh["dp", "cp"]) == "DeviceMesh((dp=2, cp=2), 'cpu', stride=(4, 2))"
    assert mesh["dp", "cp"].mesh.tolist() == [[1, 3], [5, 7]] and mesh["tp"].mesh.tolist() == [4, 5]
    assert mesh["tp"].get_group() is mesh.get_group("tp") and mesh["tp"].get_local_rank() == 1
    flat = mesh["dp", "cp"]._flatten("dpcp")
    assert repr(flat) == "DeviceMesh((dpcp=4), 'cpu', stride=(2,))" and flat.mesh.tolist() == [1, 3, 5, 7]
    assert repr(mesh["dpcp", "tp"]) == "DeviceMesh((dpcp=4, tp=2), 'cpu', stride=(2, 1))" and mesh["dpcp"] == flat
    assert repr(mesh["dp", "tp"]._flatten()) == "DeviceMesh((dp_tp=4), 'cpu', stride=((4, 1),))"
    assert repr(DeviceMesh.from_group(dist.group.WORLD, "cpu")) == "DeviceMesh((8,), 'cpu', stride=(1,))"
    assert mesh["dp"]._get_root_mesh() is mesh


def test_refusals(mesh):
    plain = init_device_mesh("cpu", (2, 4))
    for kind, text, call in [
        (
            KeyError,
            r"Invalid mesh_dim_names \('xx',\) specified. Valid mesh_dim_names are \['dp', 'cp', 'tp'\]",
            lambda: mesh["xx"],
        ),
        (KeyError, "Mesh dim indices should be in ascending order", lambda: mesh["tp", "dp"]),
        (KeyError, r"Valid mesh_dim_names are \['dp'\]", lambda: mesh["dp"]["tp"]),
        (RuntimeError, "Slicing overlapping dim_names", lambda: mesh["dp", "dp"]),
        (RuntimeError, "Cannot slice a DeviceMesh without mesh_dim_names!", lambda: plain["a"]),
        (RuntimeError, "Found the DeviceMesh have 3 dimensions", mesh.get_group),
        (RuntimeError, "Found the DeviceMesh have 3 dimensions", mesh.get_local_rank),
        (KeyError, "Mesh dimension 'zz' does not exist", lambda: mesh.get_group("zz")),
        (IndexError, "list index out of range", lambda: plain.get_group(3)),
        (IndexError, "tuple index out of range", lambda: mesh.size(5)),
        (ValueError, "dp already exists for submesh", lambda: mesh["dp", "tp"]._flatten("dp")),
        (ValueError, "ranks list must not contain duplicate entries", lambda: DeviceMesh("cpu", [0, 0])),
        (
            RuntimeError,
            "Mesh should not be bigger than default world size 8, but found 16 ranks!",
            lambda: init_device_mesh("cpu", (4, 4)),
        ),
        (
            RuntimeError,
            "Each mesh_dim_name must be unique",
            lambda: init_device_mesh("cpu", (2, 4), mesh_dim_names=("a", "a")),
        ),
        (RuntimeError, "should have same length", lambda: init_device_mesh("cpu", (2, 4), mesh_dim_names=("a",))),
        (RuntimeError, "Device type with index is not supported", lambda: init_device_mesh("cpu:0", (8,))),
        (
            ValueError,
            "Must pass mesh if passing multiple",
            lambda: DeviceMesh.from_group([dist.group.WORLD] * 2, "cpu"),
        ),
    ]:
        with pytest.raises(kind, match=text):
            call()
