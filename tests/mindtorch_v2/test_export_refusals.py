"""What `torch.export` refuses, and that an export leaves nothing behind."""

from __future__ import annotations

import pytest
from _exported import Function

import mindtorch_v2 as torch
from mindtorch_v2 import export as exporting, nn
from mindtorch_v2._compiling.refusals import GuardOnDataDependentSymNode, UserError
from mindtorch_v2._script.tracing import trace
from mindtorch_v2.export import export


@pytest.mark.parametrize(
    "function",
    [
        lambda self, x: x if x.sum() > 0 else -x,
        lambda self, x: x * x.sum().item(),
        lambda self, x: x * x.tolist()[0],
        lambda self, x: x * float(self.w[0]),
        lambda self, x: x if torch.equal(x, x + 1) else -x,
        lambda self, x: x[x > 0],
        lambda self, x: x.nonzero(),
        lambda self, x: torch.rand(1).item() * x,
    ],
)
def test_programs_that_decide_by_elements_are_refused(function):
    with pytest.raises(GuardOnDataDependentSymNode, match="data-dependent expression") as caught:
        export(Function(function, w=nn.Parameter(torch.ones(2))), (torch.ones(2),))
    assert "test_export_refusals.py" in str(caught.value)


def test_a_tensor_without_dimensions_picks_a_part():
    program = export(
        Function(lambda self, x, i: x[i] * 2 + x[i, 1:].sum()), (torch.arange(6.0).view(3, 2), torch.tensor(1))
    )
    assert program.module()(torch.arange(6.0).view(3, 2), torch.tensor(2)).tolist() == [13, 15]

    def setting(self, x, i):
        y = x.clone()
        y[i] = 7
        return y

    program = export(Function(setting), (torch.zeros(3), torch.tensor(1)))
    assert program.module()(torch.zeros(3), torch.tensor(2)).tolist() == [0, 0, 7]
    with pytest.raises(GuardOnDataDependentSymNode, match="writes to a part of a tensor that another tensor picks"):
        export(Function(lambda self, x, i: (x[i].add_(1), x)), (torch.zeros(3, 2), torch.tensor(1)))


def test_elements_of_constants_may_be_asked_for():
    program = export(Function(lambda self, x: x * torch.tensor([2, 3]).max().item()), (torch.ones(2),))
    assert program.module()(torch.ones(2)).tolist() == [3, 3]


def test_what_no_graph_can_have_is_refused():
    x = torch.ones(2).requires_grad_()
    with pytest.raises(NotImplementedError, match="runs a backward pass"):
        export(Function(lambda self, x: torch.autograd.grad((x * x).sum(), x)[0]), (x,))
    with pytest.raises(NotImplementedError, match="by something that is not recorded"):
        export(Function(lambda self, x: x + torch.frombuffer(b"abcdefgh", dtype=torch.float32)), (x,))
    with pytest.raises(RuntimeError, match="in output, which is not a known type"):
        export(Function(lambda self, x: object()), (x,))
    with pytest.raises(ValueError, match="Unsupported input type <class 'object'>"):
        export(Function(lambda self, x: 1), (object(),))
    with pytest.raises(ValueError, match="Expected `mod` to be an instance of `torch.nn.Module`"):
        export(lambda x: x, (x,))
    with pytest.raises(
        UserError, match="Expecting `args` to be a tuple of example positional inputs, got <class 'list'>"
    ):
        export(nn.Linear(2, 2), [x])
    with pytest.raises(ValueError, match="Exporting a ScriptModule is not supported"):
        export(trace(nn.Linear(2, 2), x), (x,))
    for absent in (exporting.save, exporting.draft_export):
        with pytest.raises(NotImplementedError, match=f"torch.export.{absent.__name__}"):
            absent(None, None)
    for absent in (exporting.load, exporting.unflatten):
        with pytest.raises(NotImplementedError, match=f"torch.export.{absent.__name__}"):
            absent(None)


def test_an_export_leaves_nothing_behind():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0
            self.norm = nn.BatchNorm1d(2)

        def forward(self, x):
            self.calls += 1
            self.last = x
            x.mul_(2)
            return self.norm(x) + torch.rand(2)

    model, x = Counting(), torch.ones(3, 2)
    torch.manual_seed(1)
    export(model, (x,))
    drawn = torch.rand(1)
    torch.manual_seed(1)
    assert drawn == torch.rand(1)
    assert model.calls == 0
    assert not hasattr(model, "last")
    assert x.tolist() == [[1, 1]] * 3
    assert model.norm.num_batches_tracked == 0
    with pytest.raises(ZeroDivisionError):
        export(Function(lambda self, x: 1 / 0), (x,))
    assert (x + 1).tolist() == [[2, 2]] * 3
