"""Devices: names, contexts nested and per thread, defaults, the meta device."""

from __future__ import annotations

import copy
import pickle
import threading
import warnings

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _state
from mindtorch_v2._dispatch import ops
from mindtorch_v2._dispatch.operator import Operator
from mindtorch_v2._generated.tables import operators


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


def test_a_default_that_a_block_sets_ends_with_it() -> None:
    def here() -> tuple:
        return torch.ones(1).device.type, torch.get_default_device().type

    with torch.device("meta"):
        torch.set_default_device("cpu")
        assert here() == ("cpu", "cpu")
        torch.set_default_device(None)
        assert here() == ("meta", "meta")
        torch.set_default_device("cpu")
        with torch.device("meta"):
            assert here() == ("meta", "meta")
        assert here() == ("cpu", "cpu")
    assert here() == ("cpu", "cpu")
    torch.set_default_device("meta")
    try:
        with torch.device("cpu"):
            assert here() == ("cpu", "cpu")
            torch.set_default_device(None)
            assert here() == ("cpu", "cpu")
        assert here() == ("meta", "meta")
    finally:
        torch.set_default_device(None)
    assert here() == ("cpu", "cpu") and _state.PLAIN  # short cuts are open again


def test_a_default_that_fails_leaves_the_old_one() -> None:
    with pytest.raises(RuntimeError, match="device type at start of device string: nonsense"):
        torch.set_default_device("nonsense")
    assert torch.get_default_device().type == "cpu"


def test_a_device_is_a_decorator() -> None:
    @torch.device("meta")
    def make(n: int, *, fail: bool = False) -> torch.Tensor:
        """Documentation."""
        if fail:
            raise ValueError
        return torch.ones(n)

    assert make(2).is_meta and make.__name__ == "make" and make.__doc__ == "Documentation."
    with pytest.raises(ValueError):
        make(1, fail=True)
    assert not torch.ones(1).is_meta
    with pytest.raises(RuntimeError, match="Cannot decorate classes"):
        torch.device("meta")(type("Some", (), {}))


def test_a_decorated_generator_leaves_the_context_while_it_waits() -> None:
    closed = []

    @torch.device("meta")
    def steps():
        try:
            received = yield torch.ones(1)
            try:
                yield torch.ones(received)
            except KeyError:
                yield torch.ones(7)
            return "end"
        finally:
            closed.append(torch.ones(1).device.type)

    running = steps()
    assert next(running).is_meta and not torch.ones(1).is_meta
    assert running.send(3).shape == (3,) and not torch.ones(1).is_meta
    assert running.throw(KeyError()).shape == (7,)
    with pytest.raises(StopIteration) as stop:
        next(running)
    assert stop.value.value == "end" and closed == ["meta"]
    running = steps()
    next(running)
    running.close()
    assert closed == ["meta"] * 2 and not torch.ones(1).is_meta


def test_contexts_do_not_move_what_exists() -> None:
    x = torch.ones(2)
    with torch.device("meta"):
        assert (x + 1).device.type == "cpu" and x.clone().device.type == "cpu"
        assert x[[0, 1]].device.type == x[np.array([0])].device.type == "cpu"  # indices stay beside their tensor
        packed = torch.nn.utils.rnn.pack_padded_sequence(torch.ones(2, 2, 1, device="cpu"), [2, 1])
        assert {t.device.type for t in packed[:2]} == {"cpu"}


def test_contexts_move_data_that_is_given() -> None:
    x, array = torch.ones(2), np.ones(2)
    with torch.device("meta"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of tensor(x)
        made = [torch.tensor(x), torch.as_tensor(x), torch.asarray(x), torch.tensor(array), torch.as_tensor(array)]
        made += [torch.asarray(array), torch.tensor([1]), torch.as_tensor([1]), torch.asarray([1]), torch.tensor(1.0)]
        assert {t.device.type for t in made} == {"meta"}
        assert torch.as_tensor(x, device="cpu") is x and torch.tensor(array, device="cpu").device.type == "cpu"
        assert torch.from_numpy(array).device.type == "cpu"  # these are about memory that there is
        assert torch.frombuffer(bytearray(8), dtype=torch.float32).device.type == "cpu"
    assert torch.asarray(array).data_ptr() == array.ctypes.data


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.Tensor(2, 3),
        lambda: torch.Tensor([1, 2]),
        lambda: torch.Tensor(),
        lambda: torch.FloatTensor(2),
        lambda: torch.LongTensor([1]),
        lambda: torch.nn.Parameter(),
        lambda: torch.nn.Parameter(torch.ones(2)),
        lambda: torch.nn.Buffer(torch.ones(2)),
        lambda: torch.nn.BatchNorm1d(2).running_mean,
        lambda: torch.nn.MultiheadAttention(4, 2).in_proj_weight,
        lambda: torch.nn.LSTM(2, 3).weight_ih_l0,
        lambda: torch.nn.Transformer.generate_square_subsequent_mask(3),
        lambda: torch.rand(2, generator=torch.Generator()),
        lambda: torch.randperm(3, generator=torch.Generator()),
        lambda: torch.meshgrid(torch.arange(2), torch.arange(3))[0],
    ],
)
def test_what_makes_tensors_follows_the_context(make) -> None:
    with torch.device("meta"):
        assert make().is_meta
    assert not make().is_meta


def _sample(param) -> object:
    """A value for a parameter of a factory that has no default."""
    if param.type == "Generator":
        return torch.Generator()
    if param.type == "Tensor":
        return torch.tensor(2.0, device="cpu")
    if param.is_list:
        return [1, 0] if param.name == "physical_layout" else [3, 1] if param.name == "stride" else [2, 3]
    if param.type == "bool":
        return True
    return {"low": 1, "start": 1}.get(param.name, 4)


def _fresh(row: Operator) -> bool:
    """Whether an operator makes tensors from nothing: it takes a device, no file, and no tensor that the result would follow, as sparse ones do."""
    return "device" in (names := {p.name for p in row.params}) and not (row.tensors or "filename" in names)


FACTORIES = {row.full_name: row for row in operators() if _fresh(row)}


@pytest.mark.parametrize("name", FACTORIES)
def test_every_factory_of_the_schema_heeds_the_device(name: str) -> None:
    row = FACTORIES[name]
    required = [p for p in row.params if p.required]
    arguments = {p.name: _sample(p) for p in required}
    positional = [arguments[p.name] for p in required if not p.keyword]
    keywords = {p.name: arguments[p.name] for p in required if p.keyword}
    function = row.function or getattr(ops, row.name)

    def make(**more: object) -> torch.Tensor:
        return function(*positional, **keywords, **more)

    assert make().device.type == "cpu" and make(device="meta").device.type == "meta"
    with torch.device("meta"):
        made = make()
        assert made.is_meta and make(device="cpu").device.type == "cpu"
        with torch.device("cpu"):
            assert make(device=None).device.type == "cpu"
    torch.set_default_device("meta")
    try:
        assert make().is_meta
    finally:
        torch.set_default_device(None)
    plain = make()
    assert (made.shape, made.dtype, made.stride()) == (plain.shape, plain.dtype, plain.stride())
    if "out" not in row.variants:
        return
    assert make(
        out=torch.empty(0, dtype=plain.dtype, device="meta")
    ).is_meta  # where the buffer is, unless something else is asked for
    buffer = torch.empty(0, dtype=plain.dtype)
    for refused in (lambda: make(out=buffer, device="meta"), torch.device("meta")(lambda: make(out=buffer))):
        with pytest.raises(RuntimeError, match=r"device type meta does not match device type of out parameter \(cpu\)"):
            refused()


def test_the_schema_has_factories() -> None:
    assert {"zeros", "eye.m", "fft_fftfreq", "normal.float_float", "randperm", "range", "hann_window"} <= set(FACTORIES)


@pytest.mark.parametrize(
    "name", ["zeros_like", "rand_like", "full_like", "randint_like", "new_zeros", "new_tensor", "new"]
)
def test_what_follows_a_tensor_stays_with_it(name: str) -> None:
    x = torch.ones(2)
    more = {"full_like": (1,), "randint_like": (5,), "new_zeros": (3,), "new_tensor": ([1],), "new": (3,)}.get(name, ())
    with torch.device("meta"):
        made = getattr(x, name)(*more) if name.startswith("new") else getattr(torch, name)(x, *more)
        assert made.device.type == "cpu"
    moved = getattr(x.to("meta"), name)(*more) if name.startswith("new") else getattr(torch, name)(x.to("meta"), *more)
    assert moved.is_meta


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


def test_permuted_tensors_are_no_views() -> None:
    for where in ("cpu", "meta"):
        x = torch.empty_permuted((2, 3, 4), (2, 0, 1), device=where)
        assert (
            x.stride() == (3, 1, 6)
            and x._base is None
            and torch.empty_permuted((2, 0, 4), (2, 0, 1)).stride() == (1, 1, 2)
        )
