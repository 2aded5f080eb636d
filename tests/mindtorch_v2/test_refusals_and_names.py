"""What functions refuse, in PyTorch's words, and names that stand for operators; values and sentences are PyTorch's."""

import inspect
import re
import warnings

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _refs, nn
from mindtorch_v2._tensor import TensorBase
from mindtorch_v2.func import functional_call

F = nn.functional
A = torch.eye(3) + 1
INTS = torch.empty(0, dtype=torch.int32)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: torch.linalg.inv(A, out=INTS), "Expected out tensor to have dtype float, but got int instead"),
        (lambda: torch.linalg.svdvals(A, out=INTS), "Expected out tensor to have dtype float, but got int instead"),
        (lambda: torch.linalg.qr(A, out=(INTS, INTS)), "Expected out tensor to have dtype float, but got int instead"),
        (
            lambda: torch.linalg.eigvals(A, out=INTS),
            "torch.linalg.eigvals: Expected eigenvalues to be safely castable from ComplexFloat dtype, but got eigenvalues with dtype Int",
        ),
        (
            lambda: torch.linalg.eig(A, out=(INTS, INTS)),
            "torch.linalg.eig: Expected eigenvalues to be safely castable from ComplexFloat dtype, but got eigenvalues with dtype Int",
        ),
        (
            lambda: torch.linalg.matrix_rank(A, out=INTS.bool()),
            "torch.linalg.matrix_rank: Expected result to be safely castable from Long dtype, but got result with dtype Bool",
        ),
        (lambda: torch.linalg.norm(A, out=INTS), "linalg.norm expected out tensor dtype Float but got: Int"),
        (
            lambda: torch.linalg.matrix_norm(A, out=INTS.double()),
            "linalg.matrix_norm expected out tensor dtype Float but got: Double",
        ),
        (
            lambda: torch.linalg.multi_dot([A, A], out=INTS),
            "multi_dot(): expected out tensor to have dtype float but got int",
        ),
        (
            lambda: torch.cholesky_inverse(torch.stack([A, torch.zeros(3, 3)])).tolist(),
            "cholesky_inverse: (Batch element 1): The diagonal element 1 is zero, the inversion could not be completed because the input "
            "matrix is singular.",
        ),
        (lambda: torch.bucketize(A, A), "boundaries tensor must be 1 dimension, but got dim(2)"),
        (
            lambda: torch.histogram(A[0], A[0, :0]),
            "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in the bins tensor for dimension 0",
        ),
        (
            lambda: A.clone().index_put_((torch.ones(3, dtype=torch.uint8),), torch.tensor(1.0)),
            "masked_fill_ only supports boolean masks, but got mask with dtype unsigned char",
        ),
        (
            lambda: torch.Tensor(A, device="cpu"),
            "Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not supported.  Use torch.tensor(...) or "
            "torch.as_tensor(...) instead.",
        ),
        (
            lambda: A.new(A, device="cpu"),
            "Legacy tensor new of the form tensor.new(tensor, device=device) is not supported.  Use torch.as_tensor(...) instead.",
        ),
        (lambda: torch.TypedStorage(device="xla"), "torch.UntypedStorage(): Storage device not recognized: xla"),
        (lambda: TensorBase(), "Cannot directly construct TensorBase; subclass it and then construct that"),
        (lambda: type("Own", (TensorBase,), {}), "Cannot subclass _TensorBase directly"),
        (
            lambda: torch._amp_update_scale_(torch.ones(1), INTS, torch.zeros(1), 2.0, 0.5, 1),
            "growth_tracker must be a 1-element tensor.",
        ),
        (
            lambda: torch._weight_int8pack_mm(A, A, A[0]),
            "_weight_int8pack_mm_cpu : expect B to be int8 tensor.",
        ),
        (
            lambda: torch.linalg.cond(A, out=INTS),
            "linalg.cond: Expected result to be safely castable from Float dtype, but got result with dtype Int",
        ),
        (
            lambda: torch.linalg.matrix_power(A, 2, out=INTS),
            "matrix_power: Expected result to be safely castable from Float dtype, but got result with dtype Int",
        ),
        (
            lambda: torch.linalg.householder_product(A, A[0], out=INTS),
            "torch.linalg.householder_product: Expected result to be safely castable from Float dtype",
        ),
        (lambda: F.rrelu(A, float("inf"), 1), "rrelu: lower bound must be finite, got inf"),
        (
            lambda: F.ctc_loss(A.expand(4, 3, 3), torch.ones(3, 2, dtype=torch.int64), torch.ones(3), torch.ones(3)),
            "input_lengths must be integral",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises(RuntimeError, match=re.escape(message)):
        call()


def test_items_and_streams():
    x = torch.ones(3)
    with pytest.raises(TypeError, match="Tensor does not support deleting items"):
        del x[0]
    with pytest.raises(TypeError, match="stream must be ``int`` or ``none``"):
        x.__dlpack__(stream=object())
    with pytest.raises(AssertionError, match="stream should be None on cpu"):
        x.__dlpack__(stream=1)
    assert np.from_dlpack(x).tolist() == [1.0, 1.0, 1.0]


def test_values_may_have_leading_ones():
    x = torch.zeros(2, 3)
    x[[0, 1], [0, 1]] = torch.ones(1, 2)
    assert x.tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    x[True] = torch.full((1, 1, 2, 3), 2.0)
    assert x.tolist() == [[2.0] * 3] * 2
    x[torch.tensor([True, False])] = torch.full((1, 1, 3), 3.0)
    assert x[0].tolist() == [3.0] * 3


def test_means_of_channels_last_keep_their_layout():
    x = torch.arange(2 * 3 * 4.0).reshape(2, 3, 2, 2).to(memory_format=torch.channels_last)
    assert F.adaptive_avg_pool2d(x, 1).stride() == (3, 1, 3, 3)
    assert F.adaptive_avg_pool2d(x.contiguous(), 1).stride() == (3, 1, 1, 1)
    assert F.adaptive_avg_pool2d(x, 1).flatten().tolist() == x.mean((2, 3)).flatten().tolist()


def test_half_maxima_have_a_gradient():
    x = torch.arange(8.0).reshape(1, 1, 2, 2, 2).half().requires_grad_()
    F.max_pool3d(x, 2).sum().backward()
    assert x.grad.flatten().tolist() == [0.0] * 7 + [1.0]


def test_a_chain_of_one():
    assert torch.chain_matmul(A).tolist() == A.tolist()


# Bags


W = torch.arange(12.0).reshape(4, 3)
BAGS = (torch.tensor([0, 1, 3, 2, 1]), W, torch.tensor([0, 2]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: F.embedding_bag(*BAGS, padding_idx=4),
            r"padding_idx must be within the number of embeddings, -4 through 3, but got 4",
        ),
        (
            lambda: F.embedding_bag(torch.tensor([0, 4]), W, torch.tensor([0])),
            r"Index 1 of input takes value 4 which is not in the valid range \[0, 4\)",
        ),
        (
            lambda: F.embedding_bag(*BAGS, mode="sum", per_sample_weights=torch.ones(5, dtype=torch.float64)),
            "type torch.FloatTensor does not equal torch.DoubleTensor",
        ),
        (
            lambda: F.embedding_bag(BAGS[0], W, torch.tensor([0, 9])),
            "offsets.-1. can not be greater than input's length 5 but got offsets.-1. of 9",
        ),
        (lambda: F.embedding_bag(BAGS[0].float(), W, BAGS[2]), "but got torch.FloatTensor instead"),
    ],
)
def test_refused_bags(call, message):
    with pytest.raises(RuntimeError, match=message):
        call().tolist()


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_padding_have_a_history(mode):
    weight = W.clone().requires_grad_()
    found = F.embedding_bag(torch.tensor([1, 1]), weight, torch.tensor([0]), mode=mode, padding_idx=1)
    assert found.tolist() == [[0.0, 0.0, 0.0]]
    found.sum().backward()
    assert not weight.grad.any()


# Modules called with other tensors


class Affine(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(1, 1)
        self.register_buffer("shift", torch.ones(1))
        self.scale = torch.ones(1)

    def forward(self, x):
        return self.inner(x) * self.scale + self.shift


def test_other_tensors_for_attributes_too():
    module, x = Affine(), torch.ones(1)
    given = {"inner.weight": torch.full((1, 1), 2.0), "inner.bias": torch.zeros(1), "scale": x * 3, "absent": x}
    assert functional_call(module, given, x).tolist() == [7.0]
    assert module.scale.tolist() == [1.0] and not hasattr(module, "absent")


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"inner.bias": 3}, TypeError, "3 is not an instance of torch.Tensor"),
        ({"": torch.ones(1)}, KeyError, "tensor name can't be empty string"),
        ({"nothing.weight": torch.ones(1)}, AttributeError, "Affine has no attribute `nothing`"),
        ({"shift.weight": torch.ones(1)}, TypeError, "is not an instance of torch.nn.Module"),
        (
            ({"shift": torch.ones(1)}, {"shift": torch.ones(1)}),
            ValueError,
            r"\['shift'\] appeared in multiple dictionaries",
        ),
        ([3], ValueError, "Expected all elements of parameter_and_buffer_dicts to be dictionaries"),
        (3, ValueError, "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts"),
    ],
)
def test_refused_tensors(given, error, message):
    with pytest.raises(error, match=message.replace("'t", "..t")):
        functional_call(Affine(), given, torch.ones(1))


def test_strict_names_are_quoted():
    with pytest.raises(
        RuntimeError, match=r"Unexpected key\(s\): 'more'.\n\tMissing key\(s\): 'inner.bias', 'inner.weight'."
    ):
        functional_call(Affine(), {"shift": torch.ones(1), "more": torch.ones(1)}, torch.ones(1), strict=True)


# References


def test_references_are_the_operators():
    assert _refs.exp is torch.exp and _refs.special is torch.special
    assert _refs.nn.functional.relu is F.relu
    assert _refs._conversions.char(torch.ones(1)).dtype is torch.int8
    assert _refs.contiguous(torch.ones(2)).tolist() == [1.0, 1.0]
    assert not hasattr(_refs, "nothing") and not hasattr(_refs._conversions, "contiguous")
    assert callable(_refs._conversions.chalf)  # that there is no such dtype on the CPU, calling it says


def test_buffers_of_other_dtypes() -> None:
    """As PyTorch takes and refuses them."""
    whole = torch.tensor([1, 2])
    assert torch.inner(torch.tensor(2), whole, out=torch.zeros(2, dtype=torch.int16)).tolist() == [2, 4]
    with pytest.raises(
        RuntimeError, match="tensordot: Expected the output tensor to have dtype Long, but got .* Short"
    ):
        torch.inner(whole, whole, out=torch.zeros((), dtype=torch.int16))
    assert torch.diff(whole, out=torch.zeros(1, dtype=torch.int16)).tolist() == [1]
    with pytest.raises(RuntimeError, match="expected scalar_type Long but found Short"):
        torch.diff(whole, n=0, out=torch.zeros(2, dtype=torch.int16))
    x = torch.tensor([1.0, float("nan"), 3.0])
    for function in (torch.nansum, torch.nanmean):
        with pytest.raises(NotImplementedError, match="\"nansum_cpu\" not implemented for 'Short'"):
            function(x, out=torch.zeros((), dtype=torch.int16))
    assert torch.nansum(x, out=torch.zeros((), dtype=torch.float64)).item() == 4.0
    with pytest.raises(RuntimeError, match="unsupported operation"):
        torch.kthvalue(x, 1, out=(x, torch.zeros(3, dtype=torch.int64)))


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_lists_of_tensors_are_refused_like_tensors(device: str) -> None:
    """PyTorch's meta device takes them, its CPU does not."""
    flags = [torch.zeros(2, dtype=torch.bool, device=device)]
    with pytest.raises(NotImplementedError, match="abs_cpu"):
        torch._foreach_abs(flags)


def test_what_counts_as_an_index_is_one() -> None:
    class Index:
        def __index__(self) -> int:
            return 1

    assert torch.ones(2, 3).sum(dim=[Index()]).tolist() == [3.0, 3.0]


def _warnings(call):
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        for _ in range(4):
            call()
    return [(str(w.message).partition(" ")[0], w.filename) for w in given]


@pytest.mark.parametrize(
    ("call", "word", "times"),
    [
        (lambda: A[torch.ones(3, dtype=torch.uint8)], "indexing", 1),
        (lambda: A.index_put((torch.ones(3, dtype=torch.uint8),), A), "indexing", 1),
        (
            lambda: A.index_put((torch.ones(3, dtype=torch.uint8), torch.ones(3, dtype=torch.uint8)), A[0]),
            "indexing",
            2,
        ),
        (lambda: A.var(0, correction=3), "var():", 1),
        (lambda: torch.std_mean(A, 0, correction=3), "std_mean():", 1),
        (lambda: torch.range(0, 1), "torch.range", 1),
    ],
)
def test_warn_of_each_call_where_it_stands(call, word, times):
    assert _warnings(call) == [(word, __file__)] * 4 * times


class _Items:
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, at):
        return self.items[at]


def test_data_of_tensors():
    assert torch.tensor(_Items([1.0, 2.0])).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="could not determine the shape of object type '_Items'"):
        torch.tensor(_Items({1: 2.0}))
    with pytest.raises(TypeError, match='missing 1 required positional arguments: "data"'):
        torch.tensor()
    assert torch.Tensor(INTS).dtype is torch.int32
    with pytest.raises(TypeError, match="expected TensorOptions.dtype=float, device=cpu"):
        torch.FloatTensor(INTS)


def test_functions_are_routines_that_modules_list():
    assert inspect.isroutine(torch.add) and inspect.isroutine(torch.fft.fft) and inspect.isroutine(nn.functional.linear)
    assert {"fft", "hfft2", "fftshift"} <= set(torch.fft.__all__) and "LinAlgError" in torch.linalg.__all__
    assert not hasattr(torch, "unique_dim") and isinstance(A, TensorBase) and torch.Tensor.__bases__ == (TensorBase,)
    found = torch.ops.aten._linalg_svd(A)
    assert found.S is found[1] and type(found) is torch.return_types._linalg_svd


def test_factor_of_gradients():
    scale, tracker, found = torch.full((1,), 4.0), torch.zeros(1, dtype=torch.int32), torch.zeros(1)
    steps = []
    for infinite in (0, 0, 1, 0):
        found.fill_(infinite)
        torch._amp_update_scale_(scale, tracker, found, 2.0, 0.25, 2)
        steps.append((scale.item(), tracker.item()))
    assert steps == [(4.0, 1), (8.0, 0), (2.0, 0), (2.0, 1)]
    gradients = [torch.tensor([1.0, 2.0]), torch.tensor([[float("inf")]]).half()]
    torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, torch.full((1,), 0.5))
    assert [g.tolist() for g in gradients] == [[0.5, 1.0], [[float("inf")]]] and found.item() == 1.0


def test_product_with_rows_of_bytes():
    w = torch.tensor([[1, 2, 3, 4], [-1, 0, 1, 2]], dtype=torch.int8)
    made = torch._weight_int8pack_mm(torch.tensor([[1.0, 2, 3, 4]]), w, torch.tensor([0.5, 2.0]))
    assert made.tolist() == [[15.0, 20.0]]


def test_factors_of_a_batch_up_to_what_is_not_positive():
    a = torch.tensor([[[4.0, 2], [2, 5]], [[4, 2], [2, 1]], [[-1, 0], [2, 5]]])
    factors, info = torch.linalg.cholesky_ex(a)
    assert info.tolist() == [0, 2, 1]
    assert factors.tolist() == [[[2, 0], [1, 2]], [[2, 0], [1, 0]], [[-1, 0], [2, 5]]]


def test_draws_of_many_trials():
    torch.manual_seed(3)
    drawn = torch.binomial(torch.full((5000,), 10.0), torch.full((5000,), 0.3))
    torch.manual_seed(3)
    again = torch.binomial(torch.full((5,), 10.0), torch.full((5,), 0.3))
    assert drawn[:5].tolist() == again.tolist() and 2.9 < drawn.mean().item() < 3.1
