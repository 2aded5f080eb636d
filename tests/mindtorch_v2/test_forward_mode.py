"""Forward mode: dual tensors, their tangents through operators, views and writes; values are PyTorch's."""

import pytest

import mindtorch_v2 as torch

fw = torch.autograd.forward_ad


@pytest.fixture
def dual():
    """x = (1, 2, 3) with the tangent (1, 0, 2), inside a level."""
    with fw.dual_level():
        yield fw.make_dual(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 0.0, 2.0]))


def tangent(value):
    found = fw.unpack_dual(value).tangent
    return None if found is None else found.tolist()


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x * x, [2.0, 0.0, 12.0]),
        (lambda x: x + 1, [1.0, 0.0, 2.0]),
        (lambda x: (x * x).sum(), 14.0),
        (lambda x: x.cumsum(0), [1.0, 1.0, 3.0]),
        (lambda x: torch.cat([x, -x]), [1.0, 0.0, 2.0, -1.0, 0.0, -2.0]),
        (lambda x: x[1:], [0.0, 2.0]),
        (lambda x: x.view(3, 1).expand(3, 2), [[1.0, 1.0], [0.0, 0.0], [2.0, 2.0]]),
        (lambda x: x.max(0).values, 2.0),
        (lambda x: x.sort(descending=True)[0], [2.0, 0.0, 1.0]),
        (lambda x: torch.outer(x, x)[0], [2.0, 2.0, 5.0]),
        (lambda x: torch.nn.functional.conv1d(x.view(1, 1, 3), torch.ones(1, 1, 2)), [[[1.0, 2.0]]]),
        (lambda x: torch.where(x > 1, x, 0), [0.0, 0.0, 2.0]),
        (lambda x: x.clone().clamp_(1.5, 2.5), [0.0, 0.0, 0.0]),
        (lambda x: x.detach(), None),
        (lambda x: x > 1, None),
    ],
)
def test_tangents_of_results(dual, function, expected):
    assert tangent(function(dual)) == expected


def test_complex(dual):
    turned = dual * 1j
    assert tangent(turned) == [1j, 0j, 2j]
    assert tangent(torch.view_as_real(turned))[0] == [0.0, 1.0]
    assert tangent(turned.abs()) == [1.0, 0.0, 2.0]


def test_writing_gives_the_base_a_tangent(dual):
    base = torch.zeros(4)
    base[1:] = dual
    assert tangent(base) == [0.0, 1.0, 0.0, 2.0]
    base[1] *= dual[0]
    assert base.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert tangent(base) == [0.0, 2.0, 0.0, 2.0]
    base.zero_()
    assert tangent(base) == [0.0, 0.0, 0.0, 0.0]


def test_writing_changes_no_other_tangent(dual):
    copied = dual + 0
    copied.mul_(3)
    assert tangent(copied) == [3.0, 0.0, 6.0]
    assert tangent(dual) == [1.0, 0.0, 2.0]


def test_reverse_over_forward():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with fw.dual_level():
        moved = fw.unpack_dual(fw.make_dual(x, torch.ones(3)) ** 3).tangent
    (found,) = torch.autograd.grad(moved.sum(), x)
    assert found.tolist() == [6.0, 12.0, 18.0]


def test_forward_over_reverse():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with fw.dual_level():
        d = fw.make_dual(x, torch.ones(3))
        (found,) = torch.autograd.grad((d.exp() * d).sum(), d, create_graph=True)
        moved = fw.unpack_dual(found).tangent
    torch.testing.assert_close(moved.detach(), (x.detach() + 2) * x.detach().exp())


def test_rows_that_are_renormalized_keep_their_tangents(dual):
    table = fw.make_dual(torch.full((3, 2), 2.0), torch.ones(3, 2))
    out = torch.nn.functional.embedding(torch.tensor([0, 2, 2]), table, max_norm=1.0)
    primal, tangent = torch.autograd.forward_ad.unpack_dual(out)
    assert tangent.tolist() == [[1.0, 1.0]] * 3
    assert primal.norm(dim=1).tolist() == pytest.approx([1.0] * 3, abs=1e-5)


def test_levels_and_refusals():
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="no level exists"):
        fw.make_dual(x, x)
    assert fw.unpack_dual(x).tangent is None
    with fw.dual_level():
        with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported at the moment"):
            fw.enter_dual_level()
        with pytest.raises(
            ValueError, match="Expected primal to be floating point or complex, but got: mindtorch_v2.int64|torch.int64"
        ):
            fw.make_dual(torch.ones(2, dtype=torch.int64), x)
        with pytest.raises(
            RuntimeError, match=r"Tensor is of size \[2\] while the given forward gradient is of size \[3\]"
        ):
            fw.make_dual(x, torch.ones(3))
        d = fw.make_dual(x, x)
        with pytest.raises(RuntimeError, match="already has a forward gradient at the same level 0"):
            fw.make_dual(d, x)
        with pytest.raises(NotImplementedError, match="Trying to use forward AD with add_out"):
            torch.add(d, d, out=torch.empty(2))
        assert repr(d * 2) == "tensor([2., 2.], tangent=tensor([2., 2.]))"
        with fw._set_fwd_grad_enabled(False):
            assert tangent(d * 2) is None
    assert fw.unpack_dual(d).tangent is None
    with pytest.raises(RuntimeError, match="Dual level must be a positive number"):
        fw.exit_dual_level()


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor, x.sum()

    @staticmethod
    def jvp(ctx, moved, _):
        return moved * ctx.factor, moved.sum()


def test_functions_push_by_their_jvp(dual):
    scaled, total = Scaled.apply(dual, 4)
    assert (tangent(scaled), tangent(total)) == ([4.0, 0.0, 8.0], 3.0)

    class Without(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

    with pytest.raises(NotImplementedError, match="You must implement the jvp function"):
        Without.apply(dual)

    class Short(Scaled):
        @staticmethod
        def jvp(ctx, moved, _):
            return moved

    with pytest.raises(RuntimeError, match=r"invalid number of forward gradients \(expected 2 but got 1\)"):
        Short.apply(dual, 4)


def test_nodes_of_functions_show_the_context():
    class Kept(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.note = "here"
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = torch.ones(2, requires_grad=True)
    node = Kept.apply(x).grad_fn
    assert type(node) is Kept._backward_cls and type(node).__name__ == "KeptBackward" == node.name()
    assert node.note == "here" and node.saved_tensors[0] is x
    assert not hasattr(node, "nothing")


def test_tangents_have_as_much_memory_as_their_tensors():
    primal, tangent = torch.randn(5)[:4].detach(), torch.randn(4)
    before = tangent.clone()
    with fw.dual_level():
        dual = fw.make_dual(primal, tangent)
        unpacked = fw.unpack_dual(dual).tangent
        unpacked *= 2
        assert torch.equal(tangent, before)
        dual.as_strided((5,), (1,), 0)
        with pytest.raises(RuntimeError, match="has a forward gradient at the same level"):
            fw.make_dual(torch.ones(4), dual)
        with pytest.raises(NotImplementedError, match="Trying to use forward AD with igamma that does not support it"):
            torch.igamma(dual, dual)
        dual = dual.clone()
        dual.detach_()
        assert fw.unpack_dual(dual * 2).tangent is None


def test_what_jvp_of_a_function_sees_and_may_say():
    class Saved(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, n):
            ctx.save_for_backward(x)
            ctx.save_for_forward(x, x)
            return x.clone()

        @staticmethod
        def jvp(ctx, x_t, n_t):
            assert len(ctx.saved_tensors) == 2 and n_t is None
            return x_t * 3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * x, None

    class Dirty(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def jvp(ctx, x_t):
            return x_t

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out = x.clone()
            ctx.mark_non_differentiable(out)
            return out

        @staticmethod
        def jvp(ctx, x_t):
            return x_t.clone()

    x = torch.tensor(2.0, requires_grad=True)
    with fw.dual_level():
        out = Saved.apply(fw.make_dual(x, torch.tensor(1.0)), torch.tensor(3))
        assert fw.unpack_dual(out).tangent.item() == 3
        out.backward()
        assert x.grad.item() == 2
        with pytest.raises(RuntimeError, match="jvp function must modify the corresponding gradient inplace"):
            Dirty.apply(fw.make_dual(torch.ones(()), torch.ones(())))
        with pytest.raises(RuntimeError, match="You should return None at that position instead"):
            Wrong.apply(fw.make_dual(torch.ones(()), torch.ones(())))


def test_gradcheck_perturbs_wrappers_by_their_operators():
    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            made = torch.Tensor._make_wrapper_subclass(
                cls, inner.size(), strides=inner.stride(), dtype=inner.dtype, requires_grad=inner.requires_grad
            )
            made.inner = inner.detach()
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            inner = torch.utils._pytree.tree_map(
                lambda v: v.inner if isinstance(v, Wrapper) else v, (args, kwargs or {})
            )
            result = func(*inner[0], **inner[1])
            return torch.utils._pytree.tree_map(lambda v: Wrapper(v) if isinstance(v, torch.Tensor) else v, result)

    x = Wrapper(torch.rand(3, dtype=torch.float64, requires_grad=True))
    assert torch.autograd.gradcheck(lambda x: x * x * x.sum(), (x,))
    assert torch.autograd.gradgradcheck(lambda x: x * x * x.sum(), (x,))
