"""What optimizers of other packages import: tensors in groups of one dtype, and the helpers beside `Optimizer`. Expected values and messages are PyTorch's."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.optim import optimizer as helpers
from mindtorch_v2.utils import _foreach_utils as lists

CPU = torch.device("cpu")


def _params() -> list:
    return [torch.tensor(1.0), torch.tensor([2.0], dtype=torch.float64), torch.tensor(3.0), torch.tensor(5)]


def test_groups_by_device_and_dtype():
    params = _params()
    others = [torch.tensor(11.0), torch.tensor([12.0], dtype=torch.float64), None, torch.tensor(15)]
    groups = lists._group_tensors_by_device_and_dtype([params, others, []], with_indices=True)
    assert list(groups) == [(CPU, torch.float32), (CPU, torch.float64), (CPU, torch.int64)]
    (first, second, third), indices = groups[CPU, torch.float32]
    assert indices == [0, 2] and third == [] and second[1] is None
    assert first[0] is params[0] and first[1] is params[2] and second[0] is others[0]
    assert groups[CPU, torch.float64][1] == [1] and groups[CPU, torch.int64][1] == [3]
    assert torch.optim.Optimizer._group_tensors_by_device_and_dtype([params])[CPU, torch.float32] == (
        [[params[0], params[2]]],
        [],
    )


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda p: [], RuntimeError, "Expected !nested_tensorlist.empty()"),
        (lambda p: [[]], RuntimeError, "Expected !nested_tensorlist[0].empty()"),
        (lambda p: [p, p[:2]], RuntimeError, "tensorlist.size() == num_tensors"),
        (lambda p: [[p[0], None]], RuntimeError, "supposed to be defined but the 1-th Tensor is not"),
        (
            lambda p: [p, p[::-1]],
            RuntimeError,
            "Tensors of the same index must be on the same device and the same dtype",
        ),
        (lambda p: [p, [1, 2, 3, 4]], TypeError, "incompatible function arguments"),
    ],
)
def test_groups_that_cannot_be_made(make, error, message):
    with pytest.raises(error) as raised:
        lists._group_tensors_by_device_and_dtype(make(_params()))
    assert message in str(raised.value)


def test_steps_and_states_may_be_of_another_dtype():
    weights = [torch.zeros(2, dtype=torch.float16), torch.zeros(2, device="meta")]
    steps = [torch.tensor(1.0), torch.tensor(2.0, dtype=torch.float64)]
    states = [torch.zeros(2, dtype=torch.bfloat16), torch.zeros(2, dtype=torch.bfloat16, device="meta")]
    groups = lists._group_tensors_by_device_and_dtype([weights, steps, states])
    assert groups[CPU, torch.float16][0][1][0] is steps[0]
    assert groups[torch.device("meta"), torch.float32][0][2][0] is states[1]
    with pytest.raises(RuntimeError, match="same index"):
        lists._group_tensors_by_device_and_dtype([weights, [torch.tensor(1), steps[1]]])


def test_where_operators_on_lists_run():
    p = torch.zeros(1)
    assert lists._device_has_foreach_support(CPU) and not lists._device_has_foreach_support(torch.device("meta"))
    assert lists._has_foreach_support([p, None], CPU)
    assert not lists._has_foreach_support([torch.nn.Parameter(p)], CPU)
    with pytest.raises(RuntimeError, match="`fused=True` requires all the params to be floating point Tensors"):
        helpers._device_dtype_check_for_fused(torch.zeros(1, dtype=torch.int32))
    with pytest.raises(RuntimeError, match=r"but torch.float32 and meta$"):
        helpers._device_dtype_check_for_fused(torch.zeros(1, device="meta"))
    helpers._device_dtype_check_for_fused(p)


def test_helpers_of_optimizers():
    assert helpers._get_value(torch.tensor(3.0)) == 3.0 and helpers._get_value(2) == 2
    assert helpers._to_scalar(torch.tensor([[3.0]])).shape == () and helpers._to_scalar(0.5) == 0.5
    params, grads = [torch.zeros(2, dtype=torch.complex64), torch.zeros(2)], [torch.ones(2, dtype=torch.complex64)]
    grads.append(torch.ones(2))
    helpers._view_as_real(params, grads)
    assert params[0].shape == (2, 2) and params[1].shape == (2,) and grads[0].tolist() == [[1, 0], [1, 0]]

    @helpers._disable_dynamo_if_unsupported(single_tensor_fn=None)
    def step(params: list, state_steps: list) -> tuple:
        return params, helpers._stack_if_compiling(state_steps)

    assert step([1], [2]) == ([1], [2]) and step.__name__ == "step"


def test_an_optimizer_over_groups_steps_like_one_over_tensors():
    class Descent(torch.optim.Optimizer):
        @helpers._use_grad_for_differentiable
        def step(self, closure=None):
            for group in self.param_groups:
                params = [p for p in group["params"] if p.grad is not None]
                grouped = self._group_tensors_by_device_and_dtype([params, [p.grad for p in params]])
                for (weights, grads), _ in grouped.values():
                    torch._foreach_add_(weights, grads, alpha=-group["lr"])

    weights = [torch.nn.Parameter(torch.arange(3.0)), torch.nn.Parameter(torch.ones(2, dtype=torch.float64))]
    optimizer = Descent(weights, {"lr": 0.5, "differentiable": False})
    (weights[0].square().sum() + weights[1].sum()).backward()
    optimizer.step()
    assert weights[0].tolist() == [0, 0, 0] and weights[1].tolist() == [0.5, 0.5]
