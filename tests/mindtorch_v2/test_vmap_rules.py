"""Whole batches at once: views stay views, gradients of examples, writes in place. Expected values are those of the examples one by one."""

from __future__ import annotations

import re

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.func import vmap
from mindtorch_v2.func.vmap import restore_vmap
from mindtorch_v2.nn import functional as F
from mindtorch_v2.utils import _pytree as pytree

VIEWS = {
    "transpose": lambda x: x.transpose(0, 1),
    "t": lambda x: x.t(),
    "T": lambda x: x.T,
    "chunk": lambda x: x.chunk(2, -1)[1],
    "unsqueeze": lambda x: x.unsqueeze(0),
    "unsqueeze at the end": lambda x: x.unsqueeze(-1),
    "view": lambda x: x.view(5, 3),
    "view_as": lambda x: x.view_as(torch.ones(15)),
    "row": lambda x: x[0],
    "column": lambda x: x[:, 1],
    "ellipsis": lambda x: x[..., None, 1:4],
    "expand": lambda x: x.expand(4, 3, 5),
    "diagonal": lambda x: x.diagonal(),
    "movedim": lambda x: x.movedim(0, 1),
    "unbind": lambda x: x.unbind(1)[2],
    "narrow": lambda x: x.narrow(1, 0, 2),
    "split": lambda x: x.split(2, 1)[0],
    "squeeze": lambda x: x.squeeze(),
    "flatten": lambda x: x.flatten(),
    "permute": lambda x: x.permute(1, 0),
    "unfold": lambda x: x.unfold(1, 2, 1),
    "mT": lambda x: x.mT,
    "select": lambda x: x.select(1, 2),
    "broadcast_to": lambda x: x.broadcast_to((2, 3, 5)),
    "expand_as": lambda x: x.expand_as(torch.ones(2, 3, 5)),
    "reshape_as": lambda x: x.reshape_as(torch.ones(5, 3)),
    "squeeze of one": lambda x: x[:, :1].squeeze(1),
    "squeeze of several": lambda x: x[:1, :1].squeeze((0, -1)),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_of_batches_are_views(name):
    x = torch.arange(30.0).reshape(2, 3, 5).clone()
    result = vmap(VIEWS[name])(x)
    assert torch.equal(result, torch.stack([VIEWS[name](one) for one in x]))
    assert result._base is x


def test_views_of_nested_batches():
    x = torch.arange(30.0).reshape(2, 3, 5).clone()
    result = vmap(vmap(lambda x: x[1:3]))(x)
    assert torch.equal(result, x[:, :, 1:3]) and result._base is x


def test_gradients_of_examples():
    y = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    v = torch.arange(12.0).reshape(4, 3)
    result = vmap(lambda v: torch.autograd.grad(y * y, y, v)[0])(v)
    assert torch.equal(result, 2 * y.detach() * v)
    x = torch.ones(4, 3, requires_grad=True)
    result = vmap(lambda x, v: torch.autograd.grad((x * x * y).sum(), (x, y))[1])(x, v)
    assert torch.equal(result, torch.ones(4, 3))
    with pytest.raises(RuntimeError, match=r"Mismatch in shape: grad_output\[0\] has a shape of torch.Size\(\[2\]\)"):
        vmap(lambda v: torch.autograd.grad(y * y, y, v[:2])[0])(v)


def test_writing_to_a_batch():
    x = torch.rand(2, 5)
    given = x.clone()
    result = vmap(lambda x: x.acos_())(given)
    assert torch.equal(result, x.acos()) and torch.equal(given, x.acos())


def test_numbers_promote_as_in_examples():
    result = vmap(torch.add)(torch.ones(2, 3), torch.ones(2, dtype=torch.float64))
    assert result.dtype is torch.float32


def test_results_that_are_no_tensors():
    assert vmap(lambda x: (x, "word"), out_dims=(0, None))(torch.ones(2))[1] == "word"
    found = vmap(torch.min, (0, None))(torch.tensor([[2.0, 1.0], [3.0, 4.0]]), 0)
    assert found.values.tolist() == [1.0, 3.0] and type(found).__name__ == "min"
    assert len(pytree.tree_leaves(torch.max(torch.ones(2, 2), 0))) == 2


def test_refusals():
    x = torch.ones(3, 3)
    with pytest.raises(RuntimeError, match="accessing `data` under vmap transform is not allowed"):
        vmap(lambda x: x.data)(x)
    with pytest.raises(ValueError, match="`out_dims` must be an int, None or a python collection of ints"):
        vmap(lambda x: x, out_dims=("lol",))(x)
    with pytest.raises(ValueError, match="expected `in_dims` to be int or a"):
        vmap(torch.mul, [0, 0])(x, x)
    with pytest.raises(RuntimeError):
        vmap(torch.mm)(torch.ones(2, 2, 3, 4), torch.ones(2, 2, 4, 3))


def test_restore():
    x, y = torch.ones(2, 3), torch.ones(4)
    out, dims = restore_vmap(lambda x, y: (x * 2, y.sum(), None), (0, None), 2, "error")(x, y)
    assert dims == (0, None, None)
    assert torch.equal(out[0], x * 2) and out[1].item() == 4 and out[2] is None


@pytest.mark.parametrize("repeat", range(3))
def test_writes_into_what_they_read(repeat):
    """Also the second call of a kind, which a plan may run, is refused."""
    row = torch.rand(6)
    index = torch.tensor([2, 1, 0])
    mask = torch.tensor([True, False, True])
    for write in (
        lambda: index.index_add_(0, index.clone(), index),
        lambda: index.index_fill_(0, index, 0),
        lambda: index.index_put_((index,), index.clone()),
        lambda: row.index_copy_(0, index, row[:3]),
        lambda: mask[1:].masked_fill_(mask[:-1], False),
    ):
        with pytest.raises(
            RuntimeError, match="unsupported operation: some elements of the input tensor and the written-to tensor"
        ):
            write()
    assert torch.equal(mask.clone().masked_fill_(mask, False), torch.zeros(3, dtype=torch.bool))


def test_shapes_of_batched_tensors_count_alone():
    x = torch.arange(6.0)
    shapes = torch.ones(4, 2, 3)
    assert torch.equal(vmap(lambda s: x.view_as(s), out_dims=0)(shapes), torch.stack([x.view(2, 3)] * 4))
    assert torch.equal(vmap(lambda s: x[:1].expand_as(s))(shapes), torch.zeros(4, 2, 3))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x.unsqueeze(4), "Dimension out of range (expected to be in range of [-3, 2], but got 4)"),
        (lambda x: x.squeeze(2), "Dimension out of range (expected to be in range of [-2, 1], but got 2)"),
        (lambda x: x.transpose(0, 2), "Dimension out of range (expected to be in range of [-2, 1], but got 2)"),
        (lambda x: torch.nonzero(x), "Attempted to vmap over aten::nonzero"),
        (lambda x: torch.unique(x), "Attempted to vmap over aten::_unique2"),
        (lambda x: torch.masked_select(x, x > 0), "Attempted to vmap over `mask` in torch.masked_select(self, mask)"),
        (lambda x: x[x > 0], "Attempting to batch over indexing with a boolean mask"),
    ],
)
def test_what_an_example_or_a_batch_refuses(function, message):
    with pytest.raises((RuntimeError, IndexError), match=re.escape(message)):
        vmap(function)(torch.arange(12.0).reshape(2, 3, 2))


# Which of PyTorch 2.13's random operators take randomness="same" of a batch, and which refuse.
REFUSED_THE_SAME = {
    "_standard_gamma": lambda x: torch._standard_gamma(x),
    "_sample_dirichlet": lambda x: torch._sample_dirichlet(x),
    "binomial": lambda x: torch.binomial(x * 10 // 1, x * 0 + 0.5),
    "poisson": torch.poisson,
    "bernoulli": lambda x: torch.bernoulli(x * 0.5),
    "multinomial": lambda x: torch.multinomial(x, 2),
    "normal": lambda x: torch.normal(x, 1.0),
}
TAKEN_THE_SAME = {
    "native_dropout": lambda x: torch.native_dropout(x, 0.5, True)[0],
    "dropout": lambda x: torch.nn.functional.dropout(x, 0.5),
    "rand_like": torch.rand_like,
}


@pytest.mark.parametrize("name", [*REFUSED_THE_SAME, *TAKEN_THE_SAME])
def test_examples_that_draw(name):
    function = (REFUSED_THE_SAME | TAKEN_THE_SAME)[name]
    x = torch.arange(1.0, 5.0).repeat(3, 1) / 5
    with pytest.raises(RuntimeError, match="called random operation while in randomness error mode"):
        vmap(function)(x)
    torch.manual_seed(0)
    different = vmap(function, randomness="different")(x)
    assert different.shape[0] == 3
    if name in REFUSED_THE_SAME:
        with pytest.raises(
            RuntimeError, match="does not currently support same randomness with a batched tensor input"
        ):
            vmap(function, randomness="same")(x)
    else:
        same = vmap(function, randomness="same")(x)
        assert torch.equal(same[0], same[1]) and torch.equal(same[1], same[2])
        assert not torch.equal(different[0], different[1])


def test_what_is_switched_off_draws_nothing():
    x = torch.ones(2, 3)
    assert torch.equal(vmap(lambda x: torch.nn.functional.dropout(x, 0.5, training=False))(x), x)
    assert torch.equal(vmap(lambda x: torch.native_dropout(x, 0.5, False)[0])(x), x)
    with pytest.raises(RuntimeError, match="we do not yet support aten::rrelu"):
        vmap(torch.nn.functional.rrelu)(x)


@pytest.fixture
def at_once():
    """Only rules for whole batches: no operator runs example by example."""
    from mindtorch_v2.func.batched import Fallback

    Fallback.enabled = False
    yield
    Fallback.enabled = True


def test_linear_algebra_runs_on_whole_batches(at_once):
    torch.manual_seed(0)
    matrices = torch.rand(3, 2, 2, dtype=torch.float64) + 2 * torch.eye(2, dtype=torch.float64)
    symmetric = matrices + matrices.mT
    for function, batch in (
        (torch.linalg.det, matrices),
        (torch.slogdet, matrices),
        (torch.linalg.svdvals, matrices),
        (torch.linalg.eigvalsh, symmetric),
        (torch.linalg.inv, matrices),
        (lambda m: torch.linalg.matrix_power(m, 3), matrices),
    ):
        found = torch.vmap(function, in_dims=1)(batch.transpose(0, 1))
        for part, wanted in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, function(batch)))):
            torch.testing.assert_close(part, wanted)
    values = torch.vmap(torch.linalg.eigh)(symmetric).eigenvalues
    torch.testing.assert_close(values, torch.linalg.eigvalsh(symmetric))


def test_operators_that_take_no_batches_run_by_example():
    x = torch.arange(8.0).reshape(2, 2, 2)
    assert torch.vmap(torch.trace)(x).tolist() == [3.0, 11.0]
    assert torch.vmap(torch.nuclear_norm)(x).shape == (2,)


def test_writes_that_are_views_and_fill(at_once):
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.vmap(lambda row: row.clone().unsqueeze_(0))(x).shape == (2, 1, 3)
    filled = torch.vmap(lambda row, value: row.clone().fill_(value))(x, torch.tensor([7.0, 8.0]))
    assert filled.tolist() == [[7.0] * 3, [8.0] * 3]


def test_order_of_elements_of_an_example():
    seen = []

    def look(x):
        seen.append(x.is_contiguous())
        return x

    torch.vmap(look)(torch.ones(2, 3, 4))
    torch.vmap(look, in_dims=1)(torch.ones(3, 2, 4))
    torch.vmap(look, in_dims=1)(torch.ones(3, 0, 4))
    torch.vmap(torch.vmap(look), in_dims=1)(torch.ones(2, 3, 4))
    torch.vmap(torch.vmap(look, in_dims=1))(torch.ones(2, 3, 4))
    assert seen == [True, False, True, True, False]
    with pytest.raises(RuntimeError, match="NYI: querying is_contiguous inside of vmap for memory_format"):
        torch.vmap(lambda x: x.is_contiguous(memory_format=torch.channels_last))(torch.ones(2, 1, 1, 1, 1))


@pytest.mark.parametrize(
    ("function", "args", "words"),
    [
        (
            torch.mm,
            (torch.ones(2, 2), torch.ones(2, 2, 2)),
            "Shape mismatch: Got incorrect dims for mm\\(a, b\\). a has dim 1and b has",
        ),
        (torch.where, (torch.ones(2, 2),), "dynamic shape. Attempted to vmap over aten::where"),
        (torch.view_as_complex, (torch.ones(2),), "Input tensor must have one or more dimensions"),
        (torch.equal, (torch.ones(2), torch.ones(2)), "Batching rule not implemented for aten::equal"),
        (
            lambda x, y: torch.abs(x, out=y),
            (torch.ones(2), torch.ones(2)),
            "Batching rule not implemented for aten::abs.out; the fallback path doesn't work on out= or view ops",
        ),
        (
            lambda x: x.clone(memory_format=torch.channels_last),
            (torch.ones(2, 1, 1, 1, 1),),
            "only supported with memory_format torch.preserve_format or torch.contiguous_format",
        ),
    ],
)
def test_what_vmap_refuses(function, args, words):
    with pytest.raises(RuntimeError, match=words):
        torch.vmap(function)(*args)


def test_random_buffers_are_refused():
    y = torch.ones(2)
    with pytest.raises(RuntimeError, match="calling out variants of random operations"):
        torch.vmap(lambda x: torch.randn(2, out=y), randomness="same")(torch.ones(3))


def test_modules_of_an_ensemble():
    from mindtorch_v2.func.make_functional import functional_init_with_buffers

    weights, buffers, function, names, buffer_names = functional_init_with_buffers(torch.nn.BatchNorm1d, [3])(2)
    assert [w.shape for w in weights] == [(3, 2), (3, 2)] and names == ("weight", "bias")
    assert buffer_names == ("running_mean", "running_var", "num_batches_tracked") and buffers[2].tolist() == [0, 0, 0]
    out = torch.vmap(function, in_dims=(0, 0, None))(weights, buffers, (torch.tensor([[1.0, 2.0], [3.0, 4.0]]),))
    assert out.shape == (3, 2, 2)
    torch.testing.assert_close(out[0], torch.tensor([[-1.0, -1.0], [1.0, 1.0]]), atol=1e-4, rtol=0)
    with pytest.raises(ValueError, match="num_models 0 should be > 0"):
        functional_init_with_buffers(torch.nn.Linear, [0])(2, 2)


IMAGES = {
    "grid_sample": lambda x, g: F.grid_sample(x, g, align_corners=False),
    "bilinear": lambda x, g: F.interpolate(x, size=(2, 5), mode="bilinear"),
    "nearest": lambda x, g: F.interpolate(x, scale_factor=2.0),
    "antialias": lambda x, g: F.interpolate(x, size=(2, 2), mode="bicubic", antialias=True),
    "unpool": lambda x, g: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2),
    "linear": lambda x, g: F.interpolate(x[:, 0], size=7, mode="linear"),
}


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("shared", [False, True])
def test_batches_of_images_are_one_batch(name, shared):
    function = IMAGES[name]
    x = torch.rand(2, 3, 4, 4) if shared else torch.rand(5, 2, 3, 4, 4)
    grid = torch.rand(5, 2, 3, 3, 2) * 2 - 1
    expected = torch.stack([function(x if shared else x[i], grid[i]) for i in range(5)])
    found = vmap(function, (None if shared else 0, 0))(x, grid)
    assert torch.equal(found, expected)


def test_one_grid_for_all_and_unlike_examples():
    x, grid = torch.rand(5, 2, 3, 4, 4), torch.rand(2, 3, 3, 2) * 2 - 1
    found = vmap(IMAGES["grid_sample"], (0, None))(x, grid)
    assert torch.equal(found, torch.stack([IMAGES["grid_sample"](one, grid) for one in x]))
    with pytest.raises(RuntimeError, match="expected grid and input to have same batch size"):
        vmap(IMAGES["grid_sample"], (0, None))(x, grid[:1])
    values, places = F.max_pool2d(x[0], 2, return_indices=True)  # of examples without a batch of their own
    one_by_one = torch.stack([F.max_unpool2d(v, p, 2) for v, p in zip(values, places)])
    assert torch.equal(vmap(lambda v, p: F.max_unpool2d(v, p, 2))(values, places), one_by_one)


def test_random_writes_say_which_tensor_is_batched():
    x, p = torch.zeros(3), torch.full((4, 3), 0.5)
    with pytest.raises(RuntimeError, match="same randomness with a batched tensor input"):
        vmap(lambda p: x.bernoulli_(p), randomness="same")(p)
    with pytest.raises(RuntimeError, match="more elements than `self`"):
        vmap(lambda p: x.bernoulli_(p), randomness="different")(p)
    with pytest.raises(RuntimeError, match="different inplace randomness on an unbatched tensor"):
        vmap(lambda p: x.bernoulli_(0.5) + p, randomness="different")(p)
    torch.manual_seed(3)
    drawn = vmap(lambda t, p: t.bernoulli_(p), randomness="different")(torch.zeros(4, 3), p)
    torch.manual_seed(3)
    assert torch.equal(drawn, torch.zeros(4, 3).bernoulli_(p))


def test_random_operators_inside_of_composites_are_asked_about():
    q = torch.ones(2, 1, 3, 4)
    attend = lambda q: torch.nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=0.5)  # noqa: E731
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(attend)(q)
    assert vmap(attend, randomness="different")(q).shape == q.shape


def test_multinomial_draws_for_all_examples_at_once():
    weights = torch.tensor([[1.0, 2, 3, 4], [4.0, 3, 2, 1], [1.0, 1, 1, 1]])
    torch.manual_seed(5)
    drawn = vmap(lambda w: torch.multinomial(w, 3), randomness="different")(weights)
    torch.manual_seed(5)
    assert torch.equal(drawn, torch.multinomial(weights, 3))


def test_tensors_that_escaped_are_refused():
    kept = []
    vmap(lambda x: kept.append(x) or x)(torch.ones(2))
    with pytest.raises(RuntimeError, match="your tensor may have escaped from inside a function being vmapped"):
        kept[0].sin()


def test_an_argument_that_comes_back_is_itself():
    x = torch.rand(5, 3, 7)
    assert vmap(lambda x: x, in_dims=1, out_dims=1)(x) is x
    assert vmap(torch.Tensor.contiguous)(x) is x
    out, dims = restore_vmap(lambda x, y: (x + 1, y), (0, 1), 5, "error")(x, torch.ones(2, 5))
    assert dims == (0, 1) and out[1].shape == (2, 5)


def test_strided_examples():
    x = torch.arange(24.0).reshape(2, 3, 4).transpose(1, 2)
    result = vmap(lambda x: x.as_strided((3, 2), (4, 1)))(x)
    assert torch.equal(result, x[:, :2].transpose(1, 2)) and result._base is x._base
    with pytest.raises(RuntimeError, match="not supported inside of vmap"):
        vmap(lambda x: x.as_strided((4, 4), (4, 1)))(x)


def test_zero_dimensional_examples_and_indices():
    x, i = torch.zeros(2, 3), torch.tensor([0, 2])
    assert torch.equal(vmap(lambda x, i: x.index_fill(0, i, 1.0))(x, i), torch.tensor([[1.0, 0, 0], [0, 0, 1.0]]))
    v = torch.tensor([5.0, 6.0])
    assert torch.equal(vmap(lambda x, v: x.clone().fill_(v))(x, v), v[:, None].expand(2, 3))
    mixed = vmap(lambda a, b: a + b)(torch.ones(2, dtype=torch.float64), torch.ones(2, 3))
    assert mixed.dtype is torch.float32 and torch.equal(mixed, torch.full((2, 3), 2.0))


def test_positions_behind_other_dimensions():
    x, i = torch.arange(48.0).reshape(2, 3, 4, 2), torch.tensor([[0, 3], [1, 2]])
    expected = torch.stack([x[k][:, i[k]] for k in range(2)])
    assert torch.equal(vmap(lambda x, i: x[:, i])(x, i), expected)
    assert torch.equal(vmap(lambda x, i: x[:, i], in_dims=(None, 0))(x[0], i), torch.stack([x[0][:, j] for j in i]))
    written = vmap(lambda x, i: x.clone().index_put_((torch.tensor([0, 1]), i), torch.tensor([-1.0, -2.0])))(x, i)
    assert torch.equal(written[1, 1, 2], torch.tensor([-1.0, -2.0])) and torch.equal(written[0, 2], x[0, 2])
