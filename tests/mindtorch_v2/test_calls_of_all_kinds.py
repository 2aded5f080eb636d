"""Arguments, buffers, warnings and determinism at the edges of calls, as recorded from PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils import deterministic, dlpack

T = torch.tensor


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: x.unflatten("A", (1, 1)), "unflatten(): argument 'dim' (position 1) must be int, not str"),
        (lambda x: x.mul_("a"), "mul_(): argument 'other' (position 1) must be Tensor, not str"),
        (lambda x: x.tril("a"), "tril(): argument 'diagonal' (position 1) must be int, not str"),
        (lambda x: x.tril_("a"), "tril_(): argument 'diagonal' (position 1) must be int, not str"),
        (lambda x: torch.tril(x, "a"), "tril(): argument 'diagonal' (position 2) must be int, not str"),
        (lambda x: x.gather(0, 1), "gather(): argument 'index' (position 2) must be Tensor, not int"),
        (lambda x: x.scatter_add_(0, 1, x), "scatter_add_(): argument 'index' (position 2) must be Tensor, not int"),
        (lambda x: x.addmm_(1, 2), "addmm_(): argument 'mat1' (position 1) must be Tensor, not int"),
        (lambda x: x.uniform_("a"), "uniform_(): argument 'from' (position 1) must be float, not str"),
        (lambda x: torch.relu_("a"), "relu_(): argument 'input' (position 1) must be Tensor, not str"),
        (
            lambda x: torch.isclose(x, x, 1.0, T(1.0, requires_grad=True)),
            "isclose(): argument 'atol' (position 4) must be float, not Tensor",
        ),
        (
            lambda x: torch.where(x > 0, 1.0, 2.0, out=torch.empty(1)),
            "where(): argument 'input' (position 2) must be Tensor, not float",
        ),
    ],
)
def test_errors_name_the_call_and_the_place(call, words):
    with pytest.raises(TypeError) as error:
        call(torch.ones(2, 2))
    assert str(error.value) == words


def test_numbers_stand_for_tensors():
    assert T([1.0, 2.0]).copy_(3.0).tolist() == [3.0, 3.0]
    assert T([1, 2]).copy_(True).tolist() == [1, 1]
    assert torch.ones((np.array(3), np.int64(4))).shape == (3, 4)
    assert torch.amax(T([[1.0, 2.0]]), None).item() == 2.0
    assert torch.ones(3).roll(1, None).tolist() == [1.0, 1.0, 1.0]
    assert T(((7, np.array(5)), (np.array(9), 5.0))).tolist() == [[7.0, 5.0], [9.0, 5.0]]


def test_sizes_leave_additions_to_others():
    class Other:
        def __radd__(self, size):
            return tuple(size)

    assert torch.Size([1]) + Other() == (1,)
    with pytest.raises(TypeError, match="can only concatenate tuple"):
        torch.Size([1]) + [2]


def test_numbers_of_tensors_with_a_history_warn():
    x = T(2.0, requires_grad=True)
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        for convert in (float, int, complex):
            with pytest.warns(UserWarning, match="Converting a tensor with requires_grad=True to a scalar may lead to"):
                assert convert(x) == 2
        with pytest.warns(UserWarning, match="set_default_tensor_type\\(\\) is deprecated as of PyTorch 2.1"):
            torch.set_default_tensor_type(torch.FloatTensor)
        with pytest.warns(UserWarning, match="Creating a tensor from a list of numpy.ndarrays is extremely slow"):
            T([np.zeros(2), np.ones(2)])
    finally:
        torch.set_warn_always(before)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: T([1j]).abs_(), "In-place abs is not supported for complex tensors."),
        (
            lambda: torch.isposinf(T([1.0]), out=torch.empty(1)),
            "isposinf does not support non-boolean outputs.",
        ),
        (
            lambda: torch.ones(2, 3).diff(dim=0, prepend=T([[0, 1]])),
            "diff expects the shape of tensor to prepend or append to match that of input except along the differencing dimension; "
            "input.size(1) = 3, but got tensor.size(1) = 2",
        ),
        (
            lambda: T([1.0]).set_(T([1, 2])),
            "Could not set tensor of type long int to a tensor of type float",
        ),
        (
            lambda: T([1.0]).set_(T([1, 2]).storage()),
            "Expected a Storage of type float or an UntypedStorage, but got type Long for argument 1 'storage'",
        ),
        (
            lambda: T(T([1, 2], dtype=torch.int32).storage(), dtype=torch.float32),
            "Expected a Storage of type Float or an UntypedStorage, but got Int",
        ),
        (lambda: torch.empty(2, device="meta").untyped_storage()._share_fd_cpu_(), "_share_fd_: only available on CPU"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(RuntimeError) as error:
        call()
    assert str(error.value) == words


def test_a_loss_of_a_number_is_a_value_error():
    with pytest.raises(ValueError, match="^Expected 1 or more dimensions \\(got 0\\)$"):
        torch.nn.functional.nll_loss(T(1.0), T(1))


def test_buffers():
    made = torch.sort(T([2.0, 1.0]), out=(torch.empty(2), torch.empty(2, dtype=torch.int64)))
    assert type(made).__name__ == "sort_out" and made.values.tolist() == [1.0, 2.0]
    drawn = torch.bernoulli(torch.ones(3), out=torch.zeros(3, dtype=torch.int64))
    assert drawn.tolist() == [1, 1, 1]
    assert torch.randperm(1, out=torch.empty(1)).dtype is torch.float32
    assert torch.randint(1, 2, (2,), out=torch.empty(2)).tolist() == [1.0, 1.0]


def test_storages_make_tensors_and_tell_their_classes():
    x = T([1, 2], dtype=torch.int32)
    assert T(x.untyped_storage(), dtype=torch.int32).tolist() == [1, 2]
    assert T(x.untyped_storage(), dtype=torch.uint8).tolist() == [1, 0, 0, 0, 2, 0, 0, 0]
    assert T(x.storage()).dtype is torch.int32
    assert x.storage_type() is torch.IntStorage


def test_classes():
    with pytest.raises(TypeError, match="type 'torch.FloatTensor' is not an acceptable base type"):
        type("Mine", (torch.FloatTensor,), {})

    class Marked(torch.Tensor):
        @staticmethod
        def __new__(cls, x, mark):
            made = super().__new__(cls, x)
            made.mark = mark
            return made

    made = Marked(torch.ones(2), "seen")
    assert type(made) is Marked and made.mark == "seen" and made.tolist() == [1.0, 1.0]


def test_a_capsule_shares_its_memory():
    x = T([1.0, 2.0])
    y = dlpack.from_dlpack(dlpack.to_dlpack(x))
    y[0] = 7
    assert x.tolist() == [7.0, 2.0] and y.data_ptr() == x.data_ptr()


@pytest.fixture
def determinism():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def test_fresh_memory_is_filled(determinism):
    for made in (
        torch.empty(3),
        torch.empty(3, out=torch.zeros(1)),
        torch.empty_like(torch.zeros(3)),
        torch.empty_strided((3,), (2,)),
        torch.empty_permuted((1, 3), (1, 0)),
        torch.zeros(1).new_empty(3),
        torch.empty(2, dtype=torch.complex64),
    ):
        assert made.isnan().all()
    assert torch.empty(2, dtype=torch.uint16).tolist() == [65535, 65535]
    assert torch.empty(2, dtype=torch.bool).tolist() == [True, True]
    deterministic.fill_uninitialized_memory = False
    try:
        assert not torch.ones(3).isnan().any() and torch.empty(2).shape == (2,)
    finally:
        deterministic.fill_uninitialized_memory = True


def test_memory_that_a_resize_adds_is_filled(determinism):
    assert torch.zeros(2, dtype=torch.uint16).resize_(4).tolist() == [0, 0, 65535, 65535]
    grown = torch.zeros(2).resize_(2, 2)
    assert grown[0].tolist() == [0, 0] and grown[1].isnan().all()
    grown = torch.empty_strided((2, 2), (0, 1)).fill_(1).resize_(3)  # two elements in memory
    assert grown[:2].tolist() == [1, 1] and grown[2].isnan()


def test_a_resize_keeps_the_memory_not_the_order_of_elements():
    assert torch.arange(6.0).reshape(2, 3).t().resize_(8)[:6].tolist() == [0, 1, 2, 3, 4, 5]
    part = torch.arange(6.0)[2:4].resize_(2, 4)
    assert part.storage_offset() == 2 and part.untyped_storage().nbytes() == 40
    assert part[0].tolist() == [2, 3, 4, 5]


def test_what_pytorch_has_no_deterministic_algorithm_for(determinism):
    pooled, places = torch.nn.functional.max_pool2d(torch.ones(1, 1, 2, 2), 2, return_indices=True)
    for call, name in (
        (lambda: torch.ones(3).put_(T([0]), T([1.0])), "put_"),
        (lambda: torch.nn.functional.max_unpool2d(pooled, places, 2), "max_unpooling2d_forward_out"),
    ):
        with pytest.raises(RuntimeError, match=f"^{name} does not have a deterministic implementation, but you set"):
            call()
        torch.use_deterministic_algorithms(True, warn_only=True)
        with pytest.warns(UserWarning, match=f"^{name} does not have a deterministic implementation"):
            call()
        torch.use_deterministic_algorithms(True)
    torch.ones(3).put_(T([0, 0]), T([1.0, 2.0]), accumulate=True)


def test_factors_before_tensors():
    a, b = torch.ones(2, 2), torch.ones(2, 2, 2)
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        for call, name, value in (
            (lambda: torch.addcmul(a, 2, a, a), "addcmul", 3.0),
            (lambda: torch.addcdiv(a, 2, a, a, out=torch.empty(2, 2)), "addcdiv", 3.0),
            (lambda: torch.addmm(2, a, 3, a, a), "addmm", 8.0),
            (lambda: torch.addmm(2, a, a, a), "addmm", 4.0),
            (lambda: a.clone().addmm_(2, 3, a, a), "addmm", 8.0),
            (lambda: b.clone().baddbmm_(1, b, b), "baddbmm", 3.0),
            (lambda: torch.addbmm(2, a, b, b), "addbmm", 6.0),
            (lambda: torch.addmv(2, a[0], 3, a, a[0]), "addmv", 8.0),
            (lambda: torch.addr(2, a, 3, a[0], a[0]), "addr", 5.0),
            (lambda: torch.add(a, 2, a), "add", 3.0),
            (lambda: a.clone().add_(2, a), "add", 3.0),
            (lambda: a.sub(2, a), "sub", -1.0),
        ):
            with pytest.warns(UserWarning, match=f"^This overload of {name}_? is deprecated:"):
                made = call()
            assert made.eq(value).all()
    finally:
        torch.set_warn_always(before)
    assert torch.addcmul(a, a, a, value=2).eq(3).all() and torch.addmm(a, a, a, beta=2, alpha=3).eq(8).all()
    for wrong in (
        lambda: torch.addcmul(a, "x", a, a),
        lambda: torch.addmm(1, 2, 3),
        lambda: torch.addmm(a, a, a, a, a),
    ):
        with pytest.raises(TypeError):
            wrong()
