"""The identity function through which a module's full backward hooks see its inputs' and outputs' gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..._tensor import Tensor
from ...autograd import Function

if TYPE_CHECKING:
    pass

__all__ = ["BackwardHook", "BackwardHookFunction"]


class BackwardHookFunction(Function):
    """Identity on tensors; its node is where the hooks of a module attach."""

    @staticmethod
    def forward(ctx: Any, *args: Tensor) -> tuple[Tensor, ...]:
        """Return the tensors as they are; those without gradient stay without."""
        ctx.mark_non_differentiable(*[arg for arg in args if not arg.requires_grad])
        return args

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        """Return the gradients as they are."""
        return grads


def _spread(positions: Sequence[int], values: Sequence[Any], length: int) -> tuple[Any, ...]:
    """``values`` at ``positions`` of a tuple of ``length``, None elsewhere."""
    spread: list[Any] = [None] * length
    for position, value in zip(positions, values, strict=True):
        spread[position] = value
    return tuple(spread)


class BackwardHook:
    """One call of a module with full backward hooks: collects the gradients of its outputs, then those of its inputs."""

    def __init__(self, module: Any, hooks: Sequence[Callable], pre_hooks: Sequence[Callable]) -> None:
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_outputs: tuple[Any, ...] | None = None
        self.n_inputs = -1
        self.input_positions: list[int] | None = None
        self.n_outputs = -1
        self.output_positions: list[int] | None = None

    def _attach(self, hook: Callable, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[int] | None]:
        """Send the tensors of ``args`` through the identity and hook its node; positions are None without gradients."""
        import mindtorch_v2 as torch

        positions = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
        tensors = [args[i] for i in positions]
        if not (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)):
            return args, None
        passed = BackwardHookFunction.apply(*tensors)
        if isinstance(passed, Tensor):
            passed = (passed,)
        nodes = [tensor.grad_fn for tensor in passed if tensor.grad_fn is not None]
        if not nodes or nodes[0].name() != "BackwardHookFunctionBackward":
            raise RuntimeError("Error while setting up backward hooks. Please open an issue with a code sample.")
        nodes[0].register_hook(hook)
        renewed = list(args)
        for position, tensor in zip(positions, passed, strict=True):
            renewed[position] = tensor
        return type(args)(renewed) if type(args) in (tuple, list) else type(args)(*renewed), positions

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Prepare the positional arguments of the forward call."""

        def hook(grad_inputs: tuple[Any, ...], _: Any) -> tuple[Any, ...] | None:
            if self.grad_outputs is None:
                # No gradient reached the outputs (the input is used elsewhere too): there is nothing to report.
                return None
            assert self.input_positions is not None
            gradients = _spread(self.input_positions, grad_inputs, self.n_inputs)
            for user_hook in self.hooks:
                changed = user_hook(self.module, gradients, self.grad_outputs)
                if changed is None:
                    continue
                if len(changed) != len(gradients):
                    raise RuntimeError(
                        "Backward hook returned an invalid number of grad_input, "
                        f"got {len(changed)}, but expected {len(gradients)}"
                    )
                gradients = changed
            self.grad_outputs = None
            return tuple(gradients[i] for i in self.input_positions)

        renewed, positions = self._attach(hook, args)
        self.n_inputs = len(args)
        self.input_positions = positions
        return renewed

    def setup_output_hook(self, result: Any) -> Any:
        """Prepare the result of the forward call (a Tensor or a tuple of them)."""

        def hook(_: Any, grad_outputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
            assert self.output_positions is not None
            gradients: Any = _spread(self.output_positions, grad_outputs, self.n_outputs)
            replaced = False
            for pre_hook in self.pre_hooks:
                changed = pre_hook(self.module, gradients)
                if changed is None:
                    continue
                if len(changed) != len(gradients):
                    raise RuntimeError(
                        "Backward pre hook returned an invalid number of grad_output, "
                        f"got {len(changed)}, but expected {len(gradients)}"
                    )
                gradients = changed
                replaced = True
            self.grad_outputs = gradients
            passed_on = tuple(gradients[i] for i in self.output_positions) if replaced else None
            if self.input_positions is None:
                self._fire_without_inputs()
            return passed_on

        single = not isinstance(result, tuple)
        renewed, positions = self._attach(hook, (result,) if single else result)
        self.n_outputs = 1 if single else len(result)
        self.output_positions = positions
        return renewed[0] if single else renewed

    def _fire_without_inputs(self) -> None:
        if self.hooks:
            warnings.warn(
                "Full backward hook is firing when gradients are computed with respect to module outputs since no "
                "inputs require gradients. See "
                "https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.register_full_backward_hook "
                "for more details.",
                stacklevel=5,
            )
        nothing = (None,) * self.n_inputs
        for user_hook in self.hooks:
            changed = user_hook(self.module, nothing, self.grad_outputs)
            if changed is not None and not (isinstance(changed, tuple) and all(value is None for value in changed)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None "
                    "for all gradients."
                )
        self.grad_outputs = None
