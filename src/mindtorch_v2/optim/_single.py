"""What optimizers share that update one parameter after the other, and checks of hyperparameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from numpy import ndarray

import mindtorch_v2 as torch

from .._dispatch import native
from .._pending import exposed
from .._state import TLS, runs_plainly
from .._tensor import Tensor, bump_version
from .optimizer import (
    Optimizer,
    _get_capturable_supported_devices,
    _get_scalar_dtype,
    _get_value,
    _to_scalar,
    _use_grad_for_differentiable,
)

number, scalar = _get_value, _to_scalar  # of hyperparameters, which may be tensors


def check_lr(lr: Any) -> None:
    """Raise ValueError for a learning rate that is negative or a tensor of several elements."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if not lr >= 0.0:
        raise ValueError(f"Invalid learning rate: {lr}")


def check_positive(name: str, value: Any) -> None:
    """Raise ValueError for a negative value."""
    if not value >= 0.0:
        raise ValueError(f"Invalid {name}: {value}")


def check_betas(betas: tuple[Any, Any]) -> None:
    """Raise ValueError for a beta outside of [0, 1)."""
    for position in (0, 1):
        beta = betas[position]
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {position}: {beta}")


def check_fused(fused: bool | None, foreach: bool | None, differentiable: bool) -> None:
    """Raise RuntimeError for combinations with ``fused`` that do not exist."""
    if fused:
        if differentiable:
            raise RuntimeError("`fused` does not support `differentiable`")
        if foreach:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def arrays(*tensors: Tensor) -> tuple | None:
    """The arrays of plain CPU tensors, for kernels that change them in place; None when one is of another kind.

    In a pipeline they are run first, and so is what reads them: recorded operators would round between the parts of a step.
    """
    for tensor in tensors:
        if not runs_plainly(tensor.__class__):
            return None
        if exposed(tensor).__class__ is not ndarray:
            return None
    return tuple(tensor._payload for tensor in tensors)


def changed(*tensors: Tensor) -> bool:
    """Count a change in place of each tensor; True."""
    for tensor in tensors:
        bump_version(tensor)
    return True


class SingleTensorOptimizer(Optimizer):
    """Runs ``_update`` for every parameter with a gradient. ``foreach`` and ``fused`` are accepted and change nothing."""

    # Options that groups of old state dicts lack, with their defaults.
    _later_options: ClassVar[dict[str, Any]] = {"foreach": None, "maximize": False, "differentiable": False}
    # Entries of the state that were numbers in old state dicts.
    _scalar_state: ClassVar[tuple[str, ...]] = ("step",)
    # Whether autograd sees the updates: steps run without it, functions as they are called, and kernels that it cannot see are not for these.
    _recorded: bool = False
    # What has to be on a device that captures, and whether PyTorch counts XLA among these.
    _captured: ClassVar[str] = "params and state_steps"
    _captured_by_xla: ClassVar[bool] = True
    _sparse_advice: ClassVar[str] = ""
    _sparse_name: ClassVar[str] = ""  # who refuses sparse gradients, where it is not the class itself

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, default in self._later_options.items():
                group.setdefault(name, default)
            for param in group["params"]:
                entries = self.state.get(param, {})
                for name in self._scalar_state:
                    if name in entries and not isinstance(entries[name], Tensor):
                        entries[name] = self._counter(group, param, float(entries[name]))

    def _counter(self, group: dict[str, Any], param: Tensor, value: float = 0.0) -> Tensor:
        """A scalar of the state: on the CPU, unless the device is to read it."""
        on_device = group.get("capturable") or group.get("fused")
        device = param.device if on_device else "cpu"
        return torch.tensor(value, dtype=_get_scalar_dtype(group.get("fused")), device=device)

    def _init_state(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        """Fill the state of a parameter before its first update."""
        raise NotImplementedError

    def _update(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        """Update one parameter, of real numbers, and the state, in place."""
        raise NotImplementedError

    def _state_of(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        return self.state[param]

    def _check_sparse(self, grad: Tensor) -> None:
        if grad.is_sparse:
            raise RuntimeError(
                f"{self._sparse_name or type(self).__name__} does not support sparse gradients{self._sparse_advice}"
            )

    def _quick(self, group: dict[str, Any]) -> list[Tensor]:
        """Step at once what a kernel of whole groups can; the parameters that are left."""
        return group["params"]

    def _together(self, group: dict[str, Any], ready: list[tuple[Tensor, Tensor, dict]]) -> list[tuple]:
        """Update at once what functions of lists of tensors can; the rows of parameter, gradient and state that are left."""
        return ready

    @_use_grad_for_differentiable
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once; ``closure`` computes the loss again, which is returned."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            ready = []
            for param in self._quick(group):
                grad = param.grad
                if grad is None:
                    continue
                self._check_sparse(grad)
                state = self._state_of(group, param)
                if len(state) == 0:
                    self._init_state(group, param, state)
                ready.append((param, grad, state))
            if ready:
                self._advance(group, ready)
        return loss

    def _advance(self, group: dict[str, Any], ready: list[tuple[Tensor, Tensor, dict]]) -> None:
        """Update each row of parameter, gradient and state: what a step and the function of the same name share."""
        capturable, maximize = group.get("capturable") and not group.get("fused"), group.get("maximize")
        for param, grad, state in self._together(group, ready):
            if capturable:
                self._check_capturable(param, state)
            if maximize:
                grad = -grad
            if param.is_complex():
                self._update_complex(group, param, grad, state)
            else:
                self._update(group, param, grad, state)

    def _check_capturable(self, param: Tensor, state: dict[str, Any]) -> None:
        devices, kind = _get_capturable_supported_devices(self._captured_by_xla), param.device.type
        if kind not in (*devices, "npu") or any(state[name].device.type != kind for name in self._scalar_state):
            raise AssertionError(f"If capturable=True, {self._captured} must be on supported devices: {devices}.")

    def _update_complex(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        """Update a complex parameter as a real one of twice as many numbers."""
        real = {
            name: torch.view_as_real(value) if isinstance(value, Tensor) and value.is_complex() else value
            for name, value in state.items()
        }
        self._update(group, torch.view_as_real(param), torch.view_as_real(grad), real)


def step_group(
    kind: str, group: dict[str, Any], state: dict[Any, Any], flag: bool, numbers: tuple[Any, ...]
) -> list[Tensor]:
    """Step the parameters of a group by the extension's kernel; those that it leaves."""
    if native.extension is None or group["differentiable"] or group["maximize"]:
        return group["params"]
    step = native.extension.step_group
    if TLS.profiler is None:
        return step(kind, group["params"], state, flag, numbers)
    return TLS.profiler.apart(f"aten::_fused_{kind}_", step, kind, group["params"], state, flag, numbers)


def zeros_like(param: Tensor) -> Tensor:
    """Zeros in the layout of ``param``."""
    return torch.zeros_like(param, memory_format=torch.preserve_format)


def check_tensors(name: str, values: Sequence[Any]) -> None:
    """Raise RuntimeError for numbers in a list of scalars of the state."""
    if not all(isinstance(value, Tensor) for value in values):
        raise RuntimeError(f"API has changed, `{name}` argument must contain a list of singleton tensors")


def unscale(
    kind: str,
    params: list[Tensor],
    grads: list[Tensor],
    fused: Any,
    grad_scale: Tensor | None,
    found_inf: Tensor | None,
) -> bool:
    """Divide the gradients of a fused step by their scale, in place: whether to step, as without infinite ones.

    Raises AssertionError for a step that is not fused, NotImplementedError for complex parameters.
    """
    if not fused:
        if grad_scale is not None or found_inf is not None:
            raise AssertionError("Expected grad_scale and found_inf to be None")
        return True
    if found_inf is not None and found_inf.item() == 1:
        return False
    for param in params:
        if param.is_complex():
            dtype = "ComplexDouble" if param.dtype == torch.complex128 else "ComplexFloat"
            raise NotImplementedError(f"\"fused_{kind}_kernel\" not implemented for '{dtype}'")
    if grad_scale is not None:
        for grad in grads:
            grad.div_(scalar(grad_scale).to(grad.device))
    return True


def run(
    kind: type[SingleTensorOptimizer],
    group: dict[str, Any],
    params: list[Tensor],
    grads: list[Tensor],
    lists: Mapping[str, Sequence[Any]],
) -> list[dict[str, Any]]:
    """Step parameters as an optimizer of a kind with these options; ``lists`` has its state by its names of the entries.

    Returns the states of the parameters. Raises AssertionError for a differentiable step of lists.
    """
    if group.get("foreach") and group["differentiable"] and params:
        raise AssertionError("_foreach ops don't support autograd")
    # Updates read the options and the state that they are given, and of the optimizer nothing that is made with it.
    stepper = object.__new__(kind)
    tensors = (*params, *grads, *(value for value in group.values() if isinstance(value, Tensor)))
    stepper._recorded = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    states = [{name: values[place] for name, values in lists.items()} for place in range(len(params))]
    stepper._advance(group, [(param, grads[place], states[place]) for place, param in enumerate(params)])
    return states
