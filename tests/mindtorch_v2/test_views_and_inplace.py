"""Views: who shares whose memory, version and history; and what in-place operations do to histories."""

from __future__ import annotations

import numpy as np
import pytest

import mindtorch_v2 as torch

t = torch.tensor

VIEWS = {
    "view": lambda x: x.view(3, 2),
    "reshape": lambda x: x.reshape(6),
    "transpose": lambda x: x.transpose(0, 1),
    "t": lambda x: x.t(),
    "permute": lambda x: x.permute(1, 0),
    "T": lambda x: x.T,
    "select": lambda x: x[0],
    "slice": lambda x: x[:, 1:],
    "narrow": lambda x: x.narrow(1, 0, 2),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "squeeze": lambda x: x.squeeze(),
    "expand": lambda x: x.expand(2, 2, 3),
    "diagonal": lambda x: x.diagonal(),
    "as_strided": lambda x: x.as_strided((2,), (1,)),
    "flatten": lambda x: x.flatten(),
    "unflatten": lambda x: x.unflatten(1, (3, 1)),
    "unfold": lambda x: x.unfold(1, 2, 1),
    "view_as": lambda x: x.view_as(torch.zeros(3, 2)),
    "movedim": lambda x: x.movedim(0, 1),
    "split": lambda x: x.split(1)[0],
    "chunk": lambda x: x.chunk(2)[1],
    "unbind": lambda x: x.unbind()[0],
    "iter": lambda x: next(iter(x)),
}
COPIES = {
    "clone": lambda x: x.clone(),
    "add": lambda x: x + 0,
    "contiguous of a transpose": lambda x: x.t().contiguous(),
    "reshape of a transpose": lambda x: x.t().reshape(6),
    "index": lambda x: x[[0]],
    "to another dtype": lambda x: x.double(),
    "repeat": lambda x: x.repeat(1, 1),
    "cat": lambda x: torch.cat([x]),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_views_share_memory_version_and_base(view) -> None:
    x = torch.arange(6.0).view(2, 3).clone()
    y = view(x)
    assert y._base is x and y._is_view() and not x._is_view()
    version = x._version
    if 0 not in y.stride():
        y.add_(10)
        assert x._version == y._version == version + 1
        assert (x >= 10).any()
    x.zero_()
    assert not y.any() and y._version == x._version
    assert view(y if y.shape == x.shape else x)._base is x


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_copies_share_nothing(copy) -> None:
    x = torch.arange(6.0).view(2, 3).clone()
    y = copy(x)
    y.add_(10)
    assert y._base is None and x._version == 0 and x.max() == 5


def test_a_view_of_a_view_has_the_first_base() -> None:
    x = torch.zeros(2, 3)
    assert x[0][1:]._base is x
    assert x.view(6)[2:].unsqueeze(0)._base is x


def test_versions_of_every_kind_of_change() -> None:
    x = torch.zeros(3)
    for count, change in enumerate(
        (
            lambda: x.add_(1),
            lambda: x.__iadd__(1),
            lambda: x.copy_(torch.ones(3)),
            lambda: x.fill_(2),
            lambda: x.zero_(),
            lambda: x[1:].mul_(2),
            lambda: x.__setitem__(0, 5),
            lambda: x.masked_fill_(x > 1, 0),
            lambda: torch.add(x, 1, out=x),
            lambda: x.uniform_(),
            lambda: x.clamp_(0, 1),
        ),
        1,
    ):
        change()
        assert x._version == count


def test_detach_shares_memory_and_version() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.detach()
    assert not y.requires_grad and y.data_ptr() == x.data_ptr() and y._base is None
    with torch.no_grad():
        x.add_(1)
    assert y._version == x._version == 1 and y.tolist() == [2.0, 2.0]
    y.add_(1)
    assert x._version == 2


def test_data_shares_memory_but_no_version() -> None:
    x = torch.ones(2, requires_grad=True)
    x.data.add_(1)
    assert x.tolist() == [2.0, 2.0] and x._version == 0


# Histories


def test_in_place_on_an_interior_tensor() -> None:
    x = t([2.0, 3.0], requires_grad=True)
    y = x * 2
    y.mul_(y.detach().clone())
    assert y.grad_fn.name() == "MulBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [8.0, 12.0]


def test_in_place_with_an_operand_of_the_same_memory() -> None:
    x = t([2.0, 3.0], requires_grad=True)
    y = x * 2
    y.mul_(y.detach())
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_in_place_change_of_a_leaf() -> None:
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(
        RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation."
    ):
        x.add_(1)
    with pytest.raises(
        RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place operation."
    ):
        x[0].add_(1)
    with pytest.raises(
        RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place operation."
    ):
        x[0] = 1
    with torch.no_grad():
        x.add_(1)
    assert x.tolist() == [2.0, 2.0]


def test_a_plain_tensor_gets_a_history_in_place() -> None:
    x = torch.ones(2, requires_grad=True)
    y = torch.zeros(2)
    y.add_(x)
    assert y.requires_grad and not y.is_leaf
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_writing_to_a_view_gives_the_base_a_history() -> None:
    x = torch.ones(3, requires_grad=True)
    base = torch.zeros(2, 3)
    base[0].copy_(x * 2)
    assert base.requires_grad and base.grad_fn.name().endswith("CopySlices")
    base.sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_a_view_made_before_sees_the_base_s_new_history() -> None:
    x = torch.ones(3, requires_grad=True)
    base = torch.zeros(3)
    view = base[1:]
    assert not view.requires_grad
    base.copy_(x * 3)
    assert view.requires_grad
    view.sum().backward()
    assert x.grad.tolist() == [0.0, 3.0, 3.0]


def test_views_of_views() -> None:
    x = t([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    y = x * 1
    middle = y[1:3]
    last = middle[1:]
    last.mul_(10)
    assert y.tolist() == [1.0, 2.0, 30.0, 4.0] and middle.tolist() == [2.0, 30.0]
    (y.sum() + middle.sum()).backward()
    assert x.grad.tolist() == [1.0, 2.0, 20.0, 1.0]


def test_two_views_written_in_turn() -> None:
    x = t([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1
    a, b = y[:2], y[1:]
    a.mul_(2)
    b.mul_(3)
    a.mul_(5)
    assert y.tolist() == [10.0, 60.0, 9.0]
    y.sum().backward()
    assert x.grad.tolist() == [10.0, 30.0, 3.0]


def test_in_place_through_a_transpose() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    weights = torch.arange(6.0).view(3, 2)
    y = x * 1
    y.t().mul_(weights)
    y.sum().backward()
    assert x.grad.tolist() == weights.t().tolist()


def test_in_place_through_a_diagonal_and_an_index() -> None:
    x = torch.ones(2, 2, requires_grad=True)
    y = x * 1
    y.diagonal().mul_(5)
    y[0, 1] = 0
    y.sum().backward()
    assert x.grad.tolist() == [[5.0, 0.0], [1.0, 5.0]]


def test_the_other_operand_gets_a_gradient_too() -> None:
    x = torch.ones(3, requires_grad=True)
    w = t([2.0, 4.0], requires_grad=True)
    y = x * 1
    y[1:].mul_(w)
    y.sum().backward()
    assert w.grad.tolist() == [1.0, 1.0] and x.grad.tolist() == [1.0, 2.0, 4.0]


def test_outputs_of_multi_views_cannot_be_written() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    for parts in ((x * 1).unbind(), (x * 1).split(1), (x * 1).chunk(2)):
        with pytest.raises(RuntimeError, match="This view is the output of a function that returns multiple views"):
            parts[0].add_(1)
    for parts in (torch.zeros(2, 3).unbind(), torch.zeros(2, 3).split(1)):
        parts[0].add_(1)
        with pytest.raises(RuntimeError, match="returns multiple views"):
            parts[0].mul_(torch.ones(1, requires_grad=True))


def test_views_made_without_grad() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 1
    with torch.no_grad():
        view = y[0:1]
    with pytest.raises(RuntimeError, match="no_grad"):
        view.add_(1)


# Saved tensors


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: y * x,
        lambda x, y: y.exp(),
        lambda x, y: y.pow(2),
        lambda x, y: y / x,
        lambda x, y: y.sqrt(),
        lambda x, y: y.sigmoid(),
    ],
    ids=["mul", "exp", "pow", "div", "sqrt", "sigmoid"],
)
def test_changing_a_saved_tensor(function) -> None:
    x = t([1.0, 2.0], requires_grad=True)
    y = x * 2
    z = function(x, y)
    if function(x, y).grad_fn.name() in ("ExpBackward0", "SqrtBackward0", "SigmoidBackward0"):
        z.add_(1)  # these save their results
    else:
        y.add_(1)
    with pytest.raises(
        RuntimeError,
        match="one of the variables needed for gradient computation has been modified by an inplace operation",
    ):
        z.sum().backward()


def test_the_message_names_type_shape_and_versions() -> None:
    x = t([1.0, 2.0], requires_grad=True)
    y = x * 2
    z = y * y
    y.add_(1)
    with pytest.raises(
        RuntimeError,
        match=r"\[torch.FloatTensor \[2\]\], which is output 0 of Add(?:Backward0)?, is at version 1; expected version 0 instead",
    ):
        z.sum().backward()


def test_changing_what_is_not_saved() -> None:
    x = t([1.0, 2.0], requires_grad=True)
    y = x * 2
    z = y + 1
    y.add_(1)
    z.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_changing_a_saved_tensor_through_a_view() -> None:
    x = t([1.0, 2.0], requires_grad=True)
    y = x * 2
    z = y.exp()
    view = z[:1]
    view.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_changes_through_detached_tensors_count() -> None:
    x = t([1.0, 2.0], requires_grad=True)
    y = x * 2
    z = y * y
    y.detach().zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_changes_through_data_do_not() -> None:
    x = t([1.0, 2.0], requires_grad=True)
    y = x * 2
    z = y * y
    y.data.zero_()
    z.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


# Geometry in place


def test_geometry_changes_in_place() -> None:
    x = torch.zeros(2, 1, 3)
    assert x.squeeze_(1) is x and x.shape == (2, 3)
    assert x.unsqueeze_(0).shape == (1, 2, 3)
    assert x.transpose_(1, 2).shape == (1, 3, 2)
    assert x.resize_(2, 2).shape == (2, 2)
    assert x.t_().stride() == (1, 2)


def test_set_shares_a_storage() -> None:
    x, y = torch.zeros(2), torch.ones(3)
    x.set_(y)
    x[0] = 5
    assert y[0] == 5 and x.shape == (3,)


# Overlap


def test_writing_to_overlapping_memory() -> None:
    x = torch.zeros(1).expand(3)
    for change in (lambda: x.add_(1), lambda: x.copy_(torch.ones(3)), lambda: torch.add(torch.ones(3), 1, out=x)):
        with pytest.raises(
            RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"
        ):
            change()


def test_writing_over_an_operand() -> None:
    x = torch.arange(4.0)
    with pytest.raises(
        RuntimeError,
        match="some elements of the input tensor and the written-to tensor refer to a single memory location",
    ):
        x[1:].add_(x[:-1])
    x.add_(x)
    assert x.tolist() == [0.0, 2.0, 4.0, 6.0]


def test_copying_onto_itself() -> None:
    x = torch.arange(4.0)
    x.copy_(x)
    y = torch.arange(9.0).view(3, 3)
    y.copy_(y.t().clone())
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0] and y[0].tolist() == [0.0, 3.0, 6.0]


def test_memory_is_numpys() -> None:
    array = np.zeros((2, 3), dtype=np.float32)
    x = torch.from_numpy(array)
    x.t()[1].add_(4)
    assert array[:, 1].tolist() == [4.0, 4.0]
    array[0, 0] = 8
    assert x[0, 0] == 8


def _detached_and_written(y: torch.Tensor) -> torch.Tensor:
    out = y * 1
    y.detach_()
    y.add_(1)
    return out


def _written_unrecorded(y: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        y.add_(1)
    return y * 2


@pytest.mark.parametrize(
    ("change", "versions"),
    [
        (lambda x: x.exp().add_(1), (1, 0)),
        (lambda x: x.relu_().log1p_(), (2, 1)),
        (lambda x: x.sigmoid_().mul_(2).add_(1), (3, 1)),
        (lambda x: x.exp().add_(1).mul_(2), (2, 0)),
        (lambda x: x.softmax(0)[:1].mul_(2), (1, 0)),
        (lambda x: _detached_and_written(x.exp()), (1, 0)),
        (lambda x: _written_unrecorded(x.exp()), (1, 0)),
        (lambda x: x.clone()[:2].exp_().add_(1), (2, 1)),
        (lambda x: x.max(0, keepdim=True).values.exp().neg_(), (1, 0)),
    ],
)
def test_results_that_were_written_and_are_gone(change, versions) -> None:
    """A node's own result, which nobody holds any more when the gradient passes."""
    x = torch.tensor([0.5, 1.0, -2.0], requires_grad=True)
    total = change(x * 1).sum()
    now, saved = versions
    with pytest.raises(RuntimeError, match=f"is at version {now}; expected version {saved} instead"):
        total.backward()
