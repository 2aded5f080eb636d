"""Identity of storages, exchange by DLPack, masks of sparse tensors, scalers that optimizers read: as PyTorch has them."""

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import return_types
from mindtorch_v2._torch_proxy.stubs import cpu_amp, internals, prims, products
from mindtorch_v2.nn import functional as F
from mindtorch_v2.utils.dlpack import from_dlpack, to_dlpack


def test_a_storage_that_is_held_is_given_again():
    a = torch.ones(3)
    storage = a.untyped_storage()
    storage.mark = 3
    assert a.untyped_storage() is storage and a[1:].untyped_storage().mark == 3
    assert torch.empty(0).set_(storage, 0, (2,)).untyped_storage() is storage
    assert torch.ones(3).untyped_storage() is not storage
    own = torch.UntypedStorage(4).fill_(0)
    shared = torch.tensor(own, dtype=torch.uint8)
    assert shared.untyped_storage() is own
    shared[0] = 7
    assert own[0] == 7 and torch.tensor(own).dtype is torch.int64
    with pytest.raises(RuntimeError, match="Cannot directly construct StorageBase"):
        torch.storage.StorageBase()


def test_what_typed_storages_refuse():
    named, own = torch.FloatStorage, torch.FloatStorage(3)
    for call, kind, words in (
        (lambda: named(device="cpu"), RuntimeError, "Keyword argument 'device' cannot be specified"),
        (lambda: named(other=1), TypeError, "got an unexpected keyword argument 'other'"),
        (lambda: named("words"), TypeError, "invalid data type 'str'"),
        (lambda: named(0, wrap_storage=own.untyped()), RuntimeError, "<class 'torch.FloatStorage'>.__new__"),
        (
            lambda: torch.TypedStorage(wrap_storage=own.untyped(), dtype=0),
            TypeError,
            "must be torch.dtype, not <class 'int'>",
        ),
    ):
        with pytest.raises(kind, match=words):
            call()
    assert named._dtype is torch.float32 and own._size() == 3
    assert named in torch._storage_classes and torch.FloatTensor in torch._tensor_classes


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2])
def test_types_that_numpy_does_not_exchange(kind):
    x = torch.tensor([[1.0, 2.0], [0.5, 4.0]]).to(kind)
    for y in (from_dlpack(to_dlpack(x)), from_dlpack(x.t()).t(), torch.from_dlpack(x)):
        assert y.dtype is kind and y.data_ptr() == x.data_ptr() and y.float().tolist() == [[1.0, 2.0], [0.5, 4.0]]
    assert from_dlpack(np.arange(3)).tolist() == np.from_dlpack(torch.arange(3)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_masked_reductions_of_sparse_tensors(layout):
    values = torch.tensor([[1.0, 0, 3], [0, -5, 0]])
    x, mask = values.to_sparse(layout=layout), values.bool().to_sparse(layout=layout)
    for name, wanted in (("amax", [[3.0], [-5.0]]), ("sum", [[4.0], [-5.0]]), ("prod", [[3.0], [-5.0]])):
        found = getattr(torch.masked, name)(x, 1, keepdim=True, mask=mask)
        assert found.layout is layout and found.to_dense().tolist() == wanted
    kept = torch.masked._where(torch.ones(2, 3).to_sparse(layout=layout).bool(), x, torch.tensor(9.0))
    assert kept.layout is layout and kept.values().numel() == 6 and kept.to_dense().equal(values)


def test_integers_take_no_fractions_of_sparse_tensors():
    whole, sparse = torch.ones(2, 2, dtype=torch.int64), torch.eye(2).to_sparse()
    for name in ("add_", "sub_", "mul_"):
        with pytest.raises(RuntimeError, match="Can't convert result type Float to output Long"):
            getattr(whole, name)(sparse)


def test_inputs_of_joins_and_of_frozen_layers_may_change():
    x, frozen = torch.ones(2, 3, requires_grad=True), torch.ones(2, 3)
    for join in (torch.cat, torch.stack):
        x.grad, a = None, x * 1
        joined = join([a, frozen])
        a.mul_(3)
        joined.sum().backward()
        assert x.grad.tolist() == [[1.0] * 3] * 2
    x.grad, a = None, x * 1
    y = F.linear(a, frozen)
    a.mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [[2.0] * 3] * 2
    weight = torch.ones(2, 3, requires_grad=True)
    a = x * 1
    y = F.linear(a, weight)
    a.mul_(3)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize(
    "shapes", [((3,), (2, 3)), ((4, 3), (2, 3)), ((2, 4, 3), (2, 3)), ((4, 3), (3,)), ((3,), (3,))]
)
def test_gradients_of_linear(shapes):
    x, w = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)
    b = torch.randn(2, dtype=torch.float64, requires_grad=True) if w.dim() == 2 else None
    assert torch.autograd.gradcheck(F.linear, (x, w, b))
    assert torch.autograd.gradgradcheck(F.linear, (x, w, b))


class Reader(torch.optim.Optimizer):
    """An optimizer that unscales gradients itself."""

    def __init__(self, params):
        super().__init__(params, {})
        self._step_supports_amp_scaling = True
        self.seen = None

    def step(self, closure=None):
        self.seen = self.grad_scale.item(), self.found_inf.item()


class Asker(Reader):
    def step(self, closure=None, *, grad_scaler=None):
        self.seen = grad_scaler


def test_scalers_hand_over_to_optimizers():
    x = torch.ones(2, requires_grad=True)
    scaler = torch.GradScaler("cpu", init_scale=2.0)
    scaler.scale(x.sum()).backward()
    reader, asker = Reader([x]), Asker([x])
    scaler.step(reader)
    assert reader.seen == (2.0, 0.0) and not hasattr(reader, "grad_scale") and x.grad.tolist() == [2.0, 2.0]
    with pytest.warns(FutureWarning, match="going to stop passing itself"):
        scaler.step(asker)
    assert asker.seen is scaler
    with pytest.warns(FutureWarning, match=r"`torch.cpu.amp.GradScaler\(args...\)` is deprecated."):
        assert cpu_amp.GradScaler(init_scale=2.0).get_scale() == 2.0
    with pytest.warns(FutureWarning, match="torch.cpu.amp.autocast"):
        lower = cpu_amp.autocast()
    with lower:
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.bfloat16


def test_names():
    a = torch.arange(4.0).reshape(2, 2)
    assert products.qform(a, a).tolist() == [[12.0, 22.0], [20.0, 36.0]] and products.matmul(None, a) is a
    assert prims.corresponding_complex_dtype(torch.float64) is torch.complex128
    assert prims.dtype_to_type(torch.int8) is int
    assert internals._infer_size(torch.Size([2, 1]), torch.Size([3])) == (2, 3)
    assert torch._debug_has_internal_overlap(a.expand(3, 2, 2)) == 1 and torch._debug_has_internal_overlap(a.t()) == 0
    assert torch._debug_has_internal_overlap(torch.ones(4, 4)[::2, ::2]) == 2
    assert return_types.max_out([a, a]).indices is a
