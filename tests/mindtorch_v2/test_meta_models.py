"""Models on the meta device: storages, copies, files, modules, gradients, optimizers, and transformers' models."""

from __future__ import annotations

import copy
import importlib.util
import io
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn

HERE = Path(__file__).resolve().parent
LONG = torch.int64


def m(*shape: int, **options: object) -> torch.Tensor:
    """A tensor on the meta device."""
    return torch.empty(shape, device="meta", **options)


# Storages, data, copies


def test_storages_and_data_keep_to_their_device() -> None:
    x, y = m(3), torch.ones(3)
    for a, b in ((x, y), (y, x)):
        with pytest.raises(RuntimeError, match=f'on device "{a.device}" to a storage on different device "{b.device}"'):
            a.set_(b)
        with pytest.raises(RuntimeError, match="have incompatible tensor type"):
            a.data = b
    source = m(4)
    assert (
        x.set_(source) is x
        and x.is_set_to(source)
        and x.set_(source.untyped_storage(), 1, (2,), (1,)).storage_offset() == 1
    )
    p = nn.Parameter(m(3))
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        p.set_(m(4))
    with torch.no_grad():
        p.set_(m(4))
    p.data = m(5)
    assert p.shape == (5,) and p.requires_grad and p.is_leaf
    with pytest.raises(RuntimeError, match="assign a gradient"):
        p.grad = m(6)
    p.grad = m(5)


def test_there_is_one_meta_device() -> None:
    x = m(3)
    assert x.to("meta:0") is x and torch.empty(3, device="meta:1").device == torch.device("meta")
    assert (torch.empty(3, device="meta:0") + x).is_meta and x.to("meta", torch.float64).dtype is torch.float64


def test_copies_keep_what_is_shared() -> None:
    x = m(4)
    a, b, c = copy.deepcopy([x, x, x[1:]])
    assert (
        a is b and a is not x and a.untyped_storage()._cdata == c.untyped_storage()._cdata and c.storage_offset() == 1
    )
    assert copy.deepcopy(nn.Parameter(m(3))).requires_grad
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(m(3, requires_grad=True) * 2)
    net = tied()
    twin = copy.deepcopy(net)
    assert twin.a.weight is twin.b.weight and twin.a.weight is not net.a.weight and twin.a.weight.is_meta


def saved(value: object) -> io.BytesIO:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    return buffer


def test_saving_and_loading() -> None:
    x = torch.load(saved(torch.ones(2, 3).t()), map_location="meta")
    assert x.is_meta and x.shape == (3, 2) and x.stride() == (1, 3)
    for where in (torch.device("meta"), {"cpu": "meta"}):
        assert torch.load(saved(torch.ones(3)), map_location=where).is_meta
    found = torch.load(saved({"a": torch.ones(3), "b": nn.Parameter(torch.ones(2))}), map_location="meta")
    assert found["a"].is_meta and found["b"].is_meta and isinstance(found["b"], nn.Parameter)
    for where in (None, "cpu"):
        again = torch.load(saved(nn.Parameter(m(3, 2))), map_location=where)
        assert again.is_meta and again.shape == (3, 2) and again.requires_grad
    kept = saved(torch.ones(3))
    with torch.device("meta"):
        assert torch.load(kept).device.type == "cpu"
    state = torch.load(saved(nn.Linear(2, 3, device="meta").state_dict()))
    assert {k: (v.shape, v.is_meta) for k, v in state.items()} == {"weight": ((3, 2), True), "bias": ((3,), True)}
    assert pickle.loads(pickle.dumps(m(3, dtype=torch.float16))).dtype is torch.float16


# Modules


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(2, 3), nn.Linear(2, 3)
        self.b.weight = self.a.weight
        self.norm = nn.BatchNorm1d(3)
        self.own = nn.Parameter(torch.ones(2))
        self.register_buffer("seen", torch.ones(2), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.a(x) + self.b(x))


def tied(where: str = "meta") -> Tied:
    with torch.device(where):
        return Tied()


def devices(module: nn.Module) -> set[str]:
    return {x.device.type for x in (*module.parameters(), *module.buffers())}


def test_to_empty() -> None:
    net = tied()
    assert devices(net) == {"meta"} and net.to_empty(device="meta") is net and devices(net) == {"meta"}
    net.to_empty(device="cpu", recurse=False)
    assert (
        net.own.device.type == net.seen.device.type == "cpu" and net.a.weight.is_meta and net.norm.running_mean.is_meta
    )
    assert (
        devices(net.to_empty(device="cpu")) == {"cpu"} and net.a.weight.requires_grad and net.a.weight.shape == (3, 2)
    )


def test_to_and_from_meta() -> None:
    net = tied("cpu")
    assert devices(net.to("meta")) == {"meta"} and net.double().a.weight.dtype is torch.float64
    said = (
        "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving module "
        "from meta to a different device."
    )
    for call in (lambda: net.to("cpu"), lambda: net.to(device="cpu"), lambda: net.to(torch.ones(1))):
        with pytest.raises(NotImplementedError) as caught:
            call()
        assert str(caught.value) == said


def test_loading_into_meta() -> None:
    state = {k: torch.full_like(v, 2, device="cpu") for k, v in tied().state_dict().items()}
    net = tied()
    with pytest.warns(
        UserWarning,
        match="for a.weight: copying from a non-meta parameter in the checkpoint to a meta parameter in the current",
    ):
        net.load_state_dict(state)
    assert net.a.weight.is_meta
    net.load_state_dict(state, assign=True)
    assert {p.device.type for p in net.parameters()} == {"cpu"} and isinstance(net.a.weight, nn.Parameter)
    assert net.a.bias.tolist() == [2.0] * 3 and net.norm.running_mean.tolist() == [2.0] * 3
    with pytest.raises(
        RuntimeError, match=r"size mismatch for weight: copying a param with shape torch.Size\(\[3, 3\]\)"
    ):
        nn.Linear(2, 3, device="meta").load_state_dict({"weight": m(3, 3), "bias": m(3)})
    with pytest.raises(RuntimeError, match="Cannot copy out of meta tensor"):
        nn.Linear(2, 3).load_state_dict(nn.Linear(2, 3, device="meta").state_dict())
    nn.Linear(2, 3, device="meta").load_state_dict(nn.Linear(2, 3, device="meta").state_dict())


def test_skip_init() -> None:
    assert nn.utils.skip_init(nn.Linear, 2, 3).weight.device.type == "cpu"
    assert nn.utils.skip_init(nn.Linear, 2, 3, device="meta", dtype=torch.float64).weight.dtype is torch.float64


@pytest.mark.parametrize(
    "call",
    [
        lambda: nn.MultiheadAttention(4, 2)(m(3, 4), m(3, 4), m(3, 4)),
        lambda: nn.LSTM(3, 4, bidirectional=True)(m(5, 2, 3)),
        lambda: nn.GRU(3, 4)(m(5, 2, 3)),
        lambda: nn.LSTMCell(3, 4)(m(2, 3)),
        lambda: nn.TransformerEncoderLayer(4, 2, 8).eval()(m(3, 2, 4)),
        lambda: nn.EmbeddingBag(3, 4)(m(2, 2, dtype=LONG)),
        lambda: nn.EmbeddingBag(3, 4, mode="max")(m(5, dtype=LONG), m(2, dtype=LONG)),
        lambda: nn.Embedding(3, 4, padding_idx=0, max_norm=1.0)(m(2, dtype=LONG)),
        lambda: nn.InstanceNorm2d(3, affine=True)(m(2, 3, 4, 4)),
        lambda: nn.ConvTranspose2d(3, 4, 3)(m(2, 3, 4, 4)),
        lambda: nn.Bilinear(2, 3, 4)(m(5, 2), m(5, 3)),
        lambda: nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))(m(2, 2)),
        lambda: nn.init.trunc_normal_(nn.Parameter(m(3, 3))),
        lambda: nn.init.orthogonal_(nn.Parameter(m(3, 3))),
        lambda: nn.init.kaiming_normal_(nn.Parameter(m(3, 3))),
    ],
)
def test_modules_run(call: Callable) -> None:
    with torch.device("meta"):
        found = call()
    first = found[0] if isinstance(found, tuple) else found
    assert first.is_meta and first.requires_grad


# Training


def test_gradients() -> None:
    net, hooks = tied(), []
    net.a.weight.register_hook(lambda g: hooks.append(g.shape))
    net.a.register_forward_hook(lambda module, args, out: hooks.append(out.shape))
    net.a.register_full_backward_hook(lambda module, before, after: hooks.append(after[0].shape))
    net(m(4, 2)).sum().backward()
    assert all(p.grad.is_meta and p.grad.shape == p.shape for name, p in net.named_parameters() if name != "own")
    assert sorted(map(len, hooks)) == [2, 2, 2] and net.norm.num_batches_tracked.is_meta and net.own.grad is None
    x = m(3, requires_grad=True)
    (first,) = torch.autograd.grad((x * x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.is_meta and second.shape == (3,)
    with pytest.raises(RuntimeError, match="invalid gradient at index 0 - expected device meta but got cpu"):
        (x * 2).backward(torch.ones(3))
    with pytest.raises(RuntimeError, match="Mismatch in shape: grad_output"):
        (x * 2).backward(m(4))
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.add_(1)


@pytest.mark.parametrize(
    "name", ["SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "Adadelta", "Adamax", "NAdam", "RAdam", "Rprop"]
)
def test_optimizers(name: str) -> None:
    p = nn.Parameter(m(3))
    p.grad = m(3)
    more = {"momentum": 0.9} if name == "SGD" else {}
    optimizer = getattr(torch.optim, name)([p], lr=0.1, **more)
    for _ in range(2):
        optimizer.step()
    state = optimizer.state[p]
    assert p._version >= 2 and all(
        v.is_meta for k, v in state.items() if isinstance(v, torch.Tensor) and v.shape == (3,)
    )
    assert nn.utils.clip_grad_norm_([p], 1.0).is_meta


def test_autocast_that_is_off_may_name_meta() -> None:
    with torch.autocast("meta", enabled=False):
        assert torch.mm(m(2, 2), m(2, 2)).dtype is torch.float32
    with pytest.raises(RuntimeError, match="unsupported scalarType"):
        torch.autocast("meta")


# transformers

SHAPES = {
    "bert": {"parameters": 38020, "logits": [2, 7, 100]},
    "albert": {"parameters": 19604, "logits": [2, 7, 100]},
    "gpt2": {"parameters": 61440, "logits": [2, 7, 100]},
    "llama": {"parameters": 24992, "logits": [2, 7, 100]},
    "t5": {"parameters": 44800, "logits": [2, 5, 100], "encoder_last_hidden_state": [2, 7, 32]},
    "llama-7b": {"parameters": 6738415616, "logits": [2, 7, 32000]},
    "llama-405b": {"parameters": 405853388800, "logits": [2, 7, 128256]},
}


@pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed beside the project"
)
def test_transformers_models_on_meta() -> None:
    """The small models' shapes are those of `programs/meta_models.py cpu` run with PyTorch 2.13.0 and transformers 4.57.6."""
    done = subprocess.run(
        [sys.executable, "-m", "mindtorch_v2", str(HERE / "programs" / "meta_models.py"), "meta"],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    for name, shapes in SHAPES.items():
        assert found[name] == shapes
        if not name.startswith("llama-"):
            assert found[f"{name}, trained"] == {"loss": [], **shapes}
    assert found["loading"].startswith("You are using `from_pretrained` with a meta device context manager")
