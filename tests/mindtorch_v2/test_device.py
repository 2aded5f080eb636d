"""Devices: names, contexts nested and per thread, defaults, the meta device."""

from __future__ import annotations

import copy
import pickle
import threading

import pytest

import mindtorch_v2 as torch


def test_names_and_indices() -> None:
    assert str(torch.device("cpu")) == "cpu" and repr(torch.device("cpu")) == "device(type='cpu')"
    assert repr(torch.device("cpu:0")) == repr(torch.device("cpu", 0)) == "device(type='cpu', index=0)"
    assert torch.device("cpu") != torch.device("cpu:0") and torch.device("meta").type == "meta"
    assert torch.device(torch.device("cpu")) == torch.device("cpu") and torch.device("meta").index is None
    assert torch.device(type="cpu") == torch.device("cpu") and hash(torch.device("cpu")) == hash(torch.device("cpu"))
    assert torch.device("cpu") in {torch.device("cpu")} and torch.device("cpu") != "cpu"


@pytest.mark.parametrize("name", ["nonsense", "cpu:", "cpu:a", "cpu:-1", ""])
def test_names_that_are_none(name) -> None:
    with pytest.raises(RuntimeError):
        torch.device(name)


def test_devices_travel() -> None:
    assert copy.deepcopy(torch.device("cpu:0")) == torch.device("cpu:0")


def test_a_device_is_a_context() -> None:
    assert torch.get_default_device() == torch.device("cpu")
    with torch.device("meta"):
        assert torch.get_default_device() == torch.device("meta")
        made = [torch.empty(2), torch.zeros(2), torch.arange(3), torch.rand(2), torch.full((2,), 1), torch.eye(2)]
        made += [torch.tensor([1, 2]), torch.linspace(0, 1, 3), torch.randint(3, (2,)), torch.ones(2)]
        assert all(x.device.type == "meta" for x in made)
        assert torch.ones(2, device="cpu").device.type == "cpu"
        assert torch.ones_like(torch.ones(2, device="cpu")).device.type == "cpu"
        assert torch.ones(2, device="cpu").new_zeros(3).device.type == "cpu"
        assert torch.nn.Linear(2, 3).weight.device.type == "meta"
    assert torch.ones(2).device.type == "cpu"


def test_contexts_nest_and_survive_errors() -> None:
    with torch.device("meta"):
        with torch.device("cpu"):
            assert torch.ones(1).device.type == "cpu"
        assert torch.ones(1).device.type == "meta"
        with pytest.raises(ValueError), torch.device("cpu"):
            raise ValueError
        assert torch.ones(1).device.type == "meta"
    assert torch.ones(1).device.type == "cpu"


def test_one_device_object_entered_twice() -> None:
    where = torch.device("meta")
    with where:
        with where:
            assert torch.ones(1).is_meta
        assert torch.ones(1).is_meta
    assert not torch.ones(1).is_meta


def test_contexts_belong_to_their_thread() -> None:
    found = {}

    def work():
        found["start"] = torch.ones(1).device.type
        with torch.device("meta"):
            found["inside"] = torch.ones(1).device.type
            barrier.wait()
            barrier.wait()

    barrier = threading.Barrier(2)
    thread = threading.Thread(target=work)
    with torch.device("meta"):
        pass
    thread.start()
    barrier.wait()
    assert torch.ones(1).device.type == "cpu"
    barrier.wait()
    thread.join()
    assert found == {"start": "cpu", "inside": "meta"}


def test_the_default_device() -> None:
    torch.set_default_device("meta")
    try:
        assert torch.ones(1).is_meta
        with torch.device("cpu"):
            assert not torch.ones(1).is_meta
        assert torch.ones(1).is_meta
    finally:
        torch.set_default_device(None)
    assert not torch.ones(1).is_meta and torch.get_default_device().type == "cpu"


def test_contexts_do_not_move_what_exists() -> None:
    x = torch.ones(2)
    with torch.device("meta"):
        assert (x + 1).device.type == "cpu" and x.clone().device.type == "cpu"
        assert torch.as_tensor(x).device.type in ("cpu", "meta")


def test_meta_has_geometry_without_memory() -> None:
    x = torch.empty(10**6, 10**6, device="meta")
    assert x.shape == (10**6, 10**6) and x.t().stride() == (1, 10**6)
    y = (x @ x[:, :2] + 1).sum(0)
    assert y.shape == (2,) and y.is_meta
    assert x.numel() == 10**12 and x.is_contiguous() and x.data_ptr() == 0
    assert repr(x) == "tensor(..., device='meta', size=(1000000, 1000000))"


def test_meta_has_gradients() -> None:
    x = torch.ones(2, 3, device="meta", requires_grad=True)
    (x * 2).exp().sum().backward()
    assert x.grad.is_meta and x.grad.shape == (2, 3)


def test_meta_views_share_their_storage() -> None:
    x = torch.empty(2, 3, device="meta")
    y = x[1]
    assert y._base is x and y.storage_offset() == 3
    y.fill_(1)
    assert x._version == 1


def test_to_and_from_meta() -> None:
    x = torch.ones(2)
    assert x.to("meta").is_meta and x.to(device="meta", dtype=torch.float64).dtype is torch.float64
    assert torch.empty_like(x, device="meta").is_meta
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        x.to("meta").to("cpu")
    y = torch.zeros(2, device="meta")
    y.copy_(x)
    assert y.is_meta


def test_an_absent_device_says_so() -> None:
    with pytest.raises((RuntimeError, AssertionError)):
        torch.ones(1, device="cuda")
    with pytest.raises((RuntimeError, AssertionError)):
        torch.ones(1).to("cuda")


def test_pickled_devices() -> None:
    assert pickle.loads(pickle.dumps(torch.device("cpu"))) == torch.device("cpu")
